// VERIFY_K: how many of k drafted tokens the target model would have picked greedily: accept_len[b] = length of the
// longest prefix with draft[b][i] = ARGMAX(logits[b][i]). Shapes: draft [b, k], logits [b, k, v], accept_len [b].
// Order: none.
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const std::uint32_t k = args.dim(0), v = args.dim(1), b = args.wg[0];
  const auto* draft = args.buffer<const std::int32_t>(0) + std::uint64_t{b} * k;
  const float* logits = args.buffer<const float>(1) + std::uint64_t{b} * k * v;
  std::uint32_t accepted = 0;
  while (accepted < k &&
         static_cast<std::uint32_t>(draft[accepted]) == argmax_row(logits + std::uint64_t{accepted} * v, v))
    ++accepted;
  args.buffer<std::int32_t>(2)[b] = static_cast<std::int32_t>(accepted);
}

}  // namespace

extern const CpuKernel kCpuKernel_verify_k;
const CpuKernel kCpuKernel_verify_k{"VERIFY_K", run, {"dim:k", "dim:v"}, {{"b"}, {}}};

}  // namespace zinc_rt::cpu

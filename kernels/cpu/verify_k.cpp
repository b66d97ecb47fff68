// This is the CPU reference kernel of the op VERIFY_K, which counts how many of k drafted tokens the target model would
// have picked greedily. accept_len[b] is the length of the longest prefix with draft[b][i] = ARGMAX(logits[b][i]).
// Shapes: draft [b, k], logits [b, k, v], accept_len [b].
// Order of sums: there are none.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::VerifyK;
constexpr NameList kSymbols{"dim:k", "dim:v"};

void run(const CpuArgs& args) {
  const std::uint32_t k = args.dim(kSymbols["dim:k"]), v = args.dim(kSymbols["dim:v"]), b = args.wg[0];
  const auto* draft = args.buffer<const std::int32_t>(Operand::draft) + std::uint64_t{b} * k;
  const float* logits = args.buffer<const float>(Operand::logits) + std::uint64_t{b} * k * v;
  std::uint32_t accepted = 0;
  while (accepted < k &&
         static_cast<std::uint32_t>(draft[accepted]) == argmax_row(logits + std::uint64_t{accepted} * v, v))
    ++accepted;
  args.buffer<std::int32_t>(Operand::accept_len)[b] = static_cast<std::int32_t>(accepted);
}

}  // namespace

extern const CpuKernel kCpuKernel_verify_k;
const CpuKernel kCpuKernel_verify_k{"VERIFY_K", run, kSymbols, {{"b"}, {}}};

}  // namespace zinc_rt::cpu

// LM_HEAD: logits[r] = W x[r], a LINEAR without bias over the whole vocabulary. Shapes: x [n, d], w [v, d], logits [n,
// v]. Order: as LINEAR.
#include <algorithm>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

constexpr std::uint32_t kTile = 256;

void run(const CpuArgs& args) {
  const std::uint32_t n = args.dim(0), d = args.dim(1), v = args.dim(2);
  const auto x_dtype = static_cast<DType>(args.symbols[4]);
  const LinearArgs linear{args.buffers[1],
                          static_cast<DType>(args.symbols[3]),
                          args.is_packed(1),
                          v,
                          nullptr,
                          args.buffers[0],
                          x_dtype,
                          row_bytes(x_dtype, d),
                          d,
                          n,
                          args.buffer<float>(2),
                          v,
                          reinterpret_cast<float*>(args.lds),
                          args.set};
  linear_rows(linear, args.wg[0] * kTile, std::min(v, (args.wg[0] + 1) * kTile));
}

}  // namespace

extern const CpuKernel kCpuKernel_lm_head;
const CpuKernel kCpuKernel_lm_head{"LM_HEAD",
                                   run,
                                   {"dim:n", "dim:d", "dim:v", "dtype:w", "dtype:x"},
                                   {{"v", kTile}, {}},
                                   KeyTypes::kWeights,
                                   [](const std::uint32_t* s) { return std::uint64_t{s[1]} * 4; }};

}  // namespace zinc_rt::cpu

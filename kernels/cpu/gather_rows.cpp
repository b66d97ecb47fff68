// GATHER_ROWS: y[r] = x[rows[r]]: the tokens whose logits are wanted. Shapes: x [n, d], rows [r], y [r, d]. Order:
// none.
#include "kernels/cpu/kernel.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const std::uint32_t d = args.dim(0), r = args.wg[0];
  const auto row = static_cast<std::uint64_t>(args.buffer<const std::int32_t>(1)[r]);
  __builtin_memcpy(args.buffer<float>(2) + std::uint64_t{r} * d, args.buffer<const float>(0) + row * d,
                   std::uint64_t{d} * 4);
}

}  // namespace

extern const CpuKernel kCpuKernel_gather_rows;
const CpuKernel kCpuKernel_gather_rows{"GATHER_ROWS", run, {"dim:d"}, {{"r"}, {}}};

}  // namespace zinc_rt::cpu

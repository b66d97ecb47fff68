// GATHER_ROWS: y[r] = x[rows[r]]: the tokens whose logits are wanted. Shapes: x [n, d], rows [r], y [r, d]. A row
// outside x gives NaN. Order: none.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/kernel.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const std::uint32_t d = args.dim(0), n = args.dim(1), r = args.wg[0];
  const auto row = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(1)[r]);
  float* y = args.buffer<float>(2) + std::uint64_t{r} * d;
  if (row < n) {
    std::copy_n(args.buffer<const float>(0) + std::uint64_t{row} * d, d, y);
  } else {
    std::fill_n(y, d, NAN);
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_gather_rows;
const CpuKernel kCpuKernel_gather_rows{"GATHER_ROWS", run, {"dim:d", "dim:n"}, {{"r"}, {}}};

}  // namespace zinc_rt::cpu

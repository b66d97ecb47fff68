// RESIDUAL_RMS_NORM: residual = residual + x in place, then y = RMS_NORM(residual, w). Shapes: residual, x, y [n, d], w
// [d]. Order: that of ADD and RMS_NORM, so the bits are theirs.
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const std::uint32_t d = args.dim(0);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * d;
  float* residual = args.buffer<float>(0) + at;
  const float* x = args.buffer<const float>(1) + at;
  for (std::uint32_t i = 0; i < d; ++i) residual[i] = residual[i] + x[i];
  rms_norm_row(residual, args.buffer<const float>(2), args.buffer<float>(3) + at, d, d,
               args.constants<push::ResidualRmsNorm>().eps, args.set);
}

}  // namespace

extern const CpuKernel kCpuKernel_residual_rms_norm;
const CpuKernel kCpuKernel_residual_rms_norm{"RESIDUAL_RMS_NORM", run, {"dim:d"}, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

// This is the CPU reference kernel of the op RESIDUAL_RMS_NORM. It sets residual = residual + x in place, then y =
// RMS_NORM(residual, w).
// Shapes: residual, x, y [n, d], w [d].
// Order of sums: that of ADD and RMS_NORM, so the bits are theirs.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::ResidualRmsNorm;
constexpr NameList kSymbols{"dim:d"};

void run(const CpuArgs& args) {
  const std::uint32_t d = args.dim(kSymbols["dim:d"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * d;
  float* residual = args.buffer<float>(Operand::residual) + at;
  const float* x = args.buffer<const float>(Operand::x) + at;
  for (std::uint32_t i = 0; i < d; ++i) residual[i] = residual[i] + x[i];
  rms_norm_row(residual, args.buffer<const float>(Operand::w), args.buffer<float>(Operand::y) + at, d, d,
               args.constants<push::ResidualRmsNorm>().eps, args.set);
}

}  // namespace

extern const CpuKernel kCpuKernel_residual_rms_norm;
const CpuKernel kCpuKernel_residual_rms_norm{"RESIDUAL_RMS_NORM", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

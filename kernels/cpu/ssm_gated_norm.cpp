// This is the CPU reference kernel of the op SSM_GATED_NORM. It computes y = RMS_NORM(x, w) * silu(z), with the norm
// over groups of `group` values (one v head). y may be the same buffer as x.
// Shapes: x, z, y [n, d], w [group].
// Order of sums: that of RMS_NORM, then one product.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::SsmGatedNorm;
constexpr NameList kSymbols{"dim:d"};

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::SsmGatedNorm>();
  const std::uint32_t d = args.dim(kSymbols["dim:d"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * d;
  const float* z = args.buffer<const float>(Operand::z) + at;
  float* y = args.buffer<float>(Operand::y) + at;
  rms_norm_row(args.buffer<const float>(Operand::x) + at, args.buffer<const float>(Operand::w), y, d, c.group, c.eps,
               args.set);
  for (std::uint32_t i = 0; i < d; ++i) y[i] = y[i] * exact::silu(z[i]);
}

}  // namespace

extern const CpuKernel kCpuKernel_ssm_gated_norm;
const CpuKernel kCpuKernel_ssm_gated_norm{"SSM_GATED_NORM", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

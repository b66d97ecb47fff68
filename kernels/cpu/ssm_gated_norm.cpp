// This is the CPU reference kernel of the op SSM_GATED_NORM. It computes y = RMS_NORM(x, w) * silu(z), or with
// gate_first y = RMS_NORM(x * silu(z), w). The norm is over groups of `group` values. All groups of a row have the same
// weights, or each has its own. y may be the same buffer as x.
// Shapes: x, z, y [n, d], w [w_groups, group], with w_groups = 1 or d / group.
// Order of sums: that of RMS_NORM; one product per element after it or before it.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::SsmGatedNorm;
constexpr NameList kSymbols{"dim:d", "dim:w_groups"};

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::SsmGatedNorm>();
  const std::uint32_t d = args.dim(kSymbols["dim:d"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * d;
  const float *x = args.buffer<const float>(Operand::x) + at, *z = args.buffer<const float>(Operand::z) + at,
              *w = args.buffer<const float>(Operand::w);
  float* y = args.buffer<float>(Operand::y) + at;
  const auto gate = [&](const float* from) { glu_row(push::kSilu, z, from, y, d, args.set); };
  if (c.gate_first != 0) gate(x), x = y;
  // The part of a row that begins with the first group's weights.
  const std::uint32_t part = args.dim(kSymbols["dim:w_groups"]) == 1 ? d : c.group;
  for (std::uint32_t i = 0; i < d; i += part)
    rms_norm_row(x + i, part == d ? w : w + i, y + i, part, c.group, c.eps, args.set);
  if (c.gate_first == 0) gate(y);
}

}  // namespace

extern const CpuKernel kCpuKernel_ssm_gated_norm;
const CpuKernel kCpuKernel_ssm_gated_norm{"SSM_GATED_NORM", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

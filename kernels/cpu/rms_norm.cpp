// This is the CPU reference kernel of the op RMS_NORM. In each group of a row it computes y = x * r * w with r =
// rsqrt(sum(x^2) / group + eps). If w is absent, y = x * r. The attribute `group` divides d: with group = d the whole
// row is normalized, with group = head_dim each head.
// Shapes: x [n, d], w [group] or absent, y [n, d].
// Order of sums: the sum of squares is the float dot of x with itself (rule 4). The mean is fma(sum, 1/group, eps).
//   Then y = (x * r) * w.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {

void rms_norm_row(const float* x, const float* w, float* y, std::uint32_t d, std::uint32_t group, float eps,
                  const KernelSet* set) {
  if (set != nullptr && set->rows != nullptr) return set->rows->rms_norm(x, w, y, d, group, eps);
  const QuantFormat& f32 = *quant_format(DType::kF32);
  const float inverse = 1.0f / static_cast<float>(group);
  for (std::uint32_t g = 0; g < d; g += group) {
    const float r = exact::rsqrt(__builtin_fmaf(f32.dot(x + g, x + g, group), inverse, eps));
    for (std::uint32_t i = 0; i < group; ++i) {
      const float v = x[g + i] * r;
      y[g + i] = w != nullptr ? v * w[i] : v;
    }
  }
}

namespace {

using Operand = operand::RmsNorm;
constexpr NameList kSymbols{"dim:d"};

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::RmsNorm>();
  const std::uint32_t d = args.dim(kSymbols["dim:d"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * d;
  rms_norm_row(args.buffer<const float>(Operand::x) + at, args.buffer<const float>(Operand::w),
               args.buffer<float>(Operand::y) + at, d, c.group, c.eps, args.set);
}

}  // namespace

extern const CpuKernel kCpuKernel_rms_norm;
const CpuKernel kCpuKernel_rms_norm{"RMS_NORM", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

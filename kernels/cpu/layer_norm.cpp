// This is the CPU reference kernel of the op LAYER_NORM. It computes y = (x - mean) * r * w + b over a row, where r =
// rsqrt(variance + eps), and the variance is that of the row's d values. If b is absent, y = (x - mean) * r * w. y may
// be the same buffer as x.
// Shapes: x [n, d], w, b [d], y [n, d].
// Order of sums: the mean is the sum of x in 16 lanes (lane = index mod 16), folded, times 1/d. c = x - mean. The sum
//   of squares is the float dot of c with itself (rule 4). r = rsqrt(fma(sum, 1/d, eps)). y = fma(c * r, w, b), or
//   (c * r) * w without b.
#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::LayerNorm;
constexpr NameList kSymbols{"dim:d"};

ZRT_MULTIVERSION void centre(const float* x, float mean, float* y, std::uint32_t d) {
  for (std::uint32_t i = 0; i < d; ++i) y[i] = x[i] - mean;
}
ZRT_MULTIVERSION void scale(float r, const float* w, float* y, std::uint32_t d) {
  for (std::uint32_t i = 0; i < d; ++i) y[i] = y[i] * r * w[i];
}
ZRT_MULTIVERSION void scale_and_shift(float r, const float* w, const float* b, float* y, std::uint32_t d) {
  for (std::uint32_t i = 0; i < d; ++i) y[i] = __builtin_fmaf(y[i] * r, w[i], b[i]);
}

void run(const CpuArgs& args) {
  const std::uint32_t d = args.dim(kSymbols["dim:d"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * d;
  const float* x = args.buffer<const float>(Operand::x) + at;
  float* y = args.buffer<float>(Operand::y) + at;
  const float inverse = 1.0f / static_cast<float>(d);
  centre(x, sum_lanes(x, d) * inverse, y, d);
  const float squares = quant_format(DType::kF32)->dot(y, y, d);
  const float r = exact::rsqrt(__builtin_fmaf(squares, inverse, args.constants<push::LayerNorm>().eps));
  const float *w = args.buffer<const float>(Operand::w), *b = args.buffer<const float>(Operand::b);
  if (b != nullptr) {
    scale_and_shift(r, w, b, y, d);
  } else {
    scale(r, w, y, d);
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_layer_norm;
const CpuKernel kCpuKernel_layer_norm{"LAYER_NORM", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

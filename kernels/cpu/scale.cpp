// This is the CPU reference kernel of the op SCALE. It computes y = (x * w) * scale, where w is one stored number or
// absent. y may be the same buffer as x.
// Shapes: x, y [n, d], w [1] or absent.
// Order of sums: there are none; each element is computed by itself.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Scale;
constexpr NameList kSymbols{"dim:d"};

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(kSymbols["dim:d"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  const float scale = args.constants<push::Scale>().scale;
  const float *x = args.buffer<const float>(Operand::x) + at, *w = args.buffer<const float>(Operand::w);
  float* y = args.buffer<float>(Operand::y) + at;
  for (std::uint32_t i = 0; i < width; ++i) y[i] = (w != nullptr ? x[i] * w[0] : x[i]) * scale;
}

}  // namespace

extern const CpuKernel kCpuKernel_scale;
const CpuKernel kCpuKernel_scale{"SCALE", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

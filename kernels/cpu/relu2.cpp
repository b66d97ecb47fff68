// This is the CPU reference kernel of the op RELU2. It computes y = max(x, 0)^2, the activation of feed-forward layers
// without a gate. NaN stays NaN. y may be the same buffer as x.
// Shapes: x, y [n, f].
// Order of sums: there are none; each element is computed by itself.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Relu2;
constexpr NameList kSymbols{"dim:f"};

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(kSymbols["dim:f"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  const float* x = args.buffer<const float>(Operand::x) + at;
  float* y = args.buffer<float>(Operand::y) + at;
  for (std::uint32_t i = 0; i < width; ++i) {
    const float positive = x[i] < 0.0f ? 0.0f : x[i];
    y[i] = positive * positive;
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_relu2;
const CpuKernel kCpuKernel_relu2{"RELU2", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

// This is the CPU reference kernel of the op SIGMOID_MUL. It computes y = x * sigmoid(gate). y may be the same buffer
// as x.
// Shapes: x, gate, y [n, d].
// Order of sums: there are none; each element is computed by itself.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::SigmoidMul;
constexpr NameList kSymbols{"dim:d"};

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(kSymbols["dim:d"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  const float *x = args.buffer<const float>(Operand::x) + at, *gate = args.buffer<const float>(Operand::gate) + at;
  float* y = args.buffer<float>(Operand::y) + at;
  for (std::uint32_t i = 0; i < width; ++i) y[i] = x[i] * exact::sigmoid(gate[i]);
}

}  // namespace

extern const CpuKernel kCpuKernel_sigmoid_mul;
const CpuKernel kCpuKernel_sigmoid_mul{"SIGMOID_MUL", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

// This is the CPU reference kernel of the op MUL. It computes z = x * y. z may be the same buffer as x.
// Shapes: x, y, z [n, d].
// Order of sums: there are none; each element is computed by itself.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Mul;
constexpr NameList kSymbols{"dim:d"};

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(kSymbols["dim:d"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  const float *x = args.buffer<const float>(Operand::x) + at, *y = args.buffer<const float>(Operand::y) + at;
  float* z = args.buffer<float>(Operand::z) + at;
  for (std::uint32_t i = 0; i < width; ++i) z[i] = x[i] * y[i];
}

}  // namespace

extern const CpuKernel kCpuKernel_mul;
const CpuKernel kCpuKernel_mul{"MUL", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

// This is the CPU reference kernel of the op GELU. It computes y = x Phi(x), where Phi is the cumulative normal
// distribution (exact::gelu). (GLU uses the tanh form instead.) y may be the same buffer as x.
// Shapes: x, y [n, f].
// Order of sums: there are none; each element is computed by itself.
#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/exact_math.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Gelu;
constexpr NameList kSymbols{"dim:f"};

ZRT_MULTIVERSION void gelu_row(const float* x, float* y, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) y[i] = exact::gelu(x[i]);
}

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(kSymbols["dim:f"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  gelu_row(args.buffer<const float>(Operand::x) + at, args.buffer<float>(Operand::y) + at, width);
}

}  // namespace

extern const CpuKernel kCpuKernel_gelu;
const CpuKernel kCpuKernel_gelu{"GELU", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

// This is the CPU reference kernel of the op SOFTCAP. It computes y = cap * tanh(x / cap), with 1 / cap by exact::rcp.
// y may be the same buffer as x.
// Shapes: x, y [n, d].
// Order of sums: there are none; each element is computed by itself.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Softcap;
constexpr NameList kSymbols{"dim:d"};

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(kSymbols["dim:d"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  const float cap = args.constants<push::Softcap>().cap, inverse = exact::rcp(cap);
  const float* x = args.buffer<const float>(Operand::x) + at;
  float* y = args.buffer<float>(Operand::y) + at;
  for (std::uint32_t i = 0; i < width; ++i) y[i] = cap * exact::tanh(x[i] * inverse);
}

}  // namespace

extern const CpuKernel kCpuKernel_softcap;
const CpuKernel kCpuKernel_softcap{"SOFTCAP", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

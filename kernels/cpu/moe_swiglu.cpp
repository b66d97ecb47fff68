// This is the CPU reference kernel of the op MOE_SWIGLU. It computes y = act(gate) * up for the k chosen experts of
// each token, where act is as in GLU. y may be the same buffer as gate.
// Shapes: gate, up, y [n, k * f].
// Order of sums: there are none; each element is computed by itself.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::MoeSwiglu;
constexpr NameList kSymbols{"dim:f"};

void run(const CpuArgs& args) {
  const std::uint32_t width = args.dim(kSymbols["dim:f"]);
  const std::uint64_t at = std::uint64_t{args.wg[0]} * width;
  glu_row(args.constants<push::MoeSwiglu>().act, args.buffer<const float>(Operand::gate) + at,
          args.buffer<const float>(Operand::up) + at, args.buffer<float>(Operand::y) + at, width, args.set);
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_swiglu;
const CpuKernel kCpuKernel_moe_swiglu{"MOE_SWIGLU", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

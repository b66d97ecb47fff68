// This is the CPU reference kernel of the op MOE_ADD_BIAS. It adds to each row of a MOE_LINEAR the bias of the expert
// that computed it: y[t][j] += bias[ids[t][j]]. A row whose id lies outside [0, e) is left as it is (MOE_LINEAR made it
// NaN).
// Shapes: y [n, k * f], ids [n, k], bias [e, f].
// Order of sums: there are none; each element is computed by itself.
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::MoeAddBias;
constexpr NameList kSymbols{"dim:k", "dim:e", "dim:f"};

void run(const CpuArgs& args) {
  const std::uint32_t k = args.dim(kSymbols["dim:k"]), e = args.dim(kSymbols["dim:e"]), f = args.dim(kSymbols["dim:f"]);
  const std::int32_t* ids = args.buffer<const std::int32_t>(Operand::ids) + std::uint64_t{args.wg[0]} * k;
  float* y = args.buffer<float>(Operand::y) + std::uint64_t{args.wg[0]} * k * f;
  for (std::uint32_t j = 0; j < k; ++j, y += f) {
    const auto id = static_cast<std::uint32_t>(ids[j]);
    if (id >= e) continue;
    const float* bias = args.buffer<const float>(Operand::bias) + std::uint64_t{id} * f;
    for (std::uint32_t i = 0; i < f; ++i) y[i] = y[i] + bias[i];
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_add_bias;
const CpuKernel kCpuKernel_moe_add_bias{"MOE_ADD_BIAS", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

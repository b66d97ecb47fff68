// This is the CPU reference kernel of the op MOE_SCALE. It computes y[t][j] = x[t][j] * expert_scale[ids[t][j]] for the
// k experts that token t has chosen, whose rows x[t][j] are the products of MOE_LINEAR. An id outside [0, e) yields
// NaN. y may be the same buffer as x.
// Shapes: x, y [n, w], where w = k times the width of a row; ids [n, k], expert_scale [e].
// Order of sums: there are none; each element is computed by itself.
#include <cmath>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::MoeScale;
constexpr NameList kSymbols{"dim:w", "dim:k", "dim:e"};

void run(const CpuArgs& args) {
  const std::uint32_t w = args.dim(kSymbols["dim:w"]), k = args.dim(kSymbols["dim:k"]), e = args.dim(kSymbols["dim:e"]);
  const std::uint32_t width = w / k;
  const std::uint64_t t = args.wg[0];
  const float *x = args.buffer<const float>(Operand::x) + t * w,
              *scale = args.buffer<const float>(Operand::expert_scale);
  const auto* ids = args.buffer<const std::int32_t>(Operand::ids) + t * k;
  float* y = args.buffer<float>(Operand::y) + t * w;
  for (std::uint32_t j = 0; j < k; ++j) {
    const auto id = static_cast<std::uint32_t>(ids[j]);
    const float factor = id < e ? scale[id] : NAN;
    for (std::uint32_t i = j * width; i < (j + 1) * width; ++i) y[i] = x[i] * factor;
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_scale;
const CpuKernel kCpuKernel_moe_scale{"MOE_SCALE", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

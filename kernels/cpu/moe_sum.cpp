// This is the CPU reference kernel of the op MOE_SUM. It computes z[t] = the sum over a token's k choices of weight_j *
// y[t][j], where weight_j = weights[t][j], times expert_scale[ids[t][j]] if expert_scale is present.
// Shapes: y [n, k * d], ids, weights [n, k], expert_scale [e] or absent, z [n, d].
// Order of sums: acc = 0, then acc = fma(weight_j, y_j, acc) for j = 0, 1, ...
#include <algorithm>
#include <cmath>

#include "base/multiversion.h"
#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {

float moe_weight(const float* weights, const std::int32_t* ids, const float* expert_scale, std::uint32_t e,
                 std::uint32_t i) {
  if (expert_scale == nullptr) return weights[i];
  const auto id = static_cast<std::uint32_t>(ids[i]);
  return id < e ? weights[i] * expert_scale[id] : NAN;
}

ZRT_MULTIVERSION void add_scaled(float factor, const float* x, float* y, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) y[i] = __builtin_fmaf(factor, x[i], y[i]);
}

namespace {

using Operand = operand::MoeSum;
constexpr NameList kSymbols{"dim:d", "dim:k", "dim:e"};

void run(const CpuArgs& args) {
  const std::uint32_t d = args.dim(kSymbols["dim:d"]), k = args.dim(kSymbols["dim:k"]), t = args.wg[0];
  const float* y = args.buffer<const float>(Operand::y) + std::uint64_t{t} * k * d;
  float* z = args.buffer<float>(Operand::z) + std::uint64_t{t} * d;
  std::fill_n(z, d, 0.0f);
  for (std::uint32_t j = 0; j < k; ++j) {
    const float weight =
        moe_weight(args.buffer<const float>(Operand::weights), args.buffer<const std::int32_t>(Operand::ids),
                   args.buffer<const float>(Operand::expert_scale), args.symbols[kSymbols["dim:e"]], t * k + j);
    add_scaled(weight, y + std::uint64_t{j} * d, z, d);
  }
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_sum;
const CpuKernel kCpuKernel_moe_sum{"MOE_SUM", run, kSymbols, {{"n"}, {}}};

}  // namespace zinc_rt::cpu

// This is the CPU reference kernel of the op MOE_DOWN_ACC. It sets hidden = hidden + the sum over a token's k experts
// of weight_j * LINEAR(x_j, down_w[id_j]), in place. It is MOE_LINEAR, MOE_SUM and ADD without the rows between them.
// It is meant for few tokens, because an expert's weights are read once per token that chose it.
// Shapes: x [n, k * f], down_w [e, d, f], ids, weights [n, k], expert_scale [e] or absent, hidden [n, d].
// Order of sums: that of the three ops.
#include <algorithm>
#include <cmath>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::MoeDownAcc;
constexpr NameList kSymbols{"dim:f", "dim:e", "dim:d", "dim:k", "dtype:down_w", "dtype:x", "pitch:down_w"};

constexpr std::uint32_t kTile = 64;

void run(const CpuArgs& args) {
  const std::uint32_t f = args.dim(kSymbols["dim:f"]), e = args.dim(kSymbols["dim:e"]), d = args.dim(kSymbols["dim:d"]),
                      k = args.dim(kSymbols["dim:k"]), t = args.wg[0];
  const auto w_dtype = static_cast<DType>(args.symbols[kSymbols["dtype:down_w"]]),
             x_dtype = static_cast<DType>(args.symbols[kSymbols["dtype:x"]]);
  const std::uint32_t begin = args.wg[1] * kTile, end = std::min(d, begin + kTile);
  float acc[kTile] = {}, y[kTile];
  for (std::uint32_t j = 0; j < k; ++j) {
    const auto id = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(Operand::ids)[t * k + j]);
    const float weight =
        moe_weight(args.buffer<const float>(Operand::weights), args.buffer<const std::int32_t>(Operand::ids),
                   args.buffer<const float>(Operand::expert_scale), e, t * k + j);
    if (id >= e) {
      std::fill_n(y, kTile, NAN);
    } else {
      linear_rows(
          {args.buffer<const std::byte>(Operand::down_w) + std::uint64_t{id} * args.symbols[kSymbols["pitch:down_w"]],
           w_dtype, args.is_packed(Operand::down_w), d, nullptr,
           args.buffer<const std::byte>(Operand::x) + (std::uint64_t{t} * k + j) * row_bytes(x_dtype, f), x_dtype, 0, f,
           1, y_before(y, begin), d, reinterpret_cast<float*>(args.lds), args.set},
          begin, end);
    }
    add_scaled(weight, y, acc, end - begin);
  }
  float* hidden = args.buffer<float>(Operand::hidden) + std::uint64_t{t} * d + begin;
  for (std::uint32_t i = 0; i < end - begin; ++i) hidden[i] = hidden[i] + acc[i];
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_down_acc;
const CpuKernel kCpuKernel_moe_down_acc{
    "MOE_DOWN_ACC",     run,
    kSymbols,           {{"n"}, {"d", kTile}},
    KeyTypes::kWeights, [](const std::uint32_t* s) { return std::uint64_t{s[kSymbols["dim:f"]]} * 4; }};

}  // namespace zinc_rt::cpu

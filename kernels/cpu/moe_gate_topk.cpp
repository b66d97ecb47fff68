// This is the CPU reference kernel of the op MOE_GATE_TOPK, which computes the router's logits = LINEAR(x, gate_w) +
// bias, and a likelihood p of each of the e experts: the softmax over all logits (gating 0), or the sigmoid of each
// (gating 1). The n_used best experts are chosen (of equal ones the lower id) and written best first, with their
// likelihoods as weights. If renormalize is 1, the weights are divided by their sum, unless the sum is less than 2^-125
// (kernels/common/router.h). Then all weights are multiplied by `scale`.
// Which expert is better: the one with the larger logit; with choice_bias or several groups, the one with the larger
// score s = p + choice_bias, where a NaN counts as minus infinity. The experts form `groups` groups of e / groups
// neighbours. A group's score is the sum of its two largest s. Only experts of the groups_used best groups (of equal
// ones the lower) may be chosen.
// Shapes: x [n, d], gate_w [e, d], bias, choice_bias [e] or absent, logits [n, e], ids, weights [n, n_used].
// Order of sums: softmax takes the maximum, exp, and the sum in 16 lanes (lane = expert mod 16), folded, and multiplies
//   by the sum's reciprocal. The sum of the chosen likelihoods runs from the best expert on. A group's score is its
//   largest s plus its second largest.
#include <algorithm>

#include "base/name_list.h"
#include "kernels/common/fold.h"
#include "kernels/common/operands.h"
#include "kernels/common/router.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {

float sum_lanes(const float* x, std::uint32_t n) {
  float lanes[16] = {};
  for (std::uint32_t i = 0; i < n; ++i) lanes[i % 16] = lanes[i % 16] + x[i];
  return fold16(lanes);
}

namespace {

using Operand = operand::MoeGateTopk;

// Computes is_out[g] for each group of experts: whether it is none of the groups_used best ones. best: room for one
// float per group.
void leave_best_groups(const float* scores, std::uint32_t e, const push::MoeGateTopk& c, float* best, bool* is_out) {
  const std::uint32_t each = e / c.groups;
  for (std::uint32_t g = 0; g < c.groups; ++g) {
    float largest = -__builtin_inff(), second = -__builtin_inff();
    for (std::uint32_t i = g * each; i < (g + 1) * each; ++i) {
      second = scores[i] > largest ? largest : scores[i] > second ? scores[i] : second;
      largest = scores[i] > largest ? scores[i] : largest;
    }
    best[g] = each > 1 ? largest + second : largest;
    is_out[g] = true;
  }
  for (std::uint32_t j = 0; j < c.groups_used; ++j) {
    std::uint32_t next = c.groups;
    for (std::uint32_t g = 0; g < c.groups; ++g)
      if (is_out[g] && (next == c.groups || best[g] > best[next])) next = g;
    is_out[next] = false;
  }
}

constexpr NameList kSymbols{"dim:d", "dim:e", "dtype:gate_w", "dtype:x"};

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::MoeGateTopk>();
  const std::uint32_t d = args.dim(kSymbols["dim:d"]), e = args.dim(kSymbols["dim:e"]), t = args.wg[0];
  const auto x_dtype = static_cast<DType>(args.symbols[kSymbols["dtype:x"]]);
  auto* scratch = reinterpret_cast<float*>(args.lds);
  float *p = scratch + d, *scores = p + e, *of_groups = scores + e;
  auto* is_out = reinterpret_cast<bool*>(of_groups + c.groups);
  const float* choice_bias = args.buffer<const float>(Operand::choice_bias);
  float* logits = args.buffer<float>(Operand::logits) + std::uint64_t{t} * e;
  auto* ids = args.buffer<std::int32_t>(Operand::ids) + std::uint64_t{t} * c.n_used;
  float* weights = args.buffer<float>(Operand::weights) + std::uint64_t{t} * c.n_used;
  linear_rows({args.buffers[Operand::gate_w], static_cast<DType>(args.symbols[kSymbols["dtype:gate_w"]]),
               args.is_packed(Operand::gate_w), e, args.buffer<const float>(Operand::bias),
               args.buffer<const std::byte>(Operand::x) + t * row_bytes(x_dtype, d), x_dtype, 0, d, 1, logits, e,
               scratch, args.set},
              0, e);
  if (c.gating == push::kSigmoid) {
    for (std::uint32_t i = 0; i < e; ++i) p[i] = exact::sigmoid(logits[i]);
  } else {
    const float max = logits[argmax_row(logits, e)];
    for (std::uint32_t i = 0; i < e; ++i) p[i] = exact::exp(logits[i] - max);
    const float inverse = exact::rcp(sum_lanes(p, e));
    for (std::uint32_t i = 0; i < e; ++i) p[i] = p[i] * inverse;
  }
  std::fill_n(is_out, c.groups, false);
  const float* better = logits;
  if (choice_bias != nullptr || c.groups > 1) {
    better = scores;
    for (std::uint32_t i = 0; i < e; ++i) {
      const float s = choice_bias != nullptr ? p[i] + choice_bias[i] : p[i];
      scores[i] = s == s ? s : -__builtin_inff();
    }
    leave_best_groups(scores, e, c, of_groups, is_out);
  }
  for (std::uint32_t j = 0; j < c.n_used; ++j) {
    std::uint32_t best = e;
    for (std::uint32_t i = 0; i < e; ++i) {
      if (is_out[i / (e / c.groups)] || std::find(ids, ids + j, static_cast<std::int32_t>(i)) != ids + j) continue;
      if (best == e || better[i] > better[best]) best = i;
    }
    ids[j] = static_cast<std::int32_t>(best);
    weights[j] = p[best];
  }
  if (c.renormalize != 0) {
    float sum = 0.0f;
    for (std::uint32_t j = 0; j < c.n_used; ++j) sum = sum + weights[j];
    const float r = inverse_of_weights(sum);
    for (std::uint32_t j = 0; j < c.n_used; ++j) weights[j] = weights[j] * r;
  }
  if (c.scale != 1.0f)
    for (std::uint32_t j = 0; j < c.n_used; ++j) weights[j] = weights[j] * c.scale;
}

}  // namespace

extern const CpuKernel kCpuKernel_moe_gate_topk;
const CpuKernel kCpuKernel_moe_gate_topk{
    "MOE_GATE_TOPK", run, kSymbols, {{"n"}, {}}, KeyTypes::kWeights, [](const std::uint32_t* s) {
      // A row of x, and for each expert its likelihood, its score, and, as there may be as many groups, its group's
      // score and mark.
      return (std::uint64_t{s[kSymbols["dim:d"]]} + 4 * std::uint64_t{s[kSymbols["dim:e"]]}) * 4;
    }};

}  // namespace zinc_rt::cpu

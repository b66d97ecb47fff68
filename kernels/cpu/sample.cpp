// This is the CPU reference kernel of the op SAMPLE, which draws one token for each row of logits.
// Shapes: logits [n, v]; params [n, 18 words], a SampleParams for each row; history [h], the tokens of all rows so far;
//   bias [b, 2], pairs (token id, float) of all rows; mask [m], the words of all rows; token [n].
//
// These are the steps for a row, where l is its logits and i counts candidates from 0:
//   0 Mask, if the row has one: the logits of tokens that the mask forbids become minus infinity.
//   1 Bias: the float of each pair in `bias` is added to its token's logit, in the order of the pairs. Minus infinity
//     forbids a token.
//   2 Penalties, once for each token of the row's history.
//     Repetition, for tokens of the prompt and generated ones: a positive logit is multiplied by 1/p, any other by p.
//     Presence, then count * frequency, are subtracted for generated tokens.
//   3 If the temperature is 0, or below 2^-20, which has the same result: the token with the largest logit is picked,
//     on a tie the lower id, and steps 4 and 5 are skipped.
//     Else l = l * (1/temperature), and tokens become candidates in the order (l descending, id ascending).
//   4 Cuts, one after another:
//     top_k keeps the first k candidates.
//     p_i = exp(l_i - l_0), so p_0 = 1.
//     top_p keeps the shortest prefix whose sum of p reaches top_p of the total.
//     min_p drops the candidates with p_i < min_p.
//     typical_p keeps the candidates whose surprise is nearest to the mean: with d_i = l_i - l_0 and
//     m = sum(p_i * d_i) / sum(p_i), the first ones in the order (|m - d_i| ascending, then the former order), until
//     their sum of p reaches typical_p of the total of the remaining candidates.
//   5 Draw: u = Philox(seed, position) in [0, 1); the first i whose running sum of p exceeds u * the total of the
//     remaining candidates.
// A row whose largest l is not finite (NaN everywhere, minus infinity everywhere, or infinity anywhere) returns
// kSampleNone. NaN logits come last in the order and are never drawn.
// Order of sums: serial, in the order of candidates (rule 7).
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/common/philox.h"
#include "kernels/common/sample_params.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::Sample;
constexpr NameList kSymbols{"dim:v"};

struct Candidate {
  float logit;
  std::uint32_t id;
};

void apply_mask(const SampleParams& p, const std::uint32_t* words, float* logits, std::uint32_t v) {
  for (std::uint32_t w = 0; 32 * w < v; ++w) {
    const std::uint32_t bits = w < p.n_mask_words ? words[w] : 0, end = std::min(v, 32 * w + 32);
    if (bits == ~0u) continue;
    for (std::uint32_t id = 32 * w; id < end; ++id)
      if ((bits >> id % 32 & 1) == 0) logits[id] = -INFINITY;
  }
}

void add_bias(const SampleParams& p, const std::uint32_t* entries, float* logits, std::uint32_t v) {
  for (std::uint32_t i = 0; i < p.n_bias; ++i) {
    const std::uint32_t id = entries[2 * i];
    if (id < v) logits[id] = logits[id] + ZRT_BITS_FLOAT(entries[2 * i + 1]);
  }
}

void penalize(const SampleParams& p, const std::int32_t* history, std::uint32_t* counts, float* logits,
              std::uint32_t v) {
  // counts[id] is how often the token was generated. This bit is set once the token's penalties have been applied.
  constexpr std::uint32_t kSeen = 0x80000000u;
  std::fill_n(counts, v, 0u);
  for (std::uint32_t i = p.n_prompt; i < p.n_history; ++i)
    if (static_cast<std::uint32_t>(history[i]) < v) ++counts[history[i]];
  const float inverse = exact::rcp(p.repetition_penalty);
  for (std::uint32_t i = 0; i < p.n_history; ++i) {
    const auto id = static_cast<std::uint32_t>(history[i]);
    if (id >= v || (counts[id] & kSeen) != 0) continue;
    float& l = logits[id];
    if (p.repetition_penalty != 1.0f) l = l > 0.0f ? l * inverse : l * p.repetition_penalty;
    if (counts[id] > 0)
      l = __builtin_fmaf(-static_cast<float>(counts[id]), p.frequency_penalty, l - p.presence_penalty);
    counts[id] |= kSeen;
  }
}

// Applies typical_p: moves the candidates that remain to the front of `all` and returns their number. On entry the
// candidates' member `logit` contains p_i, and `distance` contains d_i.
std::uint32_t keep_typical(float typical_p, Candidate* all, std::uint32_t n, float* distance, std::uint32_t* order) {
  float total = 0.0f, sum = 0.0f;
  for (std::uint32_t i = 0; i < n; ++i) {
    order[i] = i;
    total = total + all[i].logit;
    if (all[i].logit > 0.0f) sum = __builtin_fmaf(all[i].logit, distance[i], sum);
  }
  if (!(total > 0.0f)) return n;
  const float mean = sum * exact::rcp(total);
  for (std::uint32_t i = 0; i < n; ++i) {
    const float d = mean - distance[i];
    distance[i] = all[i].logit > 0.0f ? (d < 0.0f ? -d : d) : INFINITY;
  }
  std::sort(order, order + n, [&](std::uint32_t a, std::uint32_t b) {
    return distance[a] < distance[b] || (distance[a] == distance[b] && a < b);
  });
  const float wanted = total * typical_p;
  std::uint32_t kept = 0;
  for (sum = 0.0f; kept < n && (kept == 0 || sum < wanted); ++kept) sum = sum + all[order[kept]].logit;
  std::sort(order, order + kept);
  for (std::uint32_t i = 0; i < kept; ++i) all[i] = all[order[i]];
  return kept;
}

// Moves the candidates that can still be drawn to the front, keeping their order, and returns their number. A candidate
// less than 2^-24 times as likely as the first is less than half of the last bit of any sum with the first. So it
// changes no sum and is never drawn. It may change the mean of typical_p, so this function is not used with typical_p.
// NaN stays.
std::uint32_t keep_likely(Candidate* all, std::uint32_t v) {
  constexpr float kLeast = -17.0f;  // exp(-17) = 0.69 * 2^-24
  float top = -INFINITY;
  for (std::uint32_t i = 0; i < v; ++i) top = all[i].logit > top ? all[i].logit : top;
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < v; ++i) {
    const Candidate c = all[i];
    all[kept] = c;
    kept += c.logit - top < kLeast ? 0 : 1;
  }
  return kept;
}

// Returns a sort key: ascending keys have the order of candidates. Both zeros have the same key, and NaN comes last.
std::uint32_t sort_key(float logit) {
  if (logit != logit) return 0xffffffffu;
  const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0f);
  return (bits & 0x80000000u) != 0 ? bits : ~bits & 0x7fffffffu;
}

// Sorts candidates with a radix sort by the bytes of the key, beginning with the lowest. The sort is stable. Ids ascend
// before it, so the ids of equal logits ascend after it. `spare` has room for n candidates.
void sort(Candidate* all, Candidate* spare, std::uint32_t n) {
  std::uint32_t begin[4][256] = {};
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t key = sort_key(all[i].logit);
    for (int byte = 0; byte < 4; ++byte) ++begin[byte][key >> 8 * byte & 255];
  }
  for (int byte = 0; byte < 4; ++byte) {
    std::uint32_t sum = 0;
    for (auto& entry : begin[byte]) sum += std::exchange(entry, sum);
    for (std::uint32_t i = 0; i < n; ++i) spare[begin[byte][sort_key(all[i].logit) >> 8 * byte & 255]++] = all[i];
    std::swap(all, spare);
  }
}

// Picks a token for a temperature above 0 and returns its id: it scales, filters and draws (steps 3 to 5 of the file's
// head). `all` holds v candidates, one per entry of the vocabulary. spare, distance and order are scratch memory for v
// entries each.
std::int32_t draw(const SampleParams& p, Candidate* all, std::uint32_t v, Candidate* spare, float* distance,
                  std::uint32_t* order) {
  const float inverse = exact::rcp(p.temperature);
  for (std::uint32_t i = 0; i < v; ++i) all[i].logit = all[i].logit * inverse;
  std::uint32_t n = v;
  if (!(p.typical_p < 1.0f)) n = keep_likely(all, v);
  sort(all, spare, n);
  if (p.top_k > 0) n = std::min(n, p.top_k);
  const float top = all[0].logit;
  if (!std::isfinite(top)) return kSampleNone;
  float total = 0.0f;
  for (std::uint32_t i = 0; i < n; ++i) {
    distance[i] = all[i].logit - top;
    const float probability = exact::exp(distance[i]);
    all[i].logit = probability == probability ? probability : 0.0f;
    total = total + all[i].logit;
  }
  if (p.top_p < 1.0f) {
    const float wanted = total * p.top_p;
    float sum = 0.0f;
    std::uint32_t kept = 0;
    while (kept < n && (kept == 0 || sum < wanted)) sum = sum + all[kept++].logit;
    n = kept;
  }
  while (n > 1 && all[n - 1].logit < p.min_p) --n;
  if (p.typical_p < 1.0f) n = keep_typical(p.typical_p, all, n, distance, order);
  total = 0.0f;
  for (std::uint32_t i = 0; i < n; ++i) total = total + all[i].logit;
  const float u = philox::uniform(p.seed_lo, p.seed_hi, p.position) * total;
  float sum = 0.0f;
  for (std::uint32_t i = 0; i < n; ++i) {
    sum = sum + all[i].logit;
    if (sum > u) return static_cast<std::int32_t>(all[i].id);
  }
  return static_cast<std::int32_t>(all[0].id);
}

std::int32_t largest(const float* logits, std::uint32_t v) {
  const std::uint32_t best = argmax_row(logits, v);
  return std::isfinite(logits[best]) ? static_cast<std::int32_t>(best) : kSampleNone;
}

void run(const CpuArgs& args) {
  const std::uint32_t v = args.dim(kSymbols["dim:v"]), r = args.wg[0];
  const SampleParams p = args.buffer<const SampleParams>(Operand::params)[r];
  const float* logits = args.buffer<const float>(Operand::logits) + std::uint64_t{r} * v;
  auto* out = args.buffer<std::int32_t>(Operand::token) + r;
  const bool has_penalties = p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f;
  const bool is_greedy = !(p.temperature >= 0x1p-20f);
  if (is_greedy && !has_penalties && p.n_bias == 0 && p.n_mask_words == 0) {
    *out = largest(logits, v);
    return;
  }
  auto* all = reinterpret_cast<Candidate*>(args.lds);
  auto* spare = all + v;
  auto* work = reinterpret_cast<float*>(spare + v);
  auto* counts = reinterpret_cast<std::uint32_t*>(work + v);
  std::copy_n(logits, v, work);
  if (p.n_mask_words > 0) apply_mask(p, args.buffer<const std::uint32_t>(Operand::mask) + p.mask_begin, work, v);
  if (p.n_bias > 0)
    add_bias(p, args.buffer<const std::uint32_t>(Operand::bias) + std::size_t{2} * p.bias_begin, work, v);
  if (has_penalties) penalize(p, args.buffer<const std::int32_t>(Operand::history) + p.history_begin, counts, work, v);
  if (is_greedy) {
    *out = largest(work, v);
    return;
  }
  for (std::uint32_t i = 0; i < v; ++i) all[i] = {work[i], i};
  *out = draw(p, all, v, spare, work, counts);
}

}  // namespace

extern const CpuKernel kCpuKernel_sample;
const CpuKernel kCpuKernel_sample{
    "SAMPLE",        run,
    kSymbols,        {{"n"}, {}},
    KeyTypes::kNone, [](const std::uint32_t* s) { return std::uint64_t{s[kSymbols["dim:v"]]} * 24; }};

}  // namespace zinc_rt::cpu

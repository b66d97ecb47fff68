// SAMPLE: one token a row from logits [n, v], by SampleParams [n, 16 words] and the row's tokens so far in history [h].
//   1 penalties, once for each token seen: repetition (positive logits times 1/p, others times p; prompt and generated
//   tokens), then presence
//     and count * frequency (generated tokens)
//   2 temperature 0 (or below 2^-20, where it comes to the same): the largest, ties to the lower id. Else l = l *
//   (1/temperature), and candidates in the order (l descending, id ascending) 3 top_k keeps the first k; p_i = exp(l_i
//   - l_0); top_p keeps the shortest prefix whose sum reaches top_p of the total;
//     min_p drops those with p_i < min_p (p_0 = 1)
//   4 u = Philox(seed, position) in [0, 1); the first i whose running sum exceeds u * total of what is left
// Order: sums run serially in candidate order. NaN logits sort last and are never drawn.
#include <algorithm>

#include "kernels/common/philox.h"
#include "kernels/common/sample_params.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

struct Candidate {
  float logit;
  std::uint32_t id;
};

void penalize(const SampleParams& p, const std::int32_t* history, std::uint32_t* counts, float* logits,
              std::uint32_t v) {
  constexpr std::uint32_t kSeen =
      0x80000000u;  // counts: times generated, plus this bit once the token is done or in the prompt
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

std::uint32_t draw(const SampleParams& p, Candidate* all, std::uint32_t v) {
  const float inverse = exact::rcp(p.temperature);
  for (std::uint32_t i = 0; i < v; ++i) all[i].logit = all[i].logit * inverse;
  const auto rank = [](const Candidate& a, const Candidate& b) {
    const bool a_nan = a.logit != a.logit, b_nan = b.logit != b.logit;
    if (a_nan || b_nan) return a_nan != b_nan ? b_nan : a.id < b.id;
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  };
  std::uint32_t n = p.top_k > 0 && p.top_k < v ? p.top_k : v;
  std::partial_sort(all, all + n, all + v, rank);
  const float top = all[0].logit;
  float total = 0.0f;
  for (std::uint32_t i = 0; i < n; ++i) {
    const float probability = exact::exp(all[i].logit - top);
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
  total = 0.0f;
  for (std::uint32_t i = 0; i < n; ++i) total = total + all[i].logit;
  const float u = philox::uniform(p.seed_lo, p.seed_hi, p.position) * total;
  float sum = 0.0f;
  for (std::uint32_t i = 0; i < n; ++i) {
    sum = sum + all[i].logit;
    if (sum > u) return all[i].id;
  }
  return all[0].id;
}

void run(const CpuArgs& args) {
  const std::uint32_t v = args.dim(0), r = args.wg[0];
  const SampleParams p = args.buffer<const SampleParams>(1)[r];
  const float* logits = args.buffer<const float>(0) + std::uint64_t{r} * v;
  auto* out = args.buffer<std::int32_t>(3) + r;
  const bool has_penalties = p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f;
  const bool is_greedy = !(p.temperature >= 0x1p-20f);
  if (is_greedy && !has_penalties) {
    *out = static_cast<std::int32_t>(argmax_row(logits, v));
    return;
  }
  auto* all = reinterpret_cast<Candidate*>(args.lds);
  auto* work = reinterpret_cast<float*>(all + v);
  auto* counts = reinterpret_cast<std::uint32_t*>(work + v);
  std::copy_n(logits, v, work);
  if (has_penalties) penalize(p, args.buffer<const std::int32_t>(2) + p.history_begin, counts, work, v);
  if (is_greedy) {
    *out = static_cast<std::int32_t>(argmax_row(work, v));
    return;
  }
  for (std::uint32_t i = 0; i < v; ++i) all[i] = {work[i], i};
  *out = static_cast<std::int32_t>(draw(p, all, v));
}

}  // namespace

extern const CpuKernel kCpuKernel_sample;
const CpuKernel kCpuKernel_sample{"SAMPLE",        run,
                                  {"dim:v"},       {{"n"}, {}},
                                  KeyTypes::kNone, [](const std::uint32_t* s) { return std::uint64_t{s[0]} * 16; }};

}  // namespace zinc_rt::cpu

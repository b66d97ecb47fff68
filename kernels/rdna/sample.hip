// SAMPLE (kernels/cpu/sample.cpp has the steps and the order of sums): a wave a row. The largest logit is found by all
// lanes; everything else is serial, as its sums are, and one lane does it.
#include "kernels/rdna/largest.h"

namespace zinc_rt::rdna {

constexpr int32_t kNone = -1;  // kSampleNone

struct Candidate {
  float logit;
  uint32_t id;
};
// Of a row of v logits: cpp/ring/amd/ops.cpp reserves it.
struct Work {
  Candidate *all, *spare;  // v each
  float* logits;           // later distances
  uint32_t* counts;        // later an order
};

ZRT_DEVICE float infinity() {
  return f32_from_bits(0x7F800000u);
}
ZRT_DEVICE bool is_finite(float x) {
  return (f32_bits(x) & 0x7F800000u) != 0x7F800000u;
}

ZRT_DEVICE void apply_mask(const SampleParams& p, const uint32_t* words, float* logits, uint32_t v) {
  for (uint32_t id = 0; id < v; ++id)
    if (id / 32 >= p.n_mask_words || (words[id / 32] >> id % 32 & 1) == 0) logits[id] = -infinity();
}

ZRT_DEVICE void add_bias(const SampleParams& p, const uint32_t* entries, float* logits, uint32_t v) {
  for (uint32_t i = 0; i < p.n_bias; ++i) {
    const uint32_t id = entries[2 * i];
    if (id < v) logits[id] = logits[id] + f32_from_bits(entries[2 * i + 1]);
  }
}

ZRT_DEVICE void penalize(const SampleParams& p, const int32_t* history, uint32_t* counts, float* logits, uint32_t v) {
  constexpr uint32_t kSeen = 0x80000000u;
  for (uint32_t i = 0; i < v; ++i) counts[i] = 0;
  for (uint32_t i = p.n_prompt; i < p.n_history; ++i)
    if ((uint32_t)history[i] < v) ++counts[history[i]];
  const float inverse = exact::rcp(p.repetition_penalty);
  for (uint32_t i = 0; i < p.n_history; ++i) {
    const auto id = (uint32_t)history[i];
    if (id >= v || (counts[id] & kSeen) != 0) continue;
    float l = logits[id];
    if (p.repetition_penalty != 1.0f) l = l > 0.0f ? l * inverse : l * p.repetition_penalty;
    if (counts[id] > 0) l = __builtin_fmaf(-(float)counts[id], p.frequency_penalty, l - p.presence_penalty);
    logits[id] = l;
    counts[id] |= kSeen;
  }
}

// Sorts an order of indices by is_before, which has no ties: a heap.
template <class IsBefore>
ZRT_DEVICE void sort_order(uint32_t* order, uint32_t n, const IsBefore& is_before) {
  const auto sift = [&](uint32_t root, uint32_t end) {
    for (;;) {
      uint32_t child = 2 * root + 1;
      if (child >= end) return;
      if (child + 1 < end && is_before(order[child], order[child + 1])) ++child;
      if (!is_before(order[root], order[child])) return;
      const uint32_t moved = order[root];
      order[root] = order[child], order[child] = moved, root = child;
    }
  };
  for (uint32_t root = n / 2; root > 0; --root) sift(root - 1, n);
  for (uint32_t end = n; end > 1; --end) {
    const uint32_t moved = order[0];
    order[0] = order[end - 1], order[end - 1] = moved;
    sift(0, end - 1);
  }
}

ZRT_DEVICE uint32_t keep_typical(float typical_p, Candidate* all, uint32_t n, float* distance, uint32_t* order) {
  float total = 0.0f, sum = 0.0f;
  for (uint32_t i = 0; i < n; ++i) {
    order[i] = i;
    total = total + all[i].logit;
    if (all[i].logit > 0.0f) sum = __builtin_fmaf(all[i].logit, distance[i], sum);
  }
  if (!(total > 0.0f)) return n;
  const float mean = sum * exact::rcp(total);
  for (uint32_t i = 0; i < n; ++i) {
    const float d = mean - distance[i];
    distance[i] = all[i].logit > 0.0f ? (d < 0.0f ? -d : d) : infinity();
  }
  sort_order(order, n, [&](uint32_t a, uint32_t b) {
    return distance[a] < distance[b] || (distance[a] == distance[b] && a < b);
  });
  const float wanted = total * typical_p;
  uint32_t kept = 0;
  for (sum = 0.0f; kept < n && (kept == 0 || sum < wanted); ++kept) sum = sum + all[order[kept]].logit;
  sort_order(order, kept, [](uint32_t a, uint32_t b) { return a < b; });
  for (uint32_t i = 0; i < kept; ++i) all[i] = all[order[i]];
  return kept;
}

ZRT_DEVICE uint32_t keep_likely(Candidate* all, uint32_t v) {
  constexpr float kLeast = -17.0f;
  float top = -infinity();
  for (uint32_t i = 0; i < v; ++i) top = all[i].logit > top ? all[i].logit : top;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < v; ++i) {
    const Candidate c = all[i];
    all[kept] = c;
    kept += c.logit - top < kLeast ? 0 : 1;
  }
  return kept;
}

ZRT_DEVICE uint32_t sort_key(float logit) {
  if (logit != logit) return 0xffffffffu;
  const uint32_t bits = f32_bits(logit + 0.0f);
  return (bits & 0x80000000u) != 0 ? bits : ~bits & 0x7fffffffu;
}

// A stable radix sort by four bytes; begin has 256 words.
ZRT_DEVICE void sort(Candidate* all, Candidate* spare, uint32_t n, uint32_t* begin) {
  for (int shift = 0; shift < 32; shift += 8) {
    for (uint32_t i = 0; i < 256; ++i) begin[i] = 0;
    for (uint32_t i = 0; i < n; ++i) ++begin[sort_key(all[i].logit) >> shift & 255];
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 256; ++i) {
      const uint32_t count = begin[i];
      begin[i] = sum;
      sum += count;
    }
    for (uint32_t i = 0; i < n; ++i) spare[begin[sort_key(all[i].logit) >> shift & 255]++] = all[i];
    Candidate* other = all;
    all = spare, spare = other;
  }
}

ZRT_DEVICE int32_t draw(const SampleParams& p, const Work& w, uint32_t v, uint32_t* begin) {
  Candidate* all = w.all;
  const float inverse = exact::rcp(p.temperature);
  for (uint32_t i = 0; i < v; ++i) all[i].logit = all[i].logit * inverse;
  uint32_t n = v;
  if (!(p.typical_p < 1.0f)) n = keep_likely(all, v);
  sort(all, w.spare, n, begin);
  if (p.top_k > 0) n = n < p.top_k ? n : p.top_k;
  const float top = all[0].logit;
  if (!is_finite(top)) return kNone;
  float total = 0.0f;
  for (uint32_t i = 0; i < n; ++i) {
    w.logits[i] = all[i].logit - top;
    const float probability = exact::exp(w.logits[i]);
    all[i].logit = probability == probability ? probability : 0.0f;
    total = total + all[i].logit;
  }
  if (p.top_p < 1.0f) {
    const float wanted = total * p.top_p;
    float sum = 0.0f;
    uint32_t kept = 0;
    while (kept < n && (kept == 0 || sum < wanted)) sum = sum + all[kept++].logit;
    n = kept;
  }
  while (n > 1 && all[n - 1].logit < p.min_p) --n;
  if (p.typical_p < 1.0f) n = keep_typical(p.typical_p, all, n, w.logits, w.counts);
  total = 0.0f;
  for (uint32_t i = 0; i < n; ++i) total = total + all[i].logit;
  const float u = philox::uniform(p.seed_lo, p.seed_hi, p.position) * total;
  float sum = 0.0f;
  for (uint32_t i = 0; i < n; ++i) {
    sum = sum + all[i].logit;
    if (sum > u) return (int32_t)all[i].id;
  }
  return (int32_t)all[0].id;
}

}  // namespace zinc_rt::rdna

ZRT_KERNEL(sample, 32) {
  using namespace zinc_rt;
  using Operand = operand::Sample;
  __shared__ uint32_t begin[256];
  const uint32_t v = rdna::dim(args, 0), r = rdna::group(0);
  const SampleParams& p = rdna::buffer<const SampleParams>(args, Operand::params)[r];
  const float* logits = rdna::buffer<const float>(args, Operand::logits) + (uint64_t)r * v;
  int32_t* out = rdna::buffer<int32_t>(args, Operand::token) + r;
  const bool has_penalties = p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f;
  const bool is_greedy = !(p.temperature >= 0x1p-20f);
  if (is_greedy && !has_penalties && p.n_bias == 0 && p.n_mask_words == 0) {
    const uint32_t best = rdna::largest_index(logits, v);
    if (rdna::thread() == 0) *out = rdna::is_finite(logits[best]) ? (int32_t)best : rdna::kNone;
    return;
  }
  if (rdna::thread() != 0) return;
  constexpr uint32_t kBytesAValue = 24;
  uint8_t* memory = rdna::scratch<uint8_t>(args) + (uint64_t)r * v * kBytesAValue;
  rdna::Work work{(rdna::Candidate*)memory, (rdna::Candidate*)memory + v, (float*)(memory + (uint64_t)v * 16),
                  (uint32_t*)(memory + (uint64_t)v * 20)};
  for (uint32_t i = 0; i < v; ++i) work.logits[i] = logits[i];
  if (p.n_mask_words > 0)
    rdna::apply_mask(p, rdna::buffer<const uint32_t>(args, Operand::mask) + p.mask_begin, work.logits, v);
  if (p.n_bias > 0)
    rdna::add_bias(p, rdna::buffer<const uint32_t>(args, Operand::bias) + (uint64_t)2 * p.bias_begin, work.logits, v);
  if (has_penalties)
    rdna::penalize(p, rdna::buffer<const int32_t>(args, Operand::history) + p.history_begin, work.counts, work.logits,
                   v);
  if (is_greedy) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < v; ++i)
      if (work.logits[i] > work.logits[best] || work.logits[best] != work.logits[best]) best = i;
    *out = rdna::is_finite(work.logits[best]) ? (int32_t)best : rdna::kNone;
    return;
  }
  for (uint32_t i = 0; i < v; ++i) work.all[i] = {work.logits[i], i};
  *out = rdna::draw(p, work, v, begin);
}

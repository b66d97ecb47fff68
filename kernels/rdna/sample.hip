// Computes SAMPLE: draws one token for each row of logits. kernels/cpu/sample.cpp has the steps and their order of
// sums. Each workgroup computes one row. All its threads share the work over the vocabulary, and the sort. Sums over
// the candidates that remain have a serial order, so one thread computes them.
#include "kernels/rdna/largest.h"

namespace zinc_rt::rdna {

constexpr int32_t kNone = -1;  // kSampleNone of kernels/common/sample_params.h

struct Candidate {
  float logit;
  uint32_t id;
};
// Scratch memory for a row of v logits, 24 bytes per logit (reserved by cpp/ring/amd/ops.cpp): two lists of v
// candidates, the logits after mask, bias and penalties, and the number of times that each token was generated.
struct Work {
  Candidate *all, *spare;  // v candidates each
  float* logits;
  uint32_t* counts;  // they follow the logits directly: keep_typical() uses both as one list of candidates
};

ZRT_DEVICE float infinity() {
  return f32_from_bits(0x7F800000u);
}
ZRT_DEVICE bool is_finite(float x) {
  return (f32_bits(x) & 0x7F800000u) != 0x7F800000u;
}

constexpr uint32_t kThreads = 256, kWaves = kThreads / kWave;

struct SampleShared {
  uint32_t begin[256];           // sort(): where candidates with each value of the present byte begin
  // sort(): how many candidates of each wave have each value of the present byte, then where the wave puts them.
  uint32_t counts[kWaves][256];
  float largest[kWaves];
  float value;  // a number that one thread computes for all
  uint32_t n;
};

// Returns how many of the lanes in `mask` come before this lane.
ZRT_DEVICE uint32_t lanes_below(uint32_t mask) {
  return (uint32_t)__builtin_popcount(mask & ((1u << (thread() % kWave)) - 1));
}

// All threads of the workgroup call each of the functions below. What a function writes may be read when it returns.
// apply_mask() sets the logits of forbidden tokens to minus infinity.
ZRT_DEVICE void apply_mask(const SampleParams& p, const uint32_t* words, float* logits, uint32_t v) {
  for (uint32_t id = thread(); id < v; id += kThreads)
    if (id / 32 >= p.n_mask_words || (words[id / 32] >> id % 32 & 1) == 0) logits[id] = -infinity();
  workgroup_barrier();
}

// Adds the entries (token id, bias) to the logits. One thread does it, because several entries may have the same id,
// and their order counts.
ZRT_DEVICE void add_bias(const SampleParams& p, const uint32_t* entries, float* logits, uint32_t v) {
  if (thread() == 0)
    for (uint32_t i = 0; i < p.n_bias; ++i) {
      const uint32_t id = entries[2 * i];
      if (id < v) logits[id] = logits[id] + f32_from_bits(entries[2 * i + 1]);
    }
  workgroup_barrier();
}

ZRT_DEVICE uint32_t fetch_add(uint32_t* at, uint32_t value) {
  return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
// Applies the penalties to the logits of the history's tokens. An atomic bit, kSeen, makes sure that each token is
// penalized by one thread only, however often it occurs.
ZRT_DEVICE void penalize(const SampleParams& p, const int32_t* history, uint32_t* counts, float* logits, uint32_t v) {
  constexpr uint32_t kSeen = 0x80000000u;
  for (uint32_t i = thread(); i < v; i += kThreads) counts[i] = 0;
  workgroup_barrier();
  for (uint32_t i = p.n_prompt + thread(); i < p.n_history; i += kThreads)
    if ((uint32_t)history[i] < v) fetch_add(&counts[history[i]], 1);
  workgroup_barrier();
  const float inverse = exact::rcp(p.repetition_penalty);
  for (uint32_t i = thread(); i < p.n_history; i += kThreads) {
    const auto id = (uint32_t)history[i];
    if (id >= v) continue;
    const uint32_t before = __hip_atomic_fetch_or(&counts[id], kSeen, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    if ((before & kSeen) != 0) continue;  // another thread penalizes this token
    float l = logits[id];
    if (p.repetition_penalty != 1.0f) l = l > 0.0f ? l * inverse : l * p.repetition_penalty;
    if (before > 0) l = __builtin_fmaf(-(float)before, p.frequency_penalty, l - p.presence_penalty);
    logits[id] = l;
  }
  workgroup_barrier();
}

// Copies those of n candidates for which is_kept(i) is true to `kept`, in their order. Returns their number.
template <class IsKept>
ZRT_DEVICE uint32_t compact(const Candidate* all, Candidate* kept, uint32_t n, const IsKept& is_kept,
                            SampleShared& shared) {
  const uint32_t lane = thread() % kWave, wave = thread() / kWave;
  uint32_t n_kept = 0;
  for (uint32_t first = 0; first < n; first += kThreads) {
    const uint32_t i = first + thread();
    const bool is_mine = i < n && is_kept(i < n ? i : n - 1);
    const uint32_t mask = __builtin_amdgcn_ballot_w32(is_mine);
    if (lane == 0) shared.counts[0][wave] = (uint32_t)__builtin_popcount(mask);
    workgroup_barrier();
    uint32_t before = n_kept;
    for (uint32_t w = 0; w < kWaves; ++w) {
      before += w < wave ? shared.counts[0][w] : 0;
      n_kept += shared.counts[0][w];
    }
    if (is_mine) kept[before + lanes_below(mask)] = all[i];
    workgroup_barrier();
  }
  return n_kept;
}

// Keeps the candidates whose logit is at most 17 below the largest. The others are less than 2^-24 times as likely, so
// they change no sum and are never drawn (kernels/cpu/sample.cpp, keep_likely). REQUIRES: typical_p is off.
ZRT_DEVICE uint32_t keep_likely(const Candidate* all, Candidate* kept, uint32_t v, SampleShared& shared) {
  constexpr float kLeast = -17.0f;
  const uint32_t lane = thread() % kWave, wave = thread() / kWave;
  float top = -infinity();
  for (uint32_t i = thread(); i < v; i += kThreads) top = all[i].logit > top ? all[i].logit : top;
  for (uint32_t other = 16; other > 0; other /= 2) {
    const float value = from_lane(top, lane ^ other);
    top = value > top ? value : top;
  }
  if (lane == 0) shared.largest[wave] = top;
  workgroup_barrier();
  for (uint32_t i = 0; i < kWaves; ++i) top = shared.largest[i] > top ? shared.largest[i] : top;
  return compact(all, kept, v, [&](uint32_t i) { return !(all[i].logit - top < kLeast); }, shared);
}

// Returns a number that is smaller the larger the logit is. A NaN has the largest number.
ZRT_DEVICE uint32_t sort_key(float logit) {
  if (logit != logit) return 0xffffffffu;
  const uint32_t bits = f32_bits(logit + 0.0f);
  return (bits & 0x80000000u) != 0 ? bits : ~bits & 0x7fffffffu;
}

// Sorts n candidates by ascending key. It is a radix sort that keeps the order of equal keys: one pass for each byte of
// the key, the lowest first. A pass counts how often each value of the byte occurs, and then moves the candidates to
// their places in tiles of 256, one candidate per thread. Within a tile, lower waves and lanes come first. The result
// is in `all`.
template <class Key>
ZRT_DEVICE void sort(Candidate* all, Candidate* spare, uint32_t n, const Key& key_of, SampleShared& shared) {
  const uint32_t me = thread(), wave = me / kWave;
  for (int shift = 0; shift < 32; shift += 8) {
    shared.begin[me] = 0;
    workgroup_barrier();
    for (uint32_t i = me; i < n; i += kThreads) fetch_add(&shared.begin[key_of(all[i]) >> shift & 255], 1);
    workgroup_barrier();
    const uint32_t own = shared.begin[me];
    for (uint32_t by = 1; by < 256; by *= 2) {
      const uint32_t before = me >= by ? shared.begin[me - by] : 0;
      workgroup_barrier();
      shared.begin[me] += before;
      workgroup_barrier();
    }
    uint32_t begin = shared.begin[me] - own;  // where the next candidate goes whose byte is `me`
    for (uint32_t first = 0; first < n; first += kThreads) {
      for (uint32_t w = 0; w < kWaves; ++w) shared.counts[w][me] = 0;
      workgroup_barrier();
      const uint32_t i = first + me;
      const Candidate c = all[i < n ? i : n - 1];
      const uint32_t digit = key_of(c) >> shift & 255;
      uint32_t same = __builtin_amdgcn_ballot_w32(i < n);
      for (uint32_t bit = 0; bit < 8; ++bit) {
        const bool is_set = (digit >> bit & 1) != 0;
        const uint32_t set = __builtin_amdgcn_ballot_w32(is_set);
        same &= is_set ? set : ~set;
      }
      const uint32_t rank = lanes_below(same);
      if (i < n && rank == 0) shared.counts[wave][digit] = (uint32_t)__builtin_popcount(same);
      workgroup_barrier();
      for (uint32_t w = 0; w < kWaves; ++w) {
        const uint32_t count = shared.counts[w][me];
        shared.counts[w][me] = begin;
        begin += count;
      }
      workgroup_barrier();
      if (i < n) spare[shared.counts[wave][digit] + rank] = c;
      workgroup_barrier();
    }
    Candidate* other = all;
    all = spare, spare = other;
  }
}

// Keeps the candidates whose surprise is nearest to the mean, until their probabilities reach typical_p of the total
// (typical_p in kernels/cpu/sample.cpp). Returns their number; they are in `spare`, in the order that they had. all:
// the candidates with probabilities in place of logits. distances: the logarithms of these; this memory and what
// follows it are then used as a list of n candidates.
ZRT_DEVICE uint32_t keep_typical(float typical_p, const Candidate* all, Candidate* spare, uint32_t n, float* distances,
                                 SampleShared& shared) {
  if (thread() == 0) {
    float total = 0.0f, sum = 0.0f;
    for (uint32_t i = 0; i < n; ++i) {
      total = total + all[i].logit;
      if (all[i].logit > 0.0f) sum = __builtin_fmaf(all[i].logit, distances[i], sum);
    }
    shared.value = total, shared.largest[0] = sum;
  }
  workgroup_barrier();
  const float total = shared.value, sum = shared.largest[0];
  if (!(total > 0.0f)) return compact(all, spare, n, [](uint32_t) { return true; }, shared);
  const float mean = sum * exact::rcp(total);
  for (uint32_t i = thread(); i < n; i += kThreads) {
    const float d = mean - distances[i];
    spare[i] = {all[i].logit > 0.0f ? (d < 0.0f ? -d : d + 0.0f) : infinity(), i};
  }
  workgroup_barrier();
  sort(spare, (Candidate*)distances, n, [](const Candidate& c) { return f32_bits(c.logit); }, shared);
  if (thread() == 0) {
    const float wanted = total * typical_p;
    float reached = 0.0f;
    uint32_t kept = 0;
    for (; kept < n && (kept == 0 || reached < wanted); ++kept) reached = reached + all[spare[kept].id].logit;
    shared.n = kept;
  }
  auto* is_kept = (uint32_t*)distances;
  for (uint32_t i = thread(); i < n; i += kThreads) is_kept[i] = 0;
  workgroup_barrier();
  for (uint32_t i = thread(); i < shared.n; i += kThreads) is_kept[spare[i].id] = 1;
  workgroup_barrier();
  return compact(all, spare, n, [&](uint32_t i) { return is_kept[i] != 0; }, shared);
}

// Returns the token that is drawn from a row whose temperature is not 0. The result is valid in thread 0 only.
ZRT_DEVICE int32_t draw(const SampleParams& p, const Work& w, uint32_t v, SampleShared& shared) {
  const float inverse = exact::rcp(p.temperature);
  Candidate *all = w.all, *spare = w.spare;
  for (uint32_t i = thread(); i < v; i += kThreads) all[i] = {w.logits[i] * inverse, i};
  workgroup_barrier();
  uint32_t n = v;
  if (!(p.typical_p < 1.0f)) {
    n = keep_likely(all, spare, v, shared);
    all = w.spare, spare = w.all;
  }
  sort(all, spare, n, [](const Candidate& c) { return sort_key(c.logit); }, shared);
  if (p.top_k > 0) n = n < p.top_k ? n : p.top_k;
  const float top = all[0].logit;
  if (!is_finite(top)) return kNone;
  workgroup_barrier();
  for (uint32_t i = thread(); i < n; i += kThreads) {
    w.logits[i] = all[i].logit - top;
    const float probability = exact::exp(w.logits[i]);
    all[i].logit = probability == probability ? probability : 0.0f;
  }
  workgroup_barrier();
  if (thread() == 0) {
    float total = 0.0f;
    for (uint32_t i = 0; i < n; ++i) total = total + all[i].logit;
    if (p.top_p < 1.0f) {
      const float wanted = total * p.top_p;
      float sum = 0.0f;
      uint32_t kept = 0;
      while (kept < n && (kept == 0 || sum < wanted)) sum = sum + all[kept++].logit;
      n = kept;
    }
    while (n > 1 && all[n - 1].logit < p.min_p) --n;
    shared.n = n;
  }
  workgroup_barrier();
  n = shared.n;
  workgroup_barrier();
  if (p.typical_p < 1.0f) {
    n = keep_typical(p.typical_p, all, spare, n, w.logits, shared);
    all = spare;
  }
  if (thread() != 0) return kNone;  // only thread 0 draws
  float total = 0.0f;
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

ZRT_KERNEL(sample, 256) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Operand = operand::Sample;
  __shared__ SampleShared shared;
  const uint32_t v = dim(args, symbol::Row::width), r = group(0);
  const SampleParams& p = buffer<const SampleParams>(args, Operand::params)[r];
  const float* logits = buffer<const float>(args, Operand::logits) + (uint64_t)r * v;
  int32_t* out = buffer<int32_t>(args, Operand::token) + r;
  const bool has_penalties = p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f;
  const bool is_greedy = !(p.temperature >= 0x1p-20f);
  if (!is_greedy || has_penalties || p.n_bias != 0 || p.n_mask_words != 0) {
    constexpr uint32_t kBytesAValue = 24;
    uint8_t* memory = scratch<uint8_t>(args) + (uint64_t)r * v * kBytesAValue;
    const Work work{(Candidate*)memory, (Candidate*)memory + v, (float*)(memory + (uint64_t)v * 16),
                    (uint32_t*)(memory + (uint64_t)v * 20)};
    for (uint32_t i = thread(); i < v; i += kThreads) work.logits[i] = logits[i];
    workgroup_barrier();
    if (p.n_mask_words > 0) apply_mask(p, buffer<const uint32_t>(args, Operand::mask) + p.mask_begin, work.logits, v);
    if (p.n_bias > 0)
      add_bias(p, buffer<const uint32_t>(args, Operand::bias) + (uint64_t)2 * p.bias_begin, work.logits, v);
    if (has_penalties)
      penalize(p, buffer<const int32_t>(args, Operand::history) + p.history_begin, work.counts, work.logits, v);
    if (!is_greedy) {
      const int32_t token = draw(p, work, v, shared);
      if (thread() == 0) *out = token;
      return;
    }
    logits = work.logits;
  }
  if (thread() >= kWave) return;
  const uint32_t best = largest_index(logits, v);
  if (thread() == 0) *out = is_finite(logits[best]) ? (int32_t)best : kNone;
}

// SAMPLE: draws one token per row of logits. kernels/cpu/sample.cpp defines the result, and the order of candidates
// (logit descending, id ascending). Grid: one workgroup per row.
// Candidates are sorted by buckets of their distance to the largest logit; if a bucket has too many, by a stable radix
// sort. The sums of probabilities are serial by definition: one thread adds up values that all threads have loaded.
// Scratch memory: six words per logit of a row, and at least two per part of a row. At its beginning, sample_parts
// stores the best logit of each part.
#include "kernels/common/philox.h"
#include "kernels/common/sample_params.h"
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;
using zinc_rt::SampleParams;

constexpr uint32_t kThreads = 1024, kDigits = 256;

// The shared memory of the workgroup. The functions below use its members as scratch memory, one after another.
struct Shared {
  uint32_t counts[kThreads / 32][kDigits];
  alignas(16) float values[kThreads];
  alignas(16) float more_values[kThreads];
  uint32_t words[64];
  float sum;
  uint32_t count;
};

// Returns the exclusive prefix sum of n over the lanes of a warp: where a lane's n elements begin if those of all lanes
// follow each other.
__device__ __forceinline__ uint32_t begin_of(uint32_t n, uint32_t lane) {
  uint32_t end = n;
  for (uint32_t w = 1; w < 32; w *= 2) {
    const uint32_t before = __shfl_up_sync(0xFFFFFFFFu, end, w);
    if (lane >= w) end += before;
  }
  return end - n;
}

// Sorts n pairs by key, ascending; pairs with equal keys keep their order. The second pair of arrays is scratch memory.
__device__ void sort_pairs(uint32_t* keys, uint32_t* values, uint32_t* more_keys, uint32_t* more_values, uint32_t n,
                           Shared& s) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, n_warps = kThreads / 32;
  const uint32_t each = (n + n_warps - 1) / n_warps, begin = min(n, warp * each), end = min(n, begin + each);
  for (uint32_t shift = 0; shift < 32; shift += 8) {
    for (uint32_t i = lane; i < kDigits; i += 32) s.counts[warp][i] = 0;
    __syncwarp();
    for (uint32_t i = begin + lane; i < end; i += 32) atomicAdd(&s.counts[warp][keys[i] >> shift & 255], 1u);
    __syncthreads();
    if (threadIdx.x < kDigits) {
      uint32_t sum = 0;
      for (uint32_t w = 0; w < n_warps; ++w) {
        const uint32_t count = s.counts[w][threadIdx.x];
        s.counts[w][threadIdx.x] = sum;
        sum += count;
      }
      reinterpret_cast<uint32_t*>(s.values)[threadIdx.x] = sum;
    }
    __syncthreads();
    if (warp == 0) {
      uint32_t* totals = reinterpret_cast<uint32_t*>(s.values) + lane * (kDigits / 32);
      uint32_t sum = 0;
      for (uint32_t d = 0; d < kDigits / 32; ++d) sum += totals[d];
      sum = begin_of(sum, lane);
      for (uint32_t d = 0; d < kDigits / 32; ++d) {
        const uint32_t count = totals[d];
        totals[d] = sum;
        sum += count;
      }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n_warps * kDigits; i += kThreads)
      s.counts[i / kDigits][i % kDigits] += reinterpret_cast<uint32_t*>(s.values)[i % kDigits];
    __syncthreads();
    for (uint32_t first = begin; first < end; first += 32) {
      const uint32_t i = first + lane;
      const bool is_there = i < end;
      const uint32_t key = is_there ? keys[i] : 0, digit = key >> shift & 255;
      const uint32_t same = __match_any_sync(0xFFFFFFFFu, is_there ? digit : kDigits);
      const uint32_t rank = __popc(same & ((1u << lane) - 1));
      if (is_there) {
        const uint32_t to = s.counts[warp][digit] + rank;
        more_keys[to] = key;
        more_values[to] = values[i];
      }
      __syncwarp();
      if (is_there && rank == 0) s.counts[warp][digit] += __popc(same);
      __syncwarp();
    }
    __syncthreads();
    uint32_t* swap = keys;
    keys = more_keys, more_keys = swap;
    swap = values;
    values = more_values, more_values = swap;
  }
}

// Sums of nonnegative values in their order. value(i) returns value i. after[j] is the sum of the first kThreads * (j +
// 1) values, so that later questions need to add only from the nearest of these on.
template <class Value>
struct Sums {
  float* after;
  Shared& s;
  Value value;

  // Returns `sum` plus the values of a stage (kThreads values, zeros behind the last) in their order. Called by one
  // thread.
  __device__ __forceinline__ static float add(float sum, const float* values) {
    float4 v[4];
    const auto load = [&](uint32_t i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) v[j] = *reinterpret_cast<const float4*>(values + i + 4 * j);
    };
    load(0);
#pragma unroll 1
    for (uint32_t i = 0; i < kThreads; i += 16) {
      const float4 at[4] = {v[0], v[1], v[2], v[3]};
      load((i + 16) % kThreads);  // issued early, because the additions wait for each other
#pragma unroll
      for (int j = 0; j < 4; ++j) sum = ((sum + at[j].x) + at[j].y) + at[j].z, sum = sum + at[j].w;
    }
    return sum;
  }
  __device__ float load(uint32_t i, uint32_t n) const { return i < n ? value(i) : 0.0f; }

  // Computes the sums of the first n values. In each round all threads load a stage while the first thread adds up the
  // stage before.
  __device__ void make(uint32_t n) {
    float sum = 0.0f;
    __syncthreads();
    s.values[threadIdx.x] = load(threadIdx.x, n);
    for (uint32_t first = 0, stage = 0; first < n; first += kThreads, ++stage) {
      float* const values = stage % 2 == 0 ? s.values : s.more_values;
      float* const next = stage % 2 == 0 ? s.more_values : s.values;
      __syncthreads();
      const float loaded = load(first + kThreads + threadIdx.x, n);
      if (threadIdx.x == 0) after[stage] = sum = add(sum, values);
      next[threadIdx.x] = loaded;
    }
    __syncthreads();
  }
  // Returns the sum of the first n values, where n is at most the number for which make() was called.
  __device__ float of(uint32_t n) const {
    const uint32_t stage = n / kThreads;
    __syncthreads();
    s.values[threadIdx.x] = load(stage * kThreads + threadIdx.x, n);
    __syncthreads();
    if (threadIdx.x == 0) s.sum = add(stage > 0 ? after[stage - 1] : 0.0f, s.values);
    __syncthreads();
    return s.sum;
  }
  // Returns the number of values in the shortest prefix whose sum is enough, or 0 if there is none. n: the number for
  // which make() was called.
  template <class Enough>
  __device__ uint32_t count_until(uint32_t n, const Enough& is_enough) const {
    const uint32_t n_stages = (n + kThreads - 1) / kThreads;
    __syncthreads();
    if (threadIdx.x == 0) s.count = n_stages;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n_stages; i += kThreads)
      if (is_enough(after[i])) atomicMin(&s.count, i);
    __syncthreads();
    const uint32_t stage = s.count;
    if (stage == n_stages) return 0;
    s.values[threadIdx.x] = load(stage * kThreads + threadIdx.x, n);
    __syncthreads();
    if (threadIdx.x == 0) {
      float sum = stage > 0 ? after[stage - 1] : 0.0f;
      for (uint32_t i = 0; i < kThreads; ++i) {
        sum = sum + s.values[i];
        s.count = stage * kThreads + i + 1;
        if (is_enough(sum)) break;
      }
    }
    __syncthreads();
    return s.count;
  }
};
template <class Value>
__device__ Sums<Value> sums_of(float* after, Shared& s, const Value& value) {
  return {after, s, value};
}

// Applies the penalties for repetition, presence and frequency to the logits of the tokens in the request's history.
__device__ void penalize(const SampleParams& p, const int32_t* history, uint32_t* counts, float* logits, uint32_t v) {
  constexpr uint32_t kSeen = 0x80000000u;
  for (uint32_t i = threadIdx.x; i < v; i += kThreads) counts[i] = 0;
  __syncthreads();
  for (uint32_t i = p.n_prompt + threadIdx.x; i < p.n_history; i += kThreads)
    if (static_cast<uint32_t>(history[i]) < v) atomicAdd(&counts[history[i]], 1u);
  __syncthreads();
  const float inverse = exact::rcp(p.repetition_penalty);
  for (uint32_t i = threadIdx.x; i < p.n_history; i += kThreads) {
    const auto id = static_cast<uint32_t>(history[i]);
    if (id >= v) continue;
    const uint32_t count = atomicOr(&counts[id], kSeen);
    if ((count & kSeen) != 0) continue;  // another thread handles this token
    float l = logits[id];
    if (p.repetition_penalty != 1.0f) l = l > 0.0f ? l * inverse : l * p.repetition_penalty;
    if (count > 0) l = __fmaf_rn(-static_cast<float>(count), p.frequency_penalty, l - p.presence_penalty);
    logits[id] = l;
  }
  __syncthreads();
}

// Returns the key by which candidates are sorted in ascending order: the larger a logit, the smaller its key. +0 and -0
// have the same key. NaN has the largest key, so it comes last.
__device__ __forceinline__ uint32_t sort_key(float logit) {
  const uint32_t bits = __float_as_uint(logit + 0.0f);
  return logit == logit ? ~((bits >> 31) != 0 ? ~bits : bits | 0x80000000u) : 0xFFFFFFFFu;
}
// Returns the logit that has this key; not for NaN.
__device__ __forceinline__ float logit_of(uint32_t key) {
  return __uint_as_float((~key >> 31) != 0 ? ~key & 0x7FFFFFFFu : key);
}

// A candidate whose logit is more than this below the largest is less than 2^-24 times as likely, so it changes no sum
// and is never drawn (kernels/cpu/sample.cpp, keep_likely).
constexpr float kLeast = -17.0f;

// The logits of a row, divided by the temperature. Each warp goes through its own stretch of the row.
struct Row {
  const float* logits;
  float inverse_temperature;
  uint32_t v;

  // Calls take(logit, id) by all lanes of a warp together, also for ids behind the stretch's end; is_there(id) tells
  // whether an id exists. Several loads are issued at once.
  template <class Take>
  __device__ __forceinline__ void for_each(const Take& take) const {
    constexpr uint32_t kLoads = 8;
    const uint32_t lane = threadIdx.x % 32, begins = begin(), ends = end();
    for (uint32_t first = begins; first < ends; first += 32 * kLoads) {
      float l[kLoads];
#pragma unroll
      for (uint32_t j = 0; j < kLoads; ++j) {
        const uint32_t i = first + 32 * j + lane;
        l[j] = (i < ends ? logits[i] : 0.0f) * inverse_temperature;
      }
#pragma unroll
      for (uint32_t j = 0; j < kLoads; ++j) take(l[j], first + 32 * j + lane);
    }
  }
  __device__ __forceinline__ bool is_there(uint32_t id) const { return id < end(); }
  __device__ __forceinline__ uint32_t each() const { return (v + kThreads / 32 - 1) / (kThreads / 32); }
  __device__ __forceinline__ uint32_t begin() const { return min(v, threadIdx.x / 32 * each()); }
  __device__ __forceinline__ uint32_t end() const { return min(v, begin() + each()); }
};

// Returns the largest and the smallest logit of a row; NaN is ignored. If the row has only NaN: minus infinity and
// infinity.
__device__ float2 bounds_of(const Row& row, Shared& s) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float top = -INFINITY, least = INFINITY;
  row.for_each([&](float l, uint32_t i) {
    if (!row.is_there(i)) return;
    top = l > top ? l : top;
    least = l < least ? l : least;
  });
  const auto bounds_of_lanes = [&] {
    for (uint32_t w = 16; w > 0; w /= 2) {
      const float above = __shfl_xor_sync(0xFFFFFFFFu, top, w), below = __shfl_xor_sync(0xFFFFFFFFu, least, w);
      top = above > top ? above : top;
      least = below < least ? below : least;
    }
  };
  bounds_of_lanes();
  if (lane == 0) s.values[warp] = top, s.more_values[warp] = least;
  __syncthreads();
  top = s.values[lane], least = s.more_values[lane];
  bounds_of_lanes();
  __syncthreads();
  return make_float2(top, least);
}

// Stores the keys and ids, in the order of ids, of the candidates that can change the result (kernels/cpu/sample.cpp,
// keep_likely, says which), or of all candidates. Returns their number.
__device__ uint32_t keep_likely(const Row& row, float top, bool wants_all, uint32_t* keys, uint32_t* ids, Shared& s) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const auto is_kept = [&](float l, uint32_t i) { return row.is_there(i) && (wants_all || !(l - top < kLeast)); };
  uint32_t n = 0;
  row.for_each([&](float l, uint32_t i) { n += __popc(__ballot_sync(0xFFFFFFFFu, is_kept(l, i))); });
  if (lane == 0) s.words[warp] = n;
  __syncthreads();
  const uint32_t n_of_warp = s.words[lane], begins = begin_of(n_of_warp, lane);
  const uint32_t n_kept = __shfl_sync(0xFFFFFFFFu, begins + n_of_warp, 31);
  uint32_t to = __shfl_sync(0xFFFFFFFFu, begins, warp);
  row.for_each([&](float l, uint32_t i) {
    const uint32_t kept = __ballot_sync(0xFFFFFFFFu, is_kept(l, i));
    if ((kept >> lane & 1) != 0) {
      const uint32_t at = to + __popc(kept & ((1u << lane) - 1));
      keys[at] = sort_key(l);
      ids[at] = i;
    }
    to += __popc(kept);
  });
  __syncthreads();
  return n_kept;
}

// The number of buckets, all of equal width, into which candidates are put by their distance to the largest logit. All
// candidates of a bucket come before all of the next one.
constexpr uint32_t kBuckets = kThreads / 32 * kDigits;  // the size of Shared::counts, which holds the buckets
constexpr uint32_t kMostOfABucket = 512;  // limited because each candidate is compared with all others of its bucket

// Stores the keys and ids, in the order of candidates, of the likely candidates that are not NaN. Returns their number,
// or 0 if one bucket has too many. top must be finite. pairs: scratch memory of v elements.
__device__ uint32_t sort_by_distance(const Row& row, float top, float least, uint64_t* pairs, uint32_t* keys,
                                     uint32_t* ids, Shared& s) {
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t* const buckets = &s.counts[0][0];
  const float range = fminf(top - least, -kLeast), scale = range > 0x1p-20f ? kBuckets / range : 0.0f;
  // Both zeros get the same bucket, as they have the same key. Rounding keeps the order of distances.
  const auto bucket_of = [&](float l) { return min(static_cast<uint32_t>((top - l) * scale), kBuckets - 1); };
  const auto is_kept = [&](float l, uint32_t i) { return row.is_there(i) && l - top >= kLeast; };
  for (uint32_t i = threadIdx.x; i < kBuckets; i += kThreads) buckets[i] = 0;
  __syncthreads();
  row.for_each([&](float l, uint32_t i) {
    if (is_kept(l, i)) atomicAdd(&buckets[bucket_of(l)], 1u);
  });
  __syncthreads();
  // Each thread has kEach consecutive buckets.
  constexpr uint32_t kEach = kBuckets / kThreads;
  uint32_t* const own = buckets + threadIdx.x * kEach;
  uint32_t n_own = 0, most = 0;
  for (uint32_t i = 0; i < kEach; ++i) n_own += own[i], most = max(most, own[i]);
  const uint32_t begins_in_warp = begin_of(n_own, lane);
  const uint32_t too_full = __ballot_sync(0xFFFFFFFFu, most > kMostOfABucket);
  if (lane == 31) s.words[warp] = begins_in_warp + n_own, s.words[32 + warp] = too_full;
  __syncthreads();
  if (__ballot_sync(0xFFFFFFFFu, s.words[32 + lane] != 0) != 0) return 0;  // the same result for all threads
  const uint32_t n_of_warp = s.words[lane], begins = begin_of(n_of_warp, lane);
  const uint32_t n = __shfl_sync(0xFFFFFFFFu, begins + n_of_warp, 31);
  uint32_t begin = __shfl_sync(0xFFFFFFFFu, begins, warp) + begins_in_warp;
  for (uint32_t i = 0; i < kEach; ++i) {
    const uint32_t count = own[i];
    own[i] = begin;
    begin += count;
  }
  __syncthreads();
  row.for_each([&](float l, uint32_t i) {
    if (is_kept(l, i)) pairs[atomicAdd(&buckets[bucket_of(l)], 1u)] = static_cast<uint64_t>(sort_key(l)) << 32 | i;
  });
  __syncthreads();
  // buckets[i] is now the index behind bucket i's last pair. A pair's final place is the bucket's beginning plus the
  // number of smaller pairs in the bucket.
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
    const uint64_t pair = pairs[i];
    const auto key = static_cast<uint32_t>(pair >> 32);
    const uint32_t bucket = bucket_of(logit_of(key)), end = buckets[bucket];
    uint32_t to = bucket > 0 ? buckets[bucket - 1] : 0;
#pragma unroll 4
    for (uint32_t j = to; j < end; ++j) to += pairs[j] < pair ? 1 : 0;
    keys[to] = key;
    ids[to] = static_cast<uint32_t>(pair);
  }
  __syncthreads();
  return n;
}

// typical_p: keeps the typical ones of n candidates. p: probabilities; distance: logit minus the largest logit. The ids
// and p of those kept are moved together. Returns their number. keys, order, more_keys and more_order are scratch
// memory.
__device__ uint32_t keep_typical(float typical_p, uint32_t n, float* p, uint32_t* ids, const float* distance,
                                 uint32_t* keys, uint32_t* order, uint32_t* more_keys, uint32_t* more_order,
                                 Shared& s) {
  float* const after = reinterpret_cast<float*>(more_keys);
  auto sums = sums_of(after, s, [&](uint32_t i) { return p[i]; });
  sums.make(n);
  const float total = sums.of(n);
  if (!(total > 0.0f)) return n;
  float sum = 0.0f;
  for (uint32_t first = 0; first < n; first += kThreads) {
    const uint32_t i = first + threadIdx.x;
    __syncthreads();
    s.values[threadIdx.x] = i < n ? p[i] : 0.0f;
    s.more_values[threadIdx.x] = i < n ? distance[i] : 0.0f;
    __syncthreads();
    if (threadIdx.x == 0)
      for (uint32_t j = 0; j < kThreads; ++j)
        if (s.values[j] > 0.0f) sum = __fmaf_rn(s.values[j], s.more_values[j], sum);
  }
  if (threadIdx.x == 0) s.sum = sum;
  __syncthreads();
  const float mean = s.sum * exact::rcp(total);
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
    const float d = mean - distance[i];
    keys[i] = __float_as_uint(p[i] > 0.0f ? fabsf(d) : __uint_as_float(0x7f800000u));
    order[i] = i;
  }
  __syncthreads();
  sort_pairs(keys, order, more_keys, more_order, n, s);
  const float wanted = total * typical_p;
  auto sums_by_order = sums_of(after, s, [&](uint32_t i) { return p[order[i]]; });
  sums_by_order.make(n);
  const uint32_t reached = sums_by_order.count_until(n, [&](float v) { return !(v < wanted); });
  const uint32_t kept = reached > 0 ? reached : n;
  // The candidates that were kept are put back in the order of candidates: keys become flags, and the flagged
  // candidates of each stretch of kThreads are moved together.
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) keys[i] = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < kept; i += kThreads) keys[order[i]] = 1;
  __syncthreads();
  uint32_t done = 0;
  for (uint32_t first = 0; first < n; first += kThreads) {
    const uint32_t i = first + threadIdx.x;
    const bool is_kept = i < n && keys[i] != 0;
    const float value = is_kept ? p[i] : 0.0f;
    const uint32_t id = is_kept ? ids[i] : 0, ballot = __ballot_sync(0xFFFFFFFFu, is_kept);
    if (threadIdx.x % 32 == 0) s.words[threadIdx.x / 32] = __popc(ballot);
    __syncthreads();
    uint32_t to = done + __popc(ballot & ((1u << threadIdx.x % 32) - 1)), all = 0;
    for (uint32_t w = 0; w < kThreads / 32; ++w) {
      if (w < threadIdx.x / 32) to += s.words[w];
      all += s.words[w];
    }
    if (is_kept) p[to] = value, ids[to] = id;
    done += all;
    __syncthreads();
  }
  return kept;
}

__device__ __forceinline__ bool is_finite(float value) {
  return fabsf(value) < __uint_as_float(0x7f800000u);
}

constexpr uint32_t kParts = 32;

// Returns the scratch memory of a row.
__device__ __forceinline__ uint32_t* scratch_of(const OpArgs& args, uint32_t row, uint32_t v) {
  return static_cast<uint32_t*>(args.scratch) + static_cast<uint64_t>(row) * max(v * 6, 2 * kParts);
}

// Copies the logits of a row, with minus infinity for tokens that the mask does not allow. The mask is in host memory,
// so each thread loads all of its words at once. held: shared memory for kHeld words.
__device__ __forceinline__ void copy_allowed(const float* logits, const uint32_t* mask, uint32_t n_words, uint32_t v,
                                             uint32_t* held, float* to) {
  constexpr uint32_t kHeld = kThreads / 32 * kDigits, kEach = kHeld / kThreads;
  for (uint32_t first = 0; first < v; first += kHeld * 32) {
    uint32_t words[kEach];
#pragma unroll
    for (uint32_t j = 0; j < kEach; ++j) {
      const uint32_t at = first / 32 + j * kThreads + threadIdx.x;
      words[j] = at < n_words ? mask[at] : n_words == 0 ? 0xFFFFFFFFu : 0;
    }
#pragma unroll
    for (uint32_t j = 0; j < kEach; ++j) held[j * kThreads + threadIdx.x] = words[j];
    __syncthreads();
    const uint32_t end = min(v, first + kHeld * 32);
#pragma unroll 4
    for (uint32_t i = first + threadIdx.x; i < end; i += kThreads)
      to[i] = (held[(i - first) / 32] >> i % 32 & 1) != 0 ? logits[i] : __uint_as_float(0xFF800000u);
    __syncthreads();
  }
}

// Finds the largest logit of a part of a row, for requests that want nothing else (greedy). Grid: (rows, kParts).
extern "C" __global__ void __launch_bounds__(256) sample_parts(const __grid_constant__ OpArgs args) {
  __shared__ uint32_t shared[64];
  wait_for_inputs();
  let_next_start();
  const uint32_t r = blockIdx.x, v = args.dim(symbol::Row::width);
  if (r >= args.dim(symbol::Row::rows)) return;
  const uint32_t each = (v + kParts - 1) / kParts, begin = min(v, blockIdx.y * each), n = min(each, v - begin);
  const float* logits = args.buffer<const float>(binding::Sample::logits) + static_cast<uint64_t>(r) * v + begin;
  const uint32_t best = n > 0 ? argmax_row(logits, n, shared) : 0;
  if (threadIdx.x != 0) return;
  uint32_t* part = scratch_of(args, r, v) + 2 * blockIdx.y;
  const float value = n > 0 ? logits[best] : nan_value();
  part[0] = __float_as_uint(value);
  part[1] = value == value ? begin + best : kAbsent;
}

extern "C" __global__ void __launch_bounds__(kThreads) sample(const __grid_constant__ OpArgs args) {
  __shared__ Shared s;
  wait_for_inputs();
  let_next_start();
  const uint32_t r = blockIdx.x, v = args.dim(symbol::Row::width), tid = threadIdx.x;
  if (r >= args.dim(symbol::Row::rows)) return;
  const SampleParams p = args.buffer<const SampleParams>(binding::Sample::params)[r];
  const float* logits = args.buffer<const float>(binding::Sample::logits) + static_cast<uint64_t>(r) * v;
  int32_t* out = args.buffer<int32_t>(binding::Sample::token) + r;
  const bool has_penalties = p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f;
  const bool is_greedy = !(p.temperature >= 0x1p-20f);
  if (is_greedy && !has_penalties && p.n_bias == 0 && p.n_mask_words == 0) {
    if (tid >= 32) return;
    const uint32_t* part = scratch_of(args, r, v) + 2 * tid;
    Best best{__uint_as_float(part[0]), part[1]};
    for (int w = 16; w > 0; w /= 2)
      best =
          better(best, Best{__shfl_xor_sync(0xFFFFFFFFu, best.value, w), __shfl_xor_sync(0xFFFFFFFFu, best.index, w)});
    if (tid == 0)
      *out = best.index != kAbsent && is_finite(best.value) ? static_cast<int32_t>(best.index) : zinc_rt::kSampleNone;
    return;
  }
  uint32_t *keys = scratch_of(args, r, v), *ids = keys + v, *more_keys = ids + v, *more_ids = more_keys + v;
  auto *work = reinterpret_cast<float*>(more_ids + v), *distance = work + v;
  if (has_penalties || p.n_bias > 0 || p.n_mask_words > 0) {
    copy_allowed(logits, args.buffer<const uint32_t>(binding::Sample::mask) + p.mask_begin, p.n_mask_words, v,
                 &s.counts[0][0], work);
    logits = work;
  }
  if (p.n_bias > 0) {
    if (tid == 0) {
      const uint32_t* entries = args.buffer<const uint32_t>(binding::Sample::bias) + 2ull * p.bias_begin;
      for (uint32_t i = 0; i < p.n_bias; ++i) {
        const uint32_t id = entries[2 * i];
        if (id < v) work[id] = work[id] + __uint_as_float(entries[2 * i + 1]);
      }
    }
    __syncthreads();
  }
  if (has_penalties) penalize(p, args.buffer<const int32_t>(binding::Sample::history) + p.history_begin, keys, work, v);
  if (is_greedy) {
    const uint32_t best = argmax_row(work, v, s.words);
    if (tid == 0) *out = is_finite(work[best]) ? static_cast<int32_t>(best) : zinc_rt::kSampleNone;
    return;
  }
  const Row row{logits, exact::rcp(p.temperature), v};
  const auto [top, least] = bounds_of(row, s);
  if (!is_finite(top)) {  // the same result for all threads
    if (tid == 0) *out = zinc_rt::kSampleNone;
    return;
  }
  uint32_t n = 0;
  if (!(p.typical_p < 1.0f))
    n = sort_by_distance(row, top, least, reinterpret_cast<uint64_t*>(more_keys), keys, ids, s);
  if (n == 0) {
    n = keep_likely(row, top, p.typical_p < 1.0f, keys, ids, s);
    sort_pairs(keys, ids, more_keys, more_ids, n, s);
  }
  // From here on, the memory of the keys holds the candidates' probabilities.
  if (p.top_k > 0) n = min(p.top_k, n);
  auto* probability = reinterpret_cast<float*>(keys);
  for (uint32_t i = tid; i < n; i += kThreads) {
    const float d = logit_of(keys[i]) - top, e = exact::exp(d);
    distance[i] = d;
    probability[i] = e == e ? e : 0.0f;
  }
  __syncthreads();
  auto sums = sums_of(reinterpret_cast<float*>(more_keys), s, [&](uint32_t i) { return probability[i]; });
  sums.make(n);
  uint32_t n_made = n;
  if (p.top_p < 1.0f) {
    const float wanted = sums.of(n) * p.top_p;
    const uint32_t reached = sums.count_until(n, [&](float v) { return !(v < wanted); });
    if (reached > 0) n = reached;
  }
  if (p.min_p > 0.0f) {
    __syncthreads();
    if (tid == 0) s.count = 1;
    __syncthreads();
    uint32_t own = 1;
    for (uint32_t i = tid; i < n; i += kThreads)
      if (!(probability[i] < p.min_p)) own = i + 1;
    atomicMax(&s.count, own);
    __syncthreads();
    n = s.count;
    __syncthreads();
  }
  if (p.typical_p < 1.0f) {
    n = keep_typical(p.typical_p, n, probability, ids, distance, reinterpret_cast<uint32_t*>(work), more_ids, more_keys,
                     reinterpret_cast<uint32_t*>(distance), s);
    sums.make(n);
    n_made = n;
  }
  const float u = zinc_rt::philox::uniform(p.seed_lo, p.seed_hi, p.position) * sums.of(n);
  const uint32_t drawn = sums.count_until(n_made, [&](float v) { return v > u; });
  if (tid == 0) *out = static_cast<int32_t>(ids[drawn > 0 && drawn <= n ? drawn - 1 : 0]);
}

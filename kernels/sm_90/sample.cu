// SAMPLE: one token a row, by a workgroup. kernels/cpu/sample.cpp has the meaning and the order; here candidates are
// sorted by a radix sort that keeps the order of equal ones (logit descending, id ascending), and the sums, which are
// serial by definition, are one thread's over what all have loaded. A sum of 1 or more does not change by a value below
// 2^-25, so where candidates descend the sums end there.
// Symbols: n, v. Scratch: six words a logit and row; sample_parts leaves the best of each part of a row at its
// beginning.
#include "kernels/common/philox.h"
#include "kernels/common/sample_params.h"
#include "kernels/sm_90/device.cuh"

using namespace zinc_rt::cuda;
using zinc_rt::SampleParams;

constexpr uint32_t kThreads = 1024, kDigits = 256;

struct Shared {
  uint32_t counts[kThreads / 32][kDigits];
  float values[kThreads];
  uint32_t words[64];
  float sum;
  uint32_t count, done;
};

// n pairs ascending by key, equal keys in their order; the other pair of arrays is scratch.
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
    if (threadIdx.x == 0)
      for (uint32_t d = 0, sum = 0; d < kDigits; ++d) {
        uint32_t& total = reinterpret_cast<uint32_t*>(s.values)[d];
        const uint32_t count = total;
        total = sum;
        sum += count;
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

// Thread 0 is given the values in order until it says that it has enough; n_values(i) is value i.
template <class Value, class Take>
__device__ void in_order(uint32_t n, Shared& s, const Value& value, const Take& take) {
  __syncthreads();
  if (threadIdx.x == 0) s.done = 0;
  for (uint32_t first = 0; first < n; first += kThreads) {
    if (first + threadIdx.x < n) s.values[threadIdx.x] = value(first + threadIdx.x);
    __syncthreads();
    if (threadIdx.x == 0)
      for (uint32_t i = 0; i < kThreads && first + i < n; ++i)
        if (!take(first + i, s.values[i])) {
          s.done = 1;
          break;
        }
    __syncthreads();
    if (s.done != 0) break;
  }
  __syncthreads();
}

constexpr float kNothing = 0x1p-26f;

// The sum of n descending values.
__device__ float sum_in_order(const float* p, uint32_t n, Shared& s) {
  if (threadIdx.x == 0) s.sum = 0.0f;
  in_order(
      n, s, [&](uint32_t i) { return p[i]; },
      [&](uint32_t, float v) {
        s.sum = s.sum + v;
        return !(s.sum >= 1.0f && v < kNothing);
      });
  const float sum = s.sum;
  __syncthreads();
  return sum;
}

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
    if ((count & kSeen) != 0) continue;  // another thread has the token
    float l = logits[id];
    if (p.repetition_penalty != 1.0f) l = l > 0.0f ? l * inverse : l * p.repetition_penalty;
    if (count > 0) l = __fmaf_rn(-static_cast<float>(count), p.frequency_penalty, l - p.presence_penalty);
    logits[id] = l;
  }
  __syncthreads();
}

// The typical ones of n candidates with probabilities p and logits below the first by `distance`; ids and p are put
// together; how many are left. keys, order and their seconds are scratch.
__device__ uint32_t keep_typical(float typical_p, uint32_t n, float* p, uint32_t* ids, const float* distance,
                                 uint32_t* keys, uint32_t* order, uint32_t* more_keys, uint32_t* more_order,
                                 Shared& s) {
  const float total = sum_in_order(p, n, s);
  if (threadIdx.x == 0) s.sum = 0.0f;
  in_order(
      n, s, [&](uint32_t i) { return p[i]; },
      [&](uint32_t i, float v) {
        if (v > 0.0f) s.sum = __fmaf_rn(v, distance[i], s.sum);
        return v > 0.0f;  // candidates descend, so none has a probability after one that has none
      });
  if (!(total > 0.0f)) return n;
  const float mean = s.sum * exact::rcp(total);
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < n; i += kThreads) {
    const float d = mean - distance[i];
    keys[i] = __float_as_uint(p[i] > 0.0f ? fabsf(d) : __uint_as_float(0x7f800000u));
    order[i] = i;
  }
  __syncthreads();
  sort_pairs(keys, order, more_keys, more_order, n, s);
  const float wanted = total * typical_p;
  __syncthreads();
  if (threadIdx.x == 0) s.sum = 0.0f, s.count = 0;
  in_order(
      n, s, [&](uint32_t i) { return p[order[i]]; },
      [&](uint32_t, float v) {
        if (s.count > 0 && !(s.sum < wanted)) return false;
        s.sum = s.sum + v;
        ++s.count;
        return true;
      });
  const uint32_t kept = s.count;
  // Those kept, back in the order of the candidates: keys become flags, and each piece is closed up in turn.
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

constexpr uint32_t kParts = 32;

// The largest logit of a part of a row, for rows that want nothing else. Grid: rows, kParts.
extern "C" __global__ void __launch_bounds__(256) sample_parts(const __grid_constant__ OpArgs args) {
  __shared__ uint32_t shared[64];
  wait_for_inputs();
  let_next_start();
  const uint32_t r = blockIdx.x, v = args.dim(1);
  if (r >= args.dim(0)) return;
  const uint32_t each = (v + kParts - 1) / kParts, begin = min(v, blockIdx.y * each), n = min(each, v - begin);
  const float* logits = args.buffer<const float>(0) + static_cast<uint64_t>(r) * v + begin;
  const uint32_t best = n > 0 ? argmax_row(logits, n, shared) : 0;
  if (threadIdx.x != 0) return;
  uint32_t* part = static_cast<uint32_t*>(args.scratch) + static_cast<uint64_t>(r) * v * 6 + 2 * blockIdx.y;
  const float value = n > 0 ? logits[best] : nan_value();
  part[0] = __float_as_uint(value);
  part[1] = value == value ? begin + best : kAbsent;
}

extern "C" __global__ void __launch_bounds__(kThreads) sample(const __grid_constant__ OpArgs args) {
  __shared__ Shared s;
  wait_for_inputs();
  let_next_start();
  const uint32_t r = blockIdx.x, v = args.dim(1), tid = threadIdx.x;
  if (r >= args.dim(0)) return;
  const SampleParams p = args.buffer<const SampleParams>(1)[r];
  const float* logits = args.buffer<const float>(0) + static_cast<uint64_t>(r) * v;
  int32_t* out = args.buffer<int32_t>(4) + r;
  const bool has_penalties = p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f;
  const bool is_greedy = !(p.temperature >= 0x1p-20f);
  if (is_greedy && !has_penalties && p.n_bias == 0) {
    if (tid >= 32) return;
    const uint32_t* part = static_cast<const uint32_t*>(args.scratch) + static_cast<uint64_t>(r) * v * 6 + 2 * tid;
    Best best{__uint_as_float(part[0]), part[1]};
    for (int w = 16; w > 0; w /= 2)
      best =
          better(best, Best{__shfl_xor_sync(0xFFFFFFFFu, best.value, w), __shfl_xor_sync(0xFFFFFFFFu, best.index, w)});
    if (tid == 0) *out = best.index == kAbsent ? 0 : static_cast<int32_t>(best.index);
    return;
  }
  auto* scratch = static_cast<uint32_t*>(args.scratch) + static_cast<uint64_t>(r) * v * 6;
  auto* work = reinterpret_cast<float*>(scratch);
  uint32_t *keys = scratch + v, *ids = keys + v, *more_keys = ids + v, *more_ids = more_keys + v;
  for (uint32_t i = tid; i < v; i += kThreads) work[i] = logits[i];
  __syncthreads();
  if (p.n_bias > 0) {
    if (tid == 0) {
      const uint32_t* entries = args.buffer<const uint32_t>(3) + 2ull * p.bias_begin;
      for (uint32_t i = 0; i < p.n_bias; ++i) {
        const uint32_t id = entries[2 * i];
        if (id < v) work[id] = work[id] + __uint_as_float(entries[2 * i + 1]);
      }
    }
    __syncthreads();
  }
  if (has_penalties) penalize(p, args.buffer<const int32_t>(2) + p.history_begin, keys, work, v);
  if (is_greedy) {
    const uint32_t best = argmax_row(work, v, s.words);
    if (tid == 0) *out = static_cast<int32_t>(best);
    return;
  }
  const float inverse = exact::rcp(p.temperature);
  for (uint32_t i = tid; i < v; i += kThreads) {
    const float l = work[i] * inverse;
    work[i] = l;
    const uint32_t bits = __float_as_uint(l + 0.0f);
    keys[i] = l == l ? ~((bits >> 31) != 0 ? ~bits : bits | 0x80000000u) : 0xFFFFFFFFu;
    ids[i] = i;
  }
  __syncthreads();
  sort_pairs(keys, ids, more_keys, more_ids, v, s);
  // From here on candidates: their probabilities lie where keys did.
  uint32_t n = p.top_k > 0 && p.top_k < v ? p.top_k : v;
  float *probability = reinterpret_cast<float*>(keys), *distance = reinterpret_cast<float*>(scratch + 5ull * v);
  const float top = work[ids[0]];
  __syncthreads();
  for (uint32_t i = tid; i < n; i += kThreads) {
    const float d = work[ids[i]] - top, e = exact::exp(d);
    distance[i] = d;
    probability[i] = e == e ? e : 0.0f;
  }
  __syncthreads();
  if (p.top_p < 1.0f) {
    const float wanted = sum_in_order(probability, n, s) * p.top_p;
    __syncthreads();
    if (tid == 0) s.sum = 0.0f, s.count = 0;
    in_order(
        n, s, [&](uint32_t i) { return probability[i]; },
        [&](uint32_t, float value) {
          if (s.count > 0 && !(s.sum < wanted)) return false;
          s.sum = s.sum + value;
          ++s.count;
          if (s.sum >= 1.0f && value < kNothing && s.sum < wanted) {  // none of the rest changes the sum
            s.count = n;
            return false;
          }
          return true;
        });
    n = s.count;
  }
  {
    __syncthreads();
    if (tid == 0) s.count = 1;
    __syncthreads();
    for (uint32_t i = tid; i < n; i += kThreads)
      if (!(probability[i] < p.min_p)) atomicMax(&s.count, i + 1);
    __syncthreads();
    n = s.count;
  }
  if (p.typical_p < 1.0f)
    n = keep_typical(p.typical_p, n, probability, ids, distance, reinterpret_cast<uint32_t*>(work), more_ids, more_keys,
                     scratch + 5ull * v, s);
  const float u = zinc_rt::philox::uniform(p.seed_lo, p.seed_hi, p.position) * sum_in_order(probability, n, s);
  __syncthreads();
  if (tid == 0) s.sum = 0.0f, s.count = 0;
  in_order(
      n, s, [&](uint32_t i) { return probability[i]; },
      [&](uint32_t i, float value) {
        s.sum = s.sum + value;
        if (s.sum > u) {
          s.count = i;
          return false;
        }
        return !(s.sum >= 1.0f && value < kNothing);
      });
  if (tid == 0) *out = static_cast<int32_t>(ids[s.count]);
}

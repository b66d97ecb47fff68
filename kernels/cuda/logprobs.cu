// LOGPROBS: what the log-probabilities of a row's tokens are made of. kernels/cpu/logprobs.cpp defines the result.
// Grid: one workgroup per row; the result lies in host memory.
// By definition 16 lanes add a sixteenth of the row each, in order, so the time is that of v / 16 additions that wait
// for each other. Everything else happens meanwhile: while the last warp adds up a tile of exponentials in shared
// memory, the other warps compute the next tile. The last warp is an extra one, because it must not wait for loads.
// The most likely tokens: each computing thread has a column, every kLogprobComputing-th logit. The n-th largest of the
// columns' largest logits is a limit that at least n logits reach, and few more. Those that reach it are collected with
// the exponentials, and each then counts how many come before it. Tokens are compared by keys of 64 bits, which also
// contain the id. So no two keys are equal, and of equal logits not more are collected than of different ones.
// Scratch memory: two words per logit of a row.
#include "kernels/common/logprobs.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/logprobs_args.h"

using namespace zinc_rt::cuda;
using zinc_rt::LogprobParams;
using zinc_rt::LogprobStats;

constexpr uint32_t kLanes = 16, kColumnsOfLane = kLogprobComputing / 32;

// Returns a number that is larger for a larger logit, the same for both zeros, and 0 for NaN alone.
__device__ __forceinline__ uint32_t key_of(float l) {
  const uint32_t bits = __float_as_uint(l + 0.0f);  // -0 becomes +0
  return l == l ? bits ^ ((bits >> 31) != 0 ? 0xFFFFFFFFu : 0x80000000u) : 0;
}
// The key of a token is larger if it comes earlier in the order (logit descending, id ascending).
__device__ __forceinline__ uint64_t with_id(uint32_t key, uint32_t id) {
  return static_cast<uint64_t>(key) << 32 | ~id;
}
__device__ __forceinline__ uint32_t id_of(uint64_t key) {
  return ~static_cast<uint32_t>(key);
}

// Returns the best token of the thread's column.
__device__ __forceinline__ Best best_of_column(const float* logits, uint32_t v) {
  constexpr uint32_t kAhead = 16;  // loads of this many values are issued before the first is compared
  Best best{__uint_as_float(0xFF800000u), kAbsent};
  for (uint32_t first = threadIdx.x; first < v; first += kAhead * kLogprobComputing) {
    float l[kAhead];
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) {
      const uint32_t id = first + i * kLogprobComputing;
      l[i] = id < v ? logits[id] : nan_value();
    }
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i)  // the ids ascend, so a later logit must be larger
      if (l[i] > best.value || (l[i] == l[i] && best.index == kAbsent)) best = {l[i], first + i * kLogprobComputing};
  }
  return best;
}

// Returns a limit that n of the keys reach, and if n is not 0 the largest such limit or one close below it. If fewer
// than n keys are not 0, returns 0. Called by one warp.
__device__ __forceinline__ uint64_t limit_of(const uint64_t* keys, uint32_t n) {
  uint64_t own[kColumnsOfLane];
#pragma unroll
  for (uint32_t i = 0; i < kColumnsOfLane; ++i) own[i] = keys[i * 32 + threadIdx.x % 32];
  uint64_t limit = 0;
#pragma unroll 1
  for (uint64_t bit = uint64_t{1} << 63; bit != 0; bit >>= 1) {
    uint32_t count = 0;
#pragma unroll
    for (uint32_t i = 0; i < kColumnsOfLane; ++i) count += __popc(__ballot_sync(0xFFFFFFFFu, own[i] >= (limit | bit)));
    if (count >= n) limit |= bit;
    if (count == n) break;
  }
  return limit;
}

// Adds a tile of exponentials to the sum of the calling lane, in order. lane: 0 to 15.
__device__ __forceinline__ double add_tile(double sum, const double* terms, uint32_t lane) {
  constexpr uint32_t kAhead = 16;
  double next[kAhead];
  const auto load = [&](uint32_t i) {
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) next[j] = terms[(i + j) * kLanes + lane];
  };
  load(0);
#pragma unroll 1
  for (uint32_t i = 0; i < kLogprobTile / kLanes; i += kAhead) {
    double now[kAhead];
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) now[j] = next[j];
    load((i + kAhead) % (kLogprobTile / kLanes));  // issued early, because the additions wait for each other
#pragma unroll
    for (uint32_t j = 0; j < kAhead; ++j) sum = sum + now[j];
  }
  return sum;
}

// One workgroup per multiprocessor is enough, because more would wait for the same units of doubles.
extern "C" __global__ void __launch_bounds__(kLogprobThreads, 1) logprobs(const __grid_constant__ OpArgs args) {
  ZRT_DYNAMIC_SHARED(double, terms);
  __shared__ uint64_t keys[kLogprobComputing], limit;
  __shared__ double sums[kLanes];
  __shared__ float largest;
  __shared__ uint32_t n_found;
  wait_for_inputs();
  let_next_start();
  const uint32_t r = blockIdx.x, v = args.dim(symbol::Row::width), tid = threadIdx.x;
  if (r >= args.dim(symbol::Row::rows)) return;
  const LogprobParams params = args.buffer<const LogprobParams>(binding::Logprobs::params)[r];
  if (params.n_top < 0) return;
  const uint32_t n_top = min(static_cast<uint32_t>(params.n_top), zinc_rt::kLogprobTop);
  const float* logits = args.buffer<const float>(binding::Logprobs::logits) + static_cast<uint64_t>(r) * v;
  uint64_t* found = static_cast<uint64_t*>(args.scratch) + static_cast<uint64_t>(r) * v;
  const bool is_computing = tid < kLogprobComputing;
  if (is_computing) {
    const Best best = best_of_column(logits, v);
    keys[tid] = best.index == kAbsent ? 0 : with_id(key_of(best.value), best.index);
  }
  __syncthreads();
  if (!is_computing) {
    const uint64_t reached = limit_of(keys, n_top), first = limit_of(keys, 1);
    uint64_t best = 0;
    for (uint32_t i = tid % 32; i < kLogprobComputing; i += 32)
      if (keys[i] >= first) best = keys[i];  // one key reaches the limit, unless all are 0
    if (best != 0) largest = logits[id_of(best)] + 0.0f;
    if (tid == kLogprobComputing) {
      limit = n_top > 0 ? reached : ~uint64_t{0};
      n_found = 0;
      if (first == 0) largest = __uint_as_float(0xFF800000u);
    }
  }
  __syncthreads();
  const uint64_t bar = limit;
  const uint32_t least_key = max(static_cast<uint32_t>(bar >> 32), 1u);  // at least 1, so that NaN does not reach it
  const bool is_finite = fabsf(largest) < __uint_as_float(0x7F800000u);
  const double top = is_finite ? largest : 0.0f;
  constexpr uint32_t kEach = kLogprobTile / kLogprobComputing;
  const uint32_t n_tiles = (v + kLogprobTile - 1) / kLogprobTile;
  float next[kEach];
  const auto load = [&](uint32_t tile) {
#pragma unroll
    for (uint32_t j = 0; j < kEach; ++j) {
      const uint32_t id = tile * kLogprobTile + j * kLogprobComputing + tid;
      next[j] = id < v ? logits[id] : nan_value();
    }
  };
  double sum = 0.0;
  if (is_computing) load(0);
#pragma unroll 1
  for (uint32_t tile = 0; tile <= n_tiles; ++tile) {
    double* const to = terms + tile % 2 * kLogprobTile;
    if (!is_computing) {
      if (tile > 0) sum = add_tile(sum, terms + (tile - 1) % 2 * kLogprobTile, tid % kLanes);
    } else if (tile < n_tiles) {
      float l[kEach];
#pragma unroll
      for (uint32_t j = 0; j < kEach; ++j) l[j] = next[j];
      if (tile + 1 < n_tiles) load(tile + 1);
#pragma unroll
      for (uint32_t j = 0; j < kEach; ++j) {
        const uint32_t at = j * kLogprobComputing + tid, id = tile * kLogprobTile + at;
        const double term = zinc_rt::exp_of_distance(l[j], top);
        to[at] = id < v ? term : 0.0;  // zeros change no sum
        const uint32_t key = key_of(l[j]);
        if (key >= least_key && with_id(key, id) >= bar) found[atomicAdd(&n_found, 1u)] = with_id(key, id);
      }
    }
    if (!is_computing && tile == n_tiles && tid % 32 < kLanes) sums[tid % kLanes] = sum;
    __syncthreads();
  }
  auto* stats = args.buffer<LogprobStats>(binding::Logprobs::stats) + r;
  const uint32_t n = n_found;
  for (uint32_t i = tid; i < n; i += kLogprobThreads) {
    const uint64_t key = found[i];
    uint32_t rank = 0;
#pragma unroll 4
    for (uint32_t j = 0; j < n; ++j) rank += found[j] > key ? 1 : 0;
    const uint32_t id = id_of(key);
    if (rank < n_top) stats->top[rank] = {static_cast<int32_t>(id), logits[id]};
  }
  for (uint32_t i = n + tid; i < n_top; i += kLogprobThreads) stats->top[i] = {-1, 0.0f};
  if (tid == 0) {
    double all = 0.0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) all = all + sums[lane];
    const uint64_t bits = is_finite && all == all ? ZRT_DOUBLE_BITS(all) : zinc_rt::kLogprobNan;
    const auto token = static_cast<uint32_t>(
        params.token >= 0 ? params.token : args.buffer<const int32_t>(binding::Logprobs::token)[r]);
    stats->sum[0] = static_cast<uint32_t>(bits);
    stats->sum[1] = static_cast<uint32_t>(bits >> 32);
    stats->max = largest;
    stats->logit = token < v ? logits[token] : 0.0f;
  }
  __threadfence_system();
}

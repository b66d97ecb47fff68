// What attention of runs over integer caches and over rotated caches has in common. A run is a few neighbouring tokens
// of a slot. A workgroup computes the query heads of one kv head for the tokens of a run; these (token, head) pairs are
// its columns, and they share one read of K and V. Here are the choice of a workgroup's run, and the conversion of a
// chunk's scores to digits of weights.
#pragma once

#include "kernels/cuda/token_chunks.cuh"

namespace zinc_rt::cuda {

constexpr uint32_t kMostColumns = kAttendRunColumns, kRunWords = kAttendIntegerRunStep / 32;

// A run of the step, and this workgroup's share of its chunks.
struct Run {
  uint32_t first, n;       // first token and number of tokens; n = 0: there is no run for this workgroup
  uint32_t before;         // tokens of its slot in this step that come before it
  uint32_t part, n_parts;  // this workgroup's number among those of the run, and how many these are
};

// Returns the run of workgroup blockIdx.x. A run begins at a token that does not follow the token before it, and then
// again after each run_tokens tokens. run_tokens is a power of two; it is halved as long as multiprocessors would be
// idle. Each warp searches by itself, one token per lane.
__device__ __forceinline__ Run find_run(const OpArgs& args, uint32_t window) {
  const int32_t *positions = args.buffer<const int32_t>(binding::Attention::pos),
                *slots = args.buffer<const int32_t>(binding::Attention::slot);
  const uint32_t n = args.dim(symbol::Attention::rows), lane = threadIdx.x % 32;
  uint32_t offsets[kRunWords];  // distance of the lane's tokens from the last one that follows no other
  uint32_t last_break = 0, most_chunks = 0;
#pragma unroll
  for (uint32_t w = 0; w < kRunWords; ++w) {
    if (w * 32 >= n) continue;
    const uint32_t t = w * 32 + lane, own = min(t, n - 1), before = own > 0 ? own - 1 : 0;
    const int32_t pos = positions[own];
    const bool follows = t > 0 && slots[own] == slots[before] && pos == positions[before] + 1;
    const uint32_t breaks = __ballot_sync(0xFFFFFFFFu, !follows), so_far = breaks & (0xFFFFFFFFu >> (31 - lane)),
                   since = so_far != 0 ? w * 32 + 31 - __clz(static_cast<int>(so_far)) : last_break;
    offsets[w] = t - since;
    if (breaks != 0) last_break = w * 32 + 31 - __clz(static_cast<int>(breaks));
    const auto at = static_cast<uint32_t>(pos);
    most_chunks = max(most_chunks, at / kChunk - first_seen(window, at) / kChunk + 1);
  }
  most_chunks = __reduce_max_sync(0xFFFFFFFFu, most_chunks);
  const auto starts_of = [&](uint32_t w, uint32_t most) {
    return __ballot_sync(0xFFFFFFFFu, w * 32 + lane < n && offsets[w] % most == 0);
  };
  uint32_t most = 2 * args.symbols[symbol::AttentionRuns::run_tokens], n_runs = 0;
  do {
    most /= 2, n_runs = 0;
#pragma unroll
    for (uint32_t w = 0; w < kRunWords; ++w)
      if (w * 32 < n) n_runs += __popc(starts_of(w, most));
  } while (most > 1 && n_runs * most_chunks * gridDim.y < args.symbols[symbol::AttentionRuns::least_workgroups]);
  const uint32_t n_parts = max(gridDim.x / n_runs, 1u), run = blockIdx.x % n_runs, part = blockIdx.x / n_runs;
  if (part >= n_parts) return {};
  uint32_t first = 0, end = n, rank = 0, before = 0;
#pragma unroll
  for (uint32_t w = 0; w < kRunWords; ++w) {
    if (w * 32 >= n) continue;
    const uint32_t starts = starts_of(w, most), own = rank + __popc(starts & ((1u << lane) - 1));
    const bool is_start = (starts >> lane & 1) != 0;
    const uint32_t at_first = __ballot_sync(0xFFFFFFFFu, is_start && own == run),
                   at_next = __ballot_sync(0xFFFFFFFFu, is_start && own == run + 1);
    if (at_first != 0) {
      const int first_lane = __ffs(static_cast<int>(at_first)) - 1;
      first = w * 32 + first_lane, before = __shfl_sync(0xFFFFFFFFu, offsets[w], first_lane);
    }
    if (at_next != 0) end = w * 32 + __ffs(static_cast<int>(at_next)) - 1;
    rank += __popc(starts);
  }
  return {first, end - first, before, part, n_parts};
}

// Work on four columns at once by a warp: eight lanes share a column.
struct FourColumns {
  static __device__ __forceinline__ uint32_t of_lane() { return threadIdx.x % 32 / 8; }
  static __device__ __forceinline__ uint32_t lane() { return threadIdx.x % 8; }
  template <class Join>
  static __device__ __forceinline__ float all(float v, const Join& join) {
#pragma unroll
    for (uint32_t width = 4; width > 0; width /= 2) v = join(v, __shfl_xor_sync(0xFFFFFFFFu, v, width));
    return v;
  }
  // Returns NaN if one of the eight lanes has a NaN.
  static __device__ __forceinline__ float largest_or_nan(float v) {
    return all(v, [](float a, float b) { return max_or_nan(a, b); });
  }
};

// Returns the range of the chunk's tokens that a token at `pos` sees.
__device__ __forceinline__ Range seen_by(uint32_t window, uint32_t pos, uint32_t chunk) {
  const uint32_t begin = chunk * kChunk, first = max(first_seen(window, pos), begin),
                 end = min(pos + 1, begin + kChunk);
  return first < end ? Range{first - begin, end - begin} : Range{0, 0};
}

// The scores of a column in a chunk, shared by the column's eight lanes. A lane has the tokens lane() and lane() + 8 of
// each page.
struct ColumnScores {
  static constexpr uint32_t kOwn = kChunk / 8;
  float p[kOwn];    // scores, then their exponentials
  float most, sum;  // over all lanes

  static __device__ __forceinline__ uint32_t token(uint32_t i) { return i / 2 * 16 + i % 2 * 8 + FourColumns::lane(); }
  // scores: those of the column's tokens, before they are multiplied by `scale`. The exponential of a token that is not
  // seen is 0.
  __device__ __forceinline__ ColumnScores(const push::FlashAttn& c, const float* scores, float scale, Range seen) {
    most = -__int_as_float(0x7f800000);
#pragma unroll
    for (uint32_t i = 0; i < kOwn; ++i) p[i] = scores[token(i)] * scale;
    if (c.softcap > 0.0f) {
#pragma unroll
      for (float& score : p) score = c.softcap * exact::tanh(score * exact::rcp(c.softcap));
    }
#pragma unroll
    for (uint32_t i = 0; i < kOwn; ++i)
      if (seen.has(token(i)) && p[i] > most) most = p[i];
    most = FourColumns::all(most, [](float a, float b) { return a > b ? a : b; });
    float sums[2] = {0.0f, 0.0f};
#pragma unroll
    for (uint32_t i = 0; i < kOwn; ++i) {
      p[i] = seen.has(token(i)) ? exp_of_difference(p[i] - most) : 0.0f;
      sums[i % 2] = sums[i % 2] + p[i];
    }
    sum = FourColumns::all(sums[0] + sums[1], [](float a, float b) { return a + b; });
  }
};

// Converts the weights p * d(token) of four columns to digits laid out for products of 32 tokens (make_digits in
// token_chunks.cuh has the layout). kOrder: an argument of __byte_perm that makes a word from the bytes of two lanes;
// the first lane has the tokens t and t + 8, the second t + 1 and t + 9. seen: what the lane's column sees. digits:
// where those of the four columns go. Returns the scale of the column's codes.
template <uint32_t kOrder, class Scale>
__device__ __forceinline__ float make_digits_of_four(const ColumnScores& of, const Scale& d, Range seen,
                                                     uint2 (*digits)[32]) {
  float weights[ColumnScores::kOwn], largest = 0.0f;
#pragma unroll
  for (uint32_t i = 0; i < ColumnScores::kOwn; ++i) {
    const uint32_t token = ColumnScores::token(i);
    weights[i] = seen.has(token) ? of.p[i] * d(token) : 0.0f;
    largest = max_or_nan(largest, weights[i]);
  }
  const CodeScale scale = code_scale(FourColumns::largest_or_nan(largest));
  // Of each two lanes the first one stores the word of high digits, and the second one that of low digits.
  const uint32_t lane = FourColumns::lane();
  const bool is_second = lane % 2 != 0;
  auto* words =
      reinterpret_cast<uint32_t*>(digits[0] + (FourColumns::of_lane() * 2 + (is_second ? 1 : 0)) * 4 + lane / 2);
#pragma unroll
  for (uint32_t page = 0; page < kChunk / 16; ++page) {
    const uint32_t a = code_bits(weights[2 * page], scale.inverse), b = code_bits(weights[2 * page + 1], scale.inverse),
                   high = __byte_perm(a, b, 0x5151), low = __byte_perm(a, b, 0x4040) ^ kLowBits,
                   other = __shfl_xor_sync(0xFFFFFFFFu, is_second ? high : low, 1);
    words[page / 2 * 32 * 2 + page % 2] =
        is_second ? __byte_perm(other, low, kOrder) : __byte_perm(high, other, kOrder);
  }
  return scale.d;
}

// The chunks of a run that this workgroup takes: first_chunk, and then each n_parts-th.
struct RunChunks : TokenChunks {
  uint32_t last_pos;

  __device__ __forceinline__ RunChunks(const OpArgs& args, const push::FlashAttn& c, const Run& run)
      : TokenChunks(args, c, run.first), last_pos(pos + run.n - 1) {
    first_chunk += run.part, last_chunk = last_pos / kChunk;
  }
  // Returns the range of a chunk that at least one token of the run sees.
  __device__ __forceinline__ Range range_of(uint32_t chunk) const {
    return Range{max(chunk * kChunk, first) - chunk * kChunk, min(kChunk, last_pos + 1 - chunk * kChunk)};
  }
  // Whether all of a chunk was written by earlier steps, so that it may be read before the step's inputs are there.
  __device__ __forceinline__ bool is_early(const Run& run, uint32_t chunk) const {
    return chunk * kChunk + kChunk + run.before <= pos;
  }
};

// Returns the index of the query head that belongs to a column of a run. The index counts the query heads of all tokens
// of the step: token * n_heads + head. group: query heads per kv head.
__device__ __forceinline__ uint32_t head_of_column(const push::FlashAttn& c, const Run& run, uint32_t kv_head,
                                                   uint32_t group, uint32_t column) {
  return (run.first + column / group) * c.n_heads + kv_head * group + column % group;
}

// Calls use(c, run) with this workgroup's run, if it has one. use() must wait for the inputs. kDim: as in
// with_heads_of().
template <uint32_t kDim, class Use>
__device__ __forceinline__ void with_own_run(const OpArgs& args, const Use& use) {
  let_next_start();
  wait_for_places(args);
  const auto c = with_heads_of<kDim>(args.constants<push::FlashAttn>());
  const Run run = find_run(args, c.window);
  if (run.n == 0)
    wait_for_inputs();
  else
    use(c, run);
}

}  // namespace zinc_rt::cuda

// What attention of tiles of tokens has for integers and for rotated codes: the rows of a warp, exponentials of their
// scores, and how chunks are merged. A warp has 16 rows (tokens by heads), a lane two of them, lane / 4 and 8 more; of
// scores it has the columns of 8 tokens a tile, lane % 4 * 2 and the next.
#pragma once

#include "kernels/cuda/integer_cells.cuh"

namespace zinc_rt::cuda {

constexpr uint32_t kTokenTiles = kChunk / 8;
using Scores = float[kTokenTiles][4];

// Over the four lanes that share a row.
__device__ __forceinline__ float largest_of_row(float v) {
  v = max_or_nan(v, __shfl_xor_sync(0xFFFFFFFFu, v, 1));
  return max_or_nan(v, __shfl_xor_sync(0xFFFFFFFFu, v, 2));
}

__device__ __forceinline__ void cap(Scores& s, float softcap) {
  if (softcap > 0.0f) {
    const float per_softcap = exact::rcp(softcap);
#pragma unroll
    for (uint32_t tile = 0; tile < kTokenTiles; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[tile][i] = softcap * exact::tanh(s[tile][i] * per_softcap);
  }
}

// What of a row counts in its chunk.
struct RowChunk {
  float most, sum;
};
// Scores become what weight(tile, i, p) makes of their exponentials, and `unseen`, which is 0 or -0, where a row does
// not see the token. kIsEdge: rows do not see all of the chunk.
template <bool kIsEdge, class Weight>
__device__ __forceinline__ void exponentials(Scores& s, const Range (&seen)[2], RowChunk (&rows)[2],
                                             const Weight& weight, float unseen = 0.0f) {
  const auto is_seen = [&](uint32_t tile, int i) {
    return !kIsEdge || seen[i / 2].has(tile * 8 + threadIdx.x % 4 * 2 + i % 2);
  };
  constexpr float kInfinity = __builtin_inff();
  float most[2] = {-kInfinity, -kInfinity}, sums[2][4] = {};  // of tokens with the same place in a page
#pragma unroll
  for (uint32_t tile = 0; tile < kTokenTiles; ++tile)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (is_seen(tile, i)) most[i / 2] = max_or_nan(most[i / 2], s[tile][i]);
#pragma unroll
  for (int r = 0; r < 2; ++r) most[r] = largest_of_row(most[r]);
#pragma unroll
  for (uint32_t tile = 0; tile < kTokenTiles; ++tile)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float below = s[tile][i] - most[i / 2];  // a NaN's weight is not used
      const float p = is_seen(tile, i) ? exp_of_nonpositive(below > -104.0f ? below : -104.0f) : 0.0f;
      float& sum = sums[i / 2][tile % 2 * 2 + i % 2];
      sum = sum + p;
      s[tile][i] = is_seen(tile, i) ? weight(tile, i, p) : unseen;
    }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    // The fold of 16 sums, of which a lane has l = lane % 4 * 2, the next, and those 8 further.
    float first = sums[r][0] + sums[r][2], second = sums[r][1] + sums[r][3];
    first = first + __shfl_xor_sync(0xFFFFFFFFu, first, 2), second = second + __shfl_xor_sync(0xFFFFFFFFu, second, 2);
    first = first + __shfl_xor_sync(0xFFFFFFFFu, first, 1), second = second + __shfl_xor_sync(0xFFFFFFFFu, second, 1);
    // Without a finite maximum the weights are NaN.
    rows[r] = {most[r], most[r] - most[r] == 0.0f ? first + second : nan_value()};
  }
}

// Digits of weights as an operand: a register of a page's 16 tokens and a row, of which lane % 4 has tokens lane % 4 *
// 2, the next, and those 8 further.
struct Digits {
  uint32_t high[4], low[4];
};
// bits: of the four tokens' codes (code_bits).
__device__ __forceinline__ void set_digits(Digits& of, uint32_t i, const uint32_t (&bits)[4]) {
  const uint32_t a = __byte_perm(bits[0], bits[1], 0x5140), b = __byte_perm(bits[2], bits[3], 0x5140);
  of.high[i] = __byte_perm(a, b, 0x7632);
  of.low[i] = __byte_perm(a, b, 0x5410) ^ kLowBits;
}

// What of a lane's row is merged so far.
struct Row {
  uint32_t pos, first_chunk;
  float most, sum, before, after;
  bool is_first;

  __device__ __forceinline__ void join(const RowChunk& of, uint32_t chunk) {
    is_first = chunk <= first_chunk;  // what was before it is not seen
    const float now = is_first || of.most > most ? of.most : most;
    before = exact::exp(most - now), after = exact::exp(of.most - now);
    sum = is_first ? of.sum : __fmaf_rn(of.sum, after, sum * before);
    most = now;
  }
  __device__ __forceinline__ float joined(float own, float was) const {
    return is_first ? own : __fmaf_rn(own, after, was * before);
  }
};

// The tokens of a tile, one after another in a slot, with the query heads of a kv head.
struct TileRows {
  const push::FlashAttn& c;
  const uint32_t kv_head, group;
  const Tokens tokens;
  const int32_t* pages;
  const uint32_t pos, last, last_chunk, first_chunk, all_see;

  __device__ __forceinline__ TileRows(const OpArgs& args, const push::FlashAttn& shape, uint32_t head, Tokens of)
      : c(shape),
        kv_head(head),
        group(shape.n_heads / shape.n_kv_heads),
        tokens(of),
        pages(args.buffer<const int32_t>(binding::Attention::page_table) +
              static_cast<uint64_t>(args.buffer<const int32_t>(binding::Attention::slot)[of.first]) *
                  args.dim(symbol::AttentionTiles::m)),
        pos(static_cast<uint32_t>(args.buffer<const int32_t>(binding::Attention::pos)[of.first])),
        last(pos + of.n - 1),
        last_chunk(last / kChunk),
        first_chunk(first_seen(shape.window, pos) / kChunk),
        all_see(first_seen(shape.window, last)) {}

  __device__ __forceinline__ uint32_t n() const { return tokens.n * group; }
  static __device__ __forceinline__ uint32_t first_of_warp() { return threadIdx.x / 32 * 16; }
  static __device__ __forceinline__ uint32_t own(int r) { return first_of_warp() + r * 8 + threadIdx.x % 32 / 4; }
  // Counted through all tokens and heads of the step.
  __device__ __forceinline__ uint64_t head_of(uint32_t row) const {
    return static_cast<uint64_t>(tokens.first + row / group) * c.n_heads + kv_head * group + row % group;
  }
  __device__ __forceinline__ void begin(Row (&rows)[2]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      rows[r].pos = pos + min(own(r) / group, tokens.n - 1);
      rows[r].first_chunk = first_seen(c.window, rows[r].pos) / kChunk;
      rows[r].most = rows[r].sum = 0.0f;
    }
  }
  // What some row sees of a chunk.
  __device__ __forceinline__ Range range_of(uint32_t chunk) const {
    return Range{max(chunk * kChunk, first_seen(c.window, pos)) - chunk * kChunk,
                 min(kChunk, last + 1 - chunk * kChunk)};
  }
  // Whether some row does not see all of it.
  __device__ __forceinline__ bool is_edge(uint32_t chunk) const {
    return chunk * kChunk + kChunk > pos + 1 || chunk * kChunk < all_see;
  }
  __device__ __forceinline__ void seen_of(const Row (&rows)[2], uint32_t chunk, Range (&seen)[2]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint32_t end = min(kChunk, rows[r].pos + 1 - chunk * kChunk);
      seen[r] = {min(max(chunk * kChunk, first_seen(c.window, rows[r].pos)) - chunk * kChunk, end), end};
    }
  }
};

}  // namespace zinc_rt::cuda

// What attention of tiles of tokens shares between 16-bit integers and rotated codes: the rows of a warp, the
// exponentials of their scores, and the merging of chunks. A warp computes 16 rows (tokens by heads) of the products of
// m16n8. GPU lane l has rows l / 4 and l / 4 + 8. Of each tile of 8 tokens it has the scores of tokens l % 4 * 2 and
// the next one.
#pragma once

#include "kernels/cuda/integer_cells.cuh"

namespace zinc_rt::cuda {

// The scores of a chunk that a lane has: s[tile][2 * r + c] is that of row l / 4 + 8 * r and token tile * 8 + l % 4 * 2
// + c.
constexpr uint32_t kTokenTiles = kChunk / 8;
using Scores = float[kTokenTiles][4];

// Returns the maximum over the four lanes that share a row, or NaN if one is NaN.
__device__ __forceinline__ float largest_of_row(float v) {
  v = max_or_nan(v, __shfl_xor_sync(0xFFFFFFFFu, v, 1));
  return max_or_nan(v, __shfl_xor_sync(0xFFFFFFFFu, v, 2));
}

// Applies the soft cap of scores, if the model has one.
__device__ __forceinline__ void cap(Scores& s, float softcap) {
  if (softcap > 0.0f) {
    const float per_softcap = exact::rcp(softcap);
#pragma unroll
    for (uint32_t tile = 0; tile < kTokenTiles; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[tile][i] = softcap * exact::tanh(s[tile][i] * per_softcap);
  }
}

// The maximum and the sum of the exponentials of a row in a chunk.
struct RowChunk {
  float most, sum;
};
// Replaces each score of a token that its row sees by weight(tile, i, p), where p = exp(score - maximum), and each
// other score by `unseen`, which is 0 or -0. rows: receives maxima and sums. kIsEdge: some rows do not see all of the
// chunk.
template <bool kIsEdge, class Weight>
__device__ __forceinline__ void exponentials(Scores& s, const Range (&seen)[2], RowChunk (&rows)[2],
                                             const Weight& weight, float unseen = 0.0f) {
  const auto is_seen = [&](uint32_t tile, int i) {
    return !kIsEdge || seen[i / 2].has(tile * 8 + threadIdx.x % 4 * 2 + i % 2);
  };
  constexpr float kInfinity = __builtin_inff();
  // sums[r][j] is for row r and one of the 16 lanes of the order of sums: the tokens whose place in a page of 16 is j /
  // 2 * 8 + l % 4 * 2 + j % 2.
  float most[2] = {-kInfinity, -kInfinity}, sums[2][4] = {};
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
      const float below = s[tile][i] - most[i / 2];  // if this is NaN, its weight is not used
      const float p = is_seen(tile, i) ? exp_of_nonpositive(below > -104.0f ? below : -104.0f) : 0.0f;
      float& sum = sums[i / 2][tile % 2 * 2 + i % 2];
      sum = sum + p;
      s[tile][i] = is_seen(tile, i) ? weight(tile, i, p) : unseen;
    }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    // The fold over the 16 lanes of the order of sums. GPU lane l has four of them: l % 4 * 2, the next one, and those
    // 8 further.
    float first = sums[r][0] + sums[r][2], second = sums[r][1] + sums[r][3];
    first = first + __shfl_xor_sync(0xFFFFFFFFu, first, 2), second = second + __shfl_xor_sync(0xFFFFFFFFu, second, 2);
    first = first + __shfl_xor_sync(0xFFFFFFFFu, first, 1), second = second + __shfl_xor_sync(0xFFFFFFFFu, second, 1);
    // If the maximum is not finite, the sum becomes NaN, and so does the row.
    rows[r] = {most[r], most[r] - most[r] == 0.0f ? first + second : nan_value()};
  }
}

// The digits of weights as the operands A of a product: each register is for one row and a page of 16 tokens, of which
// lane l has tokens l % 4 * 2, the next one, and those 8 further.
struct Digits {
  uint32_t high[4], low[4];
};
// bits: what code_bits() returned for the four tokens.
__device__ __forceinline__ void set_digits(Digits& of, uint32_t i, const uint32_t (&bits)[4]) {
  const uint32_t a = __byte_perm(bits[0], bits[1], 0x5140), b = __byte_perm(bits[2], bits[3], 0x5140);
  of.high[i] = __byte_perm(a, b, 0x7632);
  of.low[i] = __byte_perm(a, b, 0x5410) ^ kLowBits;
}

// The state of one of the two rows of a lane while chunks are merged: its position, the first chunk that it sees, the
// maximum and sum so far, and the factors for merging the current chunk.
struct Row {
  uint32_t pos, first_chunk;
  float most, sum, before, after;
  bool is_first;

  // Merges the maximum and sum of a chunk, and computes the factors for its values.
  __device__ __forceinline__ void join(const RowChunk& of, uint32_t chunk) {
    is_first = chunk <= first_chunk;  // what was merged before is not seen by this row
    const float now = is_first || of.most > most ? of.most : most;
    before = exact::exp(most - now), after = exact::exp(of.most - now);
    sum = is_first ? of.sum : __fmaf_rn(of.sum, after, sum * before);
    most = now;
  }
  // Returns the merged value: `was` from the chunks before, `own` from the current chunk.
  __device__ __forceinline__ float joined(float own, float was) const {
    return is_first ? own : __fmaf_rn(own, after, was * before);
  }
};

// The rows of a tile: consecutive tokens of a slot, times the query heads of a kv head.
struct TileRows {
  const push::FlashAttn& c;
  const uint32_t kv_head, group;
  const Tokens tokens;
  const int32_t* pages;
  // pos and last: positions of the first and the last token. first_chunk and last_chunk: the chunks that the tile sees.
  // all_see: the first position that all rows see, as far as the window decides that.
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

  // Returns the number of rows.
  __device__ __forceinline__ uint32_t n() const { return tokens.n * group; }
  static __device__ __forceinline__ uint32_t first_of_warp() { return threadIdx.x / 32 * 16; }
  // Returns the number of the lane's first (r = 0) or second (r = 1) row.
  static __device__ __forceinline__ uint32_t own(int r) { return first_of_warp() + r * 8 + threadIdx.x % 32 / 4; }
  // Returns the query head's number, counted through all tokens of the step.
  __device__ __forceinline__ uint64_t head_of(uint32_t row) const {
    return static_cast<uint64_t>(tokens.first + row / group) * c.n_heads + kv_head * group + row % group;
  }
  // Initializes the state of the lane's two rows.
  __device__ __forceinline__ void begin(Row (&rows)[2]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      rows[r].pos = pos + min(own(r) / group, tokens.n - 1);
      rows[r].first_chunk = first_seen(c.window, rows[r].pos) / kChunk;
      rows[r].most = rows[r].sum = 0.0f;
    }
  }
  // Returns the positions of a chunk that at least one row sees.
  __device__ __forceinline__ Range range_of(uint32_t chunk) const {
    return Range{max(chunk * kChunk, first_seen(c.window, pos)) - chunk * kChunk,
                 min(kChunk, last + 1 - chunk * kChunk)};
  }
  // Whether at least one row does not see all of the chunk.
  __device__ __forceinline__ bool is_edge(uint32_t chunk) const {
    return chunk * kChunk + kChunk > pos + 1 || chunk * kChunk < all_see;
  }
  // Sets seen[r] to the positions of a chunk that the lane's row r sees.
  __device__ __forceinline__ void seen_of(const Row (&rows)[2], uint32_t chunk, Range (&seen)[2]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const uint32_t end = min(kChunk, rows[r].pos + 1 - chunk * kChunk);
      seen[r] = {min(max(chunk * kChunk, first_seen(c.window, rows[r].pos)) - chunk * kChunk, end), end};
    }
  }
};

}  // namespace zinc_rt::cuda

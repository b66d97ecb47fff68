// How four warps compute a chunk of K and V of 16-bit integers with the products of tensor cores. Codes of K and V are
// the rows of a product. Its columns are the two digits of q, or of the weights, of four heads. Codes go from the cache
// directly to registers (integer_cells.cuh), 128 values of a head at a time.
// Scores: each warp computes 32 keys; each lane holds four keys and, in step s, the words 16 s + 4 j + lane % 4 of
// them, j = 0..3. So a product takes values in an order of its own, which is free because sums of integers are exact.
// Values: each warp computes 32 values of the head.
#pragma once

#include "kernels/cuda/token_chunks.cuh"

namespace zinc_rt::cuda {

constexpr uint32_t kThreads = kAttendIntegerThreads, kWarps = kThreads / 32, kPages = kChunk / 16;
constexpr uint32_t kBlock = 128, kSteps = kBlock / 32;  // values of a head that are computed at a time
static_assert(kThreads == 128 && kWarps * 32 == kChunk && kWarps * 32 == kBlock);

// Returns where digit `digit` (0: high, 1: low) of value i of a head of q lies. For four heads and 32 values, lane l of
// a product has column l / 4, which is head l / 8 and digit l / 4 % 2.
__device__ __forceinline__ uint8_t* q_digits(uint2* q, uint32_t steps, uint32_t head, uint32_t digit, uint32_t i) {
  const uint32_t word = i / 2, step = word / 16, j = word / 4 % 4, lane = (head % 4 * 2 + digit) * 4 + word % 4;
  return reinterpret_cast<uint8_t*>(q + ((head / 4) * steps + step) * 32 + lane) + j * 2 + i % 2;
}
// Converts head h of q to digits, by a warp. x: its values, or null for a head that does not exist, whose digits are 0.
// scales: gets the factor of the head's scores.
__device__ __forceinline__ void quantize_head(const push::FlashAttn& c, const float* x, uint32_t h, uint2* q,
                                              float* scales) {
  const uint32_t lane = threadIdx.x % 32, steps = (c.head_dim + 31) / 32;
  float most = 0.0f;
  if (x != nullptr)
    for (uint32_t i = lane; i < c.head_dim; i += 32) most = max_or_nan(most, x[i] < 0 ? -x[i] : x[i]);
  const CodeScale scale = code_scale(largest_or_nan_of_warp(most));
  for (uint32_t i = lane; i < steps * 32; i += 32) {
    const uint32_t bits = code_bits(x != nullptr && i < c.head_dim ? x[i] : 0.0f, scale.inverse);
    *q_digits(q, steps, h, 0, i) = static_cast<uint8_t>(bits >> 8);
    *q_digits(q, steps, h, 1, i) = static_cast<uint8_t>(bits ^ 0x80);
  }
  if (lane == 0 && x != nullptr) scales[h] = c.scale * scale.d;
}

struct IntegerChunk {
  const OpArgs& args;
  const push::FlashAttn c;
  const uint32_t kv_head;

  static __device__ __forceinline__ uint32_t lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ uint32_t warp() { return threadIdx.x / 32; }

  // own_pages: the result of own_page(). Codes are what a lane holds of K (by step, words of four tokens) or of V (by
  // 32 tokens, pairs of tokens with four values). Codes that do not exist keep their former content. That is harmless:
  // they are multiplied by digits that are 0, or make scores that are not read.
  using Codes = uint4[kSteps][4];
  // The page of the lane's four keys, and their scales.
  struct KeyPlace {
    const uint8_t* page;  // the codes of the head in the page; null: the page is not seen
    uint2 scales;
  };
  __device__ __forceinline__ uint2 scales_of_keys(const uint8_t* codes) const {
    return *reinterpret_cast<const uint2*>(codes - kv_integer::codes_at(kv_head, c.head_dim) +
                                           kv_integer::scales_at(kv_head, c.n_kv_heads, c.head_dim) +
                                           lane() / 4 % 4 * 8);
  }
  __device__ __forceinline__ KeyPlace find_keys(int32_t own_pages, Range range) const {
    const uint32_t own = warp() * 2 + lane() / 16;
    const int32_t page = page_of(own_pages, own);
    if (!has_page(range, own)) return {nullptr, {0, 0}};
    const uint8_t* codes = page_at(args, true, page) + kv_integer::codes_at(kv_head, c.head_dim);
    return {codes, scales_of_keys(codes)};
  }
  __device__ __forceinline__ void ask_keys(Codes& k, const uint8_t* page, uint32_t first) const {
    const uint32_t words = page != nullptr ? c.head_dim / 2 : 0, word = first / 2 + lane() % 4;
    const uint8_t* from = page + word * 64 + lane() / 4 % 4 * 16;
#pragma unroll
    for (uint32_t s = 0; s < kSteps; ++s)
#pragma unroll
      for (uint32_t j = 0; j < 4; ++j) {
        if (word + 16 * s + 4 * j < words) k[s][j] = *reinterpret_cast<const uint4*>(from + (16 * s + 4 * j) * 64);
      }
  }
  // Loads the values [first, first + kBlock) of the chunk's tokens.
  __device__ __forceinline__ void ask_values(Codes& v, int32_t own_pages, Range range, uint32_t first) const {
    const uint32_t value = first + warp() * 32 + lane() / 4 * 4;
    const bool has_value = value < c.v_head_dim;
    const uint64_t at = kv_integer::codes_at(kv_head, c.v_head_dim) + (lane() % 4 * c.v_head_dim + value) * 4;
#pragma unroll
    for (uint32_t i = 0; i < kPages; ++i) {
      const int32_t page = page_of(own_pages, i);
      const bool is_there = has_value && has_page(range, i);
      const uint8_t* from = page_at(args, false, page) + at;
#pragma unroll
      for (uint32_t j = 0; j < 2; ++j) {
        if (is_there) v[i / 2][i % 2 * 2 + j] = *reinterpret_cast<const uint4*>(from + j * 16 * c.v_head_dim);
      }
    }
  }
  // Loads the scales of V of the tokens whose weights this lane makes.
  __device__ __forceinline__ void ask_value_scales(float (&d)[4], int32_t own_pages, Range range) const {
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t own = 2 * i + lane() / 16;
      const int32_t page = page_of(own_pages, own);
      d[i] = 0.0f;
      if (!has_page(range, own)) continue;
      const auto* scales = reinterpret_cast<const uint16_t*>(
          page_at(args, false, page) + kv_integer::scales_at(kv_head, c.n_kv_heads, c.v_head_dim));
      d[i] = __uint_as_float(static_cast<uint32_t>(scales[lane() % 16]) << 16);
    }
  }

  // Sums of the upper and of the lower bytes of codes, for two tiles of 16 rows and kTiles times four heads.
  template <uint32_t kTiles>
  using Sums = int[kTiles][2][2][4];
  // Adds a step to the sums. digits: those of the first four heads; those of each next four lie `pitch` further. n: how
  // many heads there are.
  template <uint32_t kTiles>
  static __device__ __forceinline__ void add(Sums<kTiles>& sums, const uint4 (&of)[4], const uint2* digits,
                                             uint32_t pitch, uint32_t n) {
#pragma unroll
    for (uint32_t rows = 0; rows < 2; ++rows) {
      const auto first = [&](uint32_t j) { return rows == 0 ? of[j].x : of[j].z; };
      const auto second = [&](uint32_t j) { return rows == 0 ? of[j].y : of[j].w; };
      const uint32_t upper[4] = {upper_bytes(first(0), first(1)), upper_bytes(second(0), second(1)),
                                 upper_bytes(first(2), first(3)), upper_bytes(second(2), second(3))},
                     lower[4] = {lower_bytes(first(0), first(1)), lower_bytes(second(0), second(1)),
                                 lower_bytes(first(2), first(3)), lower_bytes(second(2), second(3))};
#pragma unroll
      for (uint32_t tile = 0; tile < kTiles; ++tile) {
        if (tile * 4 >= n) continue;
        const uint2 b = digits[tile * pitch + lane()];
        mma32<true>(sums[tile][rows][0], upper, b);
        mma32<false>(sums[tile][rows][1], lower, b);
      }
    }
  }
  // Returns the sums of four rows for head lane % 4 of a tile.
  static __device__ __forceinline__ float4 join(const int (&sums)[2][2][4]) {
    const auto of = [&](int rows, int i) {
      return joined(sums[rows][0][i], sums[rows][1][i], sums[rows][0][i + 1], sums[rows][1][i + 1]);
    };
    return make_float4(of(0, 0), of(0, 2), of(1, 0), of(1, 2));
  }
};

}  // namespace zinc_rt::cuda

// How four warps compute a chunk of K and V of rotated codes with the products of tensor cores. Codes of K and V are
// the rows of a product. Its columns are the codes of q of eight heads, or the digits of the weights of four heads.
// Codes of K go from the cache directly to registers (rotated_cells.cuh), codes of V to shared memory.
// Scores: each warp computes 32 keys; each lane holds four of them. Values: each warp computes 32 values at a time,
// which are 16 bytes of each token's codes.
#pragma once

#include "kernels/cuda/rotated_cells.cuh"
#include "kernels/cuda/token_chunks.cuh"

namespace zinc_rt::cuda {

constexpr uint32_t kThreads = kAttendRotatedThreads, kWarps = kThreads / 32, kHeads = 8, kPages = kChunk / 16;
// kKeyBlocks: blocks of a key that are loaded at a time.
constexpr uint32_t kMostBlocks = rotated::kMostBlocks, kKeyBlocks = 2;
static_assert(kThreads == kChunk && kHeads == kAttendRotatedHeads);

template <bool kIsR8>
struct RotatedChunk {
  static constexpr uint32_t kBlockWords = kIsR8 ? 16 : 8, kVectors = kKeyBlocks * kBlockWords / 4;

  const OpArgs& args;
  const push::FlashAttn c;
  const uint32_t kv_head;

  static __device__ __forceinline__ uint32_t lane() { return threadIdx.x % 32; }
  static __device__ __forceinline__ uint32_t warp() { return threadIdx.x / 32; }

  // Converts heads of q to codes; each warp converts one head at a time. row(h) returns the values of head h. For eight
  // heads and 32 values, lane l of a product has column l / 4, which is the head. scales: by block, those of eight
  // heads.
  template <class Row>
  __device__ __forceinline__ void quantize_q(const Row& row, uint32_t n_heads, uint2* q, float* scales) const {
    const uint32_t n_blocks = c.head_dim / kv::kBlock;
#pragma unroll 1
    for (uint32_t h = warp(); h < n_heads; h += kWarps) {
      float x[rotated::kRegisters];
      rotated::rotate(row(h), c.head_dim, x);
      uint2* codes = q + h / kHeads * n_blocks * 2 * 32 + h % kHeads * 4;
#pragma unroll 1
      for (uint32_t b = 0; b < n_blocks; ++b) {
        const rotated::QBlock block =
            rotated::quantize_block(rotated::register_of(x, 2 * b), rotated::register_of(x, 2 * b + 1));
        const auto store = [&](uint32_t i, int code) {
          const rotated::QPlace at = rotated::place_of_q<kIsR8>(b * kv::kBlock + i);
          reinterpret_cast<int8_t*>(codes + at.step * 32 + at.word)[at.byte] = static_cast<int8_t>(code);
        };
        store(lane(), block.first);
        store(32 + lane(), block.second);
        if (lane() == 0) scales[(h / kHeads * n_blocks + b) * kHeads + h % kHeads] = block.d;
      }
    }
  }

  // What a lane holds of its four keys: the words and the scales of the blocks [first, first + kKeyBlocks). Blocks of
  // keys that are not seen, or past the end of the head, keep their former content; their scores are not read.
  struct Keys {
    uint4 words[kVectors];
    uint2 scales[kKeyBlocks];
  };
  __device__ __forceinline__ void ask_keys(Keys& k, int32_t own_pages, Range range, uint32_t first) const {
    const uint32_t own = warp() * 2 + lane() / 16, four = lane() / 4 % 4, n_blocks = c.head_dim / kv::kBlock;
    const uint8_t* page = page_at(args, true, page_of(own_pages, own));
    const bool is_there = has_page(range, own);
    const uint8_t *words = page + kv::codes_at(kIsR8, kv_head, c.head_dim) + (first * kBlockWords + lane() % 4) * 64 +
                           four * 16,
                  *scales = page + kv::scales_at(kIsR8, kv_head, c.n_kv_heads, c.head_dim) + first * 32 + four * 8;
#pragma unroll
    for (uint32_t b = 0; b < kKeyBlocks; ++b) {
      const bool has_block = is_there && first + b < n_blocks;
      if (has_block) k.scales[b] = *reinterpret_cast<const uint2*>(scales + b * 32);
#pragma unroll
      for (uint32_t i = b * kVectors / kKeyBlocks; i < (b + 1) * kVectors / kKeyBlocks; ++i) {
        if (has_block) k.words[i] = *reinterpret_cast<const uint4*>(words + i * 256);
      }
    }
  }
  // Makes the operand of a step of 32 values, of the lane's first two keys (rows = 0) or of the others.
  static __device__ __forceinline__ void load_step(const Keys& k, uint32_t step, uint32_t rows, uint32_t (&a)[4]) {
    const auto first = [&](uint32_t i) { return rows == 0 ? k.words[i].x : k.words[i].z; };
    const auto second = [&](uint32_t i) { return rows == 0 ? k.words[i].y : k.words[i].w; };
    if constexpr (kIsR8) {
      a[0] = first(2 * step), a[1] = second(2 * step), a[2] = first(2 * step + 1), a[3] = second(2 * step + 1);
    } else {
      const uint2 x = rotated::table_values(first(step)), y = rotated::table_values(second(step));
      a[0] = x.x, a[1] = y.x, a[2] = x.y, a[3] = y.y;
    }
  }

  // The dots of four keys (two for each `rows`) with two heads, in the order in which products give them.
  using Dots = float[2][4];
  __device__ __forceinline__ void add_dots(Dots& dots, const Keys& k, uint32_t first, const uint2* q,
                                           const float* scales) const {
#pragma unroll
    for (uint32_t b = 0; b < kKeyBlocks; ++b) {
      if (first + b >= c.head_dim / kv::kBlock) continue;
      const float2 d_q = *reinterpret_cast<const float2*>(scales + (first + b) * kHeads + lane() % 4 * 2);
#pragma unroll
      for (uint32_t rows = 0; rows < 2; ++rows) {
        int sums[4] = {rotated::kSumZero, rotated::kSumZero, rotated::kSumZero, rotated::kSumZero};
#pragma unroll
        for (uint32_t s = 0; s < 2; ++s) {
          uint32_t a[4];
          load_step(k, 2 * b + s, rows, a);
          mma32<true>(sums, a, q[((first + b) * 2 + s) * 32 + lane()]);
        }
        const uint32_t halves = rows == 0 ? k.scales[b].x : k.scales[b].y;
        const float d[2] = {rotated::key_scale<kIsR8>(halves), rotated::key_scale<kIsR8>(halves >> 16)};
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i)
          dots[rows][i] = __fmaf_rn(rotated::times_sum(sums[i], d[i / 2]), i % 2 == 0 ? d_q.x : d_q.y, dots[rows][i]);
      }
    }
  }

  // V of a chunk in shared memory: the codes of neighbouring tokens lie `pitch` bytes apart, and all scales follow the
  // codes, as in the cache. Tokens that are not seen are not loaded; their weights are 0.
  __device__ __forceinline__ uint32_t value_pitch() const { return attend_rotated_value_pitch(c.v_head_dim); }
  __device__ __forceinline__ uint16_t* scales_of_values(uint8_t* values) const {
    return reinterpret_cast<uint16_t*>(values + kChunk * value_pitch());
  }
  // Loads V. All threads go from page to page together, and each thread copies the same place of every page.
  __device__ __forceinline__ void ask_values(uint8_t* values, int32_t own_pages, Range range) const {
    const uint32_t shift = c.v_head_dim == 64 ? 1 : c.v_head_dim == 128 ? 2 : 3, vectors = 1u << shift;  // a token's
    const uint32_t pitch = value_pitch(), token = threadIdx.x >> shift, tokens = kThreads >> shift;
    const uint8_t* codes =
        page_at(args, false, 0) + kv::codes_at(false, kv_head, c.v_head_dim) + threadIdx.x % (16 * vectors) * 16;
    uint8_t* to = values + token * pitch + threadIdx.x % vectors * 16;
    const uint64_t page_bytes = args.symbols[symbol::Attention::pitch_kv_v];
#pragma unroll 2
    for (uint32_t first = token / 16; first < kPages; first += tokens / 16, to += tokens * pitch) {
      const auto page = static_cast<uint32_t>(page_of(own_pages, first));
      if (has_page(range, first)) copy_16(to, codes + page * page_bytes);
    }
    // The scales are copied by other warps than the codes of narrow heads.
    const uint32_t at = kThreads - 1 - threadIdx.x, of_page = at >> shift;
    const int32_t page = page_of(own_pages, of_page % kPages);
    if (of_page < kPages && has_page(range, of_page))
      copy_16(
          scales_of_values(values) + at * 8,
          page_at(args, false, page) + kv::scales_at(false, kv_head, c.n_kv_heads, c.v_head_dim) + at % vectors * 16);
    end_copy_batch();
  }

  // Codes of 32 values of 32 tokens as operands. The rows of `low` are the values in the low halves of 16 bytes, those
  // of `high` the values in the high halves. codes: the bytes of the lane's token.
  struct Values {
    uint32_t low[4], high[4];
    __device__ __forceinline__ explicit Values(const uint8_t* codes) {
      uint32_t m[4];
      load_matrices_transposed(m, codes);
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        const rotated::CodePairs pairs = rotated::pair_codes(m[2 * i], m[2 * i + 1]);
        const uint2 x = rotated::table_values(__byte_perm(pairs.low, 0, 0x3120)),
                    y = rotated::table_values(__byte_perm(pairs.high, 0, 0x3120));
        low[2 * i] = x.x, low[2 * i + 1] = x.y, high[2 * i] = y.x, high[2 * i + 1] = y.y;
      }
    }
  };
};

}  // namespace zinc_rt::cuda

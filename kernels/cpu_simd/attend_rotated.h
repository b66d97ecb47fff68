// Attention over rotated cells (kernels/common/kv_rotate.h) on 16 lanes, for any number of rows, as attend_body.h has it
// for the others: included there. The lanes of a score are the 16 tokens of a page, so that an integer sum needs no
// fold. Codes are unsigned bytes, 128 above their value, of which 16-bit pairs are multiplied; 128 times the sum of the
// query's bytes is where a sum starts. Values of a page are looked up once for all rows; a row's weights are those of
// its tokens times the scales of one block of 64 columns.
#pragma once

#include "kernels/common/kv_rotate.h"
#include "kernels/cpu/quant/rotated_kv.h"
#include "kernels/cpu_simd/attend_pages.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kMostBlocks = kv::kMaxHead / kv::kBlock;

// A row's query in memory of head_dim floats: for each word of four bytes its even and its odd bytes as pairs of 16
// bits, then where the sum of each block starts, then the scale of each block.
struct QueryWords {
  const std::int32_t* pairs;
  const std::int32_t* starts;
  const float* d;
};
ZRT_SIMD QueryWords query_words(const float* memory, std::uint32_t head_dim) {
  const auto* pairs = reinterpret_cast<const std::int32_t*>(memory);
  return {pairs, pairs + head_dim / 2, memory + head_dim / 2 + kMostBlocks};
}
void make_query_words(const float* q, std::uint32_t head_dim, float* memory) {
  cpu::RotatedQuery rotated;
  cpu::rotate_query(q, head_dim, rotated);
  auto* pairs = reinterpret_cast<std::int32_t*>(memory);
  const auto pair = [](std::int8_t a, std::int8_t b) __attribute__((always_inline)) {
    return static_cast<std::int32_t>(static_cast<std::uint16_t>(a) | static_cast<std::uint32_t>(b) << 16);
  };
  for (std::uint32_t w = 0; w < head_dim / 4; ++w) {
    const std::int8_t* b = rotated.q + 4 * w;
    pairs[2 * w] = pair(b[0], b[2]);
    pairs[2 * w + 1] = pair(b[1], b[3]);
  }
  for (std::uint32_t block = 0; block < head_dim / kv::kBlock; ++block) {
    std::int32_t sum = 0;
    for (std::uint32_t i = 0; i < kv::kBlock; ++i) sum += rotated.q[block * kv::kBlock + i];
    pairs[head_dim / 2 + block] = -128 * sum;
    memory[head_dim / 2 + kMostBlocks + block] = rotated.d[block];
  }
}

ZRT_SIMD PartCache rotated_cache_of(const cpu::AttendTile& tile, const void* memory, std::uint64_t pitch, DType type,
                                    std::uint32_t dim, std::int32_t slot) {
  const bool is_r8 = type == DType::kR8;
  return part_cache_of(tile, memory, pitch, kv::codes_at(is_r8, tile.kv_head, dim),
                       kv::scales_at(is_r8, tile.kv_head, tile.shape.n_kv_heads, dim), dim, slot);
}

// kTable, each value 128 more, as an unsigned byte.
struct ShiftedTable {
  std::int8_t values[16];
};
constexpr ShiftedTable shifted_table() {
  ShiftedTable table{};
  for (int i = 0; i < 16; ++i) table.values[i] = static_cast<std::int8_t>(kv::kTable[i] ^ -128);
  return table;
}
constexpr ShiftedTable kShifted = shifted_table();

// scores[r] = rotated_dots (rotated_kv.h) of kQ rows with the 16 tokens of a page.
template <int kQ, bool kIsR8>
__attribute__((noinline)) void rotated_page_dots(const QueryWords* q, const std::byte* codes, const std::byte* scales,
                                                 std::uint32_t n_blocks, float* const* scores) {
  const Ints low_bytes = splat(0x00FF00FF), nibbles = splat(0x0F0F0F0F);
  const Ints flip = splat(static_cast<std::int32_t>(0x80808080u));
  for (int r = 0; r < kQ; ++r) store(scores[r], splat(0.0f));
  for (std::uint32_t block = 0; block < n_blocks; ++block) {
    Ints acc[kQ];
    const std::int32_t* pairs[kQ];
    for (int r = 0; r < kQ; ++r) acc[r] = splat(q[r].starts[block]), pairs[r] = q[r].pairs + block * (kv::kBlock / 2);
    const auto add_word = [&](const Ints& bytes, std::uint32_t w) __attribute__((always_inline)) {
      const Ints even = bytes & low_bytes, odd = shift_right(bytes, 8) & low_bytes;
      for (int r = 0; r < kQ; ++r)
        acc[r] = acc[r] + dot_pairs(even, splat(pairs[r][2 * w])) + dot_pairs(odd, splat(pairs[r][2 * w + 1]));
    };
    if constexpr (kIsR8) {
      for (std::uint32_t w = 0; w < kv::kBlock / 4; ++w, codes += 64) add_word(load_ints(codes) ^ flip, w);
    } else {
      for (std::uint32_t w = 0; w < kv::kBlock / 8; ++w, codes += 64) {
        const Ints both = load_ints(codes);
        add_word(look_up(both & nibbles, kShifted.values), w);
        add_word(look_up(shift_right(both, 4) & nibbles, kShifted.values), w + kv::kBlock / 8);
      }
    }
    const Floats d = load_f16(scales + block * 2 * kPage) * splat(kIsR8 ? 1.0f : 1.0f / kv::kStoredScale);
    for (int r = 0; r < kQ; ++r) store(scores[r], fma(to_floats(acc[r]) * d, splat(q[r].d[block]), load(scores[r])));
  }
}

// A page's values as kTable has them, [16 tokens][dim], and the scales, [block][16 tokens].
__attribute__((noinline)) void look_up_values(const PartCache& cache, const std::byte* page, float* wide,
                                              float (*d)[kPage]) {
  const Ints nibbles = splat(0x0F0F0F0F);
  const std::uint32_t n_blocks = cache.dim / kv::kBlock;
  const std::byte* codes = page + cache.codes;
  for (std::uint32_t i = 0; i < kPage * n_blocks; i += 2, codes += kv::kBlock) {  // two blocks
    alignas(64) std::int8_t low[64], high[64];
    const Ints both = load_ints(codes);
    store(low, look_up(both & nibbles, kv::kTable));
    store(high, look_up(shift_right(both, 4) & nibbles, kv::kTable));
    for (int half = 0; half < 2; ++half, wide += kv::kBlock) {
      store(wide, load_i8(low + 32 * half));
      store(wide + 16, load_i8(low + 32 * half + 16));
      store(wide + 32, load_i8(high + 32 * half));
      store(wide + 48, load_i8(high + 32 * half + 16));
    }
  }
  for (std::uint32_t j = 0; j < kPage; ++j)
    for (std::uint32_t block = 0; block < n_blocks; ++block) {
      std::uint16_t stored;
      std::memcpy(&stored, page + cache.scales + (j * n_blocks + block) * 2, 2);
      d[block][j] = f16_to_float(stored) * (1.0f / kv::kStoredScale);
    }
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

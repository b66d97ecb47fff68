// Computes attention over rotated cells (kernels/common/kv_rotate.h) on 16 lanes, for any number of rows. attend_body.h
// includes this file. For scores the lanes are the 16 tokens of a page; for outputs they are 16 values. A lane
// multiplies pairs of 16 bits, so an integer sum needs no fold. Codes of keys are stored as unsigned bytes, 128 above
// their value, so a sum starts at -128 times the sum of the query's bytes. The values of a chunk are looked up once for
// all rows, a block of 64 columns at a time. Weights are not split into digits: a value has 8 bits, so a chunk's sum of
// products with whole codes fits 32 bits. float(sum) equals fma(float(A), 256, float(B)) of the reference, because both
// are the exact sum, rounded once.
#pragma once

#include "kernels/common/kv_rotate.h"
#include "kernels/cpu/quant/rotated_kv.h"
#include "kernels/cpu_simd/attend_parts.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kMostBlocks = kv::kMaxHead / kv::kBlock;
constexpr std::uint32_t kValueBytes = kv::kBlock / 2;  // bytes of the codes of one block of values

// Says where the parts of a row's query are in its memory of head_dim floats. First come the words: for each word of
// four bytes, its even and its odd bytes as pairs of 16 bits. Then come the start of each block's sum, and the scale of
// each block.
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

// Holds the values of kTable with 128 added to each, as unsigned bytes.
struct ShiftedTable {
  std::int8_t values[16];
};
constexpr ShiftedTable shifted_table() {
  ShiftedTable table{};
  for (int i = 0; i < 16; ++i) table.values[i] = static_cast<std::int8_t>(kv::kTable[i] ^ -128);
  return table;
}
constexpr ShiftedTable kShifted = shifted_table();

// Returns how many pages n rows multiply at once.
constexpr int rotated_pages(int n) {
  return kParts == 1 || n == 1 ? 2 : 1;
}
// Computes scores[r], the rotated_dots (rotated_kv.h) of kQ rows with the tokens of n pages, kPages at once.
template <int kQ, int kPages, bool kIsR8>
__attribute__((noinline)) void rotated_page_dots(const QueryWords* q, const PartPage* pages, std::uint64_t n,
                                                 std::uint64_t n_blocks, float* const* scores) {
  // Number of steps per block. A step prefetches a cache line and multiplies two words of r8 codes or one word of r4
  // codes.
  constexpr std::uint64_t kWords = kv::kBlock / 8;
  const Ints low_bytes = splat(0x00FF00FF), nibbles = splat(0x0F0F0F0F);
  const Ints flip = splat(static_cast<std::int32_t>(0x80808080u));
  float* to[kQ];
  for (int r = 0; r < kQ; ++r) to[r] = scores[r];
  do {
    const std::byte *codes[kPages], *ahead[kPages];
    for (int p = 0; p < kPages; ++p) codes[p] = pages[p].codes, ahead[p] = codes[p] + pages[p].ahead;
    for (int r = 0; r < kQ; ++r)
      for (int p = 0; p < kPages; ++p) store(to[r] + p * kLanes, splat(0.0f));
    for (std::uint64_t block = 0; block < n_blocks; ++block) {
      IntPart sums[kQ][kPages][kParts];
      const std::int32_t* pairs[kQ];
      for (int r = 0; r < kQ; ++r) {
        pairs[r] = q[r].pairs + block * (kv::kBlock / 2);
        for (int p = 0; p < kPages; ++p)
          for (int l = 0; l < kParts; ++l) sums[r][p][l] = splat_int_part(q[r].starts[block]);
      }
      const auto add_words = [&](Ints(&bytes)[kPages], std::uint64_t w) __attribute__((always_inline)) {
        Ints even[kPages], odd[kPages];
        for (int p = 0; p < kPages; ++p) {
          even[p] = bytes[p] & low_bytes, odd[p] = shift_right(bytes[p], 8) & low_bytes;
          for (int l = 0; l < kParts; ++l)
            part(even[p], l) = hold(part(even[p], l)), part(odd[p], l) = hold(part(odd[p], l));
        }
        for (int r = 0; r < kQ; ++r) {
          const IntPart of_even = hold(splat_int_part(pairs[r][2 * w]));
          for (int p = 0; p < kPages; ++p)
            for (int l = 0; l < kParts; ++l) sums[r][p][l] = add_dot_pairs(sums[r][p][l], part(even[p], l), of_even);
          const IntPart of_odd = hold(splat_int_part(pairs[r][2 * w + 1]));
          for (int p = 0; p < kPages; ++p)
            for (int l = 0; l < kParts; ++l) sums[r][p][l] = add_dot_pairs(sums[r][p][l], part(odd[p], l), of_odd);
        }
      };
#pragma GCC unroll 1
      for (std::uint64_t w = 0; w < kWords; ++w) {
        Ints first[kPages], second[kPages];
        for (int p = 0; p < kPages; ++p) {
          __builtin_prefetch(ahead[p]);
          ahead[p] += kLine;
          if constexpr (kIsR8) {
            first[p] = load_ints(codes[p] + 64 * w) ^ flip;
            second[p] = load_ints(codes[p] + 64 * (w + kWords)) ^ flip;
          } else {
            const Ints both = load_ints(codes[p] + 64 * w);
            first[p] = look_up(both & nibbles, kShifted.values);
            second[p] = look_up(shift_right(both, 4) & nibbles, kShifted.values);
          }
        }
        add_words(first, w);
        add_words(second, w + kWords);
      }
      for (int p = 0; p < kPages; ++p) {
        codes[p] += 64 * (kIsR8 ? 2 * kWords : kWords);
        const Floats d = load_f16(pages[p].scales + block * 2 * kPage) * splat(kIsR8 ? 1.0f : 1.0f / kv::kStoredScale);
        for (int r = 0; r < kQ; ++r) {
          Ints sum;
          for (int l = 0; l < kParts; ++l) part(sum, l) = sums[r][p][l];
          float* score = to[r] + p * kLanes;
          store(score, fma(to_floats(sum) * d, splat(q[r].d[block]), load(score)));
        }
      }
    }
    for (int r = 0; r < kQ; ++r) to[r] += kPages * kLanes;
    pages += kPages;
    n -= kPages;
  } while (n >= kPages);
}

// BlockOfValues is one block of a chunk's values after the look-up in kTable. The order is [pairs of tokens][64
// columns][2 tokens].
struct BlockOfValues {
  alignas(64) std::int16_t of[kChunk * kv::kBlock];
};
// Looks up the values of n pages in kTable, for one block of columns, and stores them in `values`. Page `first` of the
// chunk is the first of the pages. After every four tokens, prefetches n_lines cache lines of the pages that are read
// next.
__attribute__((noinline)) void look_up_values(const PartPage* pages, std::uint64_t first, std::uint64_t n,
                                              std::uint64_t row_bytes, std::uint64_t block, std::uint32_t n_lines,
                                              PagesAhead& ahead, BlockOfValues& values) {
  const Ints nibbles = splat(0x0F0F0F0F);
  std::int16_t* to = values.of + first * kPage * kv::kBlock;
  for (; n > 0; --n, ++pages) {
    const std::byte* from = pages->codes + block * kValueBytes;
    for (std::uint32_t token = 0; token < kPage; token += 4, from += 4 * row_bytes, to += 4 * kv::kBlock) {
      const std::byte* later = ahead.take(n_lines, from);
      for (std::uint32_t i = 0; i < n_lines; ++i) __builtin_prefetch(later + i * kLine);
      for (std::uint32_t column = 0; column < kValueBytes; column += kLanes) {
        const std::byte* at = from + column;
        // A word then holds the bytes of tokens 0, 2, 1 and 3 of a column. So its even bytes are a pair of neighbouring
        // tokens (0, 1), and its odd bytes the next pair (2, 3).
        const Ints both = zip_bytes(at, at + 2 * row_bytes, at + row_bytes, at + 3 * row_bytes);
        const auto put = [&](const Ints& bytes, std::int16_t* pairs) __attribute__((always_inline)) {
          store(static_cast<void*>(pairs), shift_right_signed_16(shift_left_16(bytes, 8), 8));
          store(static_cast<void*>(pairs + 2 * kv::kBlock), shift_right_signed_16(bytes, 8));
        };
        put(look_up(both & nibbles, kv::kTable), to + 2 * column);
        put(look_up(shift_right(both, 4) & nibbles, kv::kTable), to + 2 * (column + kValueBytes));
      }
    }
  }
}
// Writes the scales of the values of a page's 16 tokens to d[block], from position `at` of the chunk on.
ZRT_SIMD void rotated_value_scales(const std::byte* scales, std::uint32_t n_blocks, std::uint32_t at,
                                   float (*d)[kChunk]) {
  float memory[2][kMostBlocks * kPage];
  float *from = memory[0], *to = memory[1];
  for (std::uint32_t i = 0; i < n_blocks; ++i)
    store(from + i * kPage, load_f16(scales + i * 2 * kPage) * splat(1.0f / kv::kStoredScale));
  // The scales are stored by token. Each round moves the numbers at even places before the numbers at odd places, until
  // the scales of each block are contiguous.
  for (std::uint32_t left = n_blocks; left > 1; left /= 2) {
    for (std::uint32_t i = 0; i < n_blocks / 2; ++i) {
      const LanePairs pairs = load_pairs(from + 2 * i * kPage);
      store(to + i * kPage, pairs.first);
      store(to + (i + n_blocks / 2) * kPage, pairs.second);
    }
    float* other = from;
    from = to, to = other;
  }
  for (std::uint32_t i = 0; i < n_blocks; ++i) store(d[i] + at, load(from + i * kPage));
}

// Computes o[r] = d[r] times the sums of the row's codes times values over pairs [begin, end) of tokens, for kColumns
// columns from column `at` of a block on.
template <int kN, int kColumns>
__attribute__((noinline)) void rotated_values(const std::int16_t* const* codes, const std::int16_t* values,
                                              std::uint64_t begin, std::uint64_t end, const float* d, float* const* o,
                                              std::uint64_t at) {
  IntPart sums[kN][kColumns][kParts];
  for (int r = 0; r < kN; ++r)
    for (int c = 0; c < kColumns; ++c)
      for (int l = 0; l < kParts; ++l) sums[r][c][l] = splat_int_part(0);
  const std::int16_t* from = values + (begin * kv::kBlock + at) * 2;
#pragma GCC unroll 1
  for (std::uint64_t pair = begin; pair < end; ++pair, from += 2 * kv::kBlock) {
    for (int c = 0; c < kColumns; ++c)
      for (int l = 0; l < kParts; ++l) {
        const IntPart two = hold(load_int_part(from + 2 * (c * static_cast<int>(kLanes) + l * kPartLanes)));
        for (int r = 0; r < kN; ++r) sums[r][c][l] = add_dot_pairs(sums[r][c][l], two, two_of(codes[r] + 2 * pair));
      }
  }
  for (int r = 0; r < kN; ++r)
    for (int c = 0; c < kColumns; ++c) {
      Ints sum;
      for (int l = 0; l < kParts; ++l) part(sum, l) = sums[r][c][l];
      store(o[r] + at + kLanes * static_cast<std::uint64_t>(c), to_floats(sum) * splat(d[r]));
    }
}

// Computes one block of each row's o over pages [begin, end) of a chunk. `scales` holds the scales of the chunk's
// values.
__attribute__((noinline)) void add_rotated_block(Row* const* rows, std::uint32_t n, const PartPage* pages,
                                                 std::uint32_t begin, std::uint32_t end, std::uint32_t block,
                                                 std::uint32_t dim, const float* scales, std::uint32_t n_lines,
                                                 PagesAhead& ahead) {
  BlockOfValues values;
  look_up_values(pages, begin / kPage, (end - begin) / kPage, dim / 2, block, n_lines, ahead, values);
  for (std::uint32_t first = 0; first < n; first += kLanes) {
    alignas(64) float weights[kLanes][kChunk];  // converted to codes in place, in the first half of each row
    const std::uint32_t n_rows = least(n - first, kLanes);
    weigh_rows(
        rows + first, n_rows, scales, begin, end,
        [&](std::uint32_t r) __attribute__((always_inline)) { return weights[r]; },
        [&](std::uint32_t r, float* of, std::uint32_t from, std::uint32_t to, float inverse, float d)
            __attribute__((always_inline)) {
              rows[first + r]->unit = d;
              for (std::uint32_t page = from; page < to; page += 2 * kPage)
                store(static_cast<void*>(of + page / 2), codes_of_weights(of + page, inverse));
            });
    std::uint32_t row = 0;
    together(rows + first, n_rows, [&]<std::uint32_t kN>(Row* const* piece) __attribute__((always_inline)) {
      constexpr int kColumns = sum_columns(kN);
      const auto [from, to, hi] = pages_seen_by(piece, kN);
      const std::int16_t* codes[kN];
      float* o[kN];
      float d[kN];
      for (std::uint32_t r = 0; r < kN; ++r) {
        codes[r] = reinterpret_cast<const std::int16_t*>(weights[row + r]);
        o[r] = piece[r]->o + block * kv::kBlock;
        d[r] = piece[r]->unit;
      }
      for (std::uint32_t at = 0; at < kv::kBlock; at += kColumns * kLanes)
        rotated_values<kN, kColumns>(codes, values.of, from / 2, to / 2, d, o, at);
      row += kN;
    });
  }
}

// Computes a chunk like attend_chunk (attend_body.h), but for rotated cells.
template <bool kIsR8>
void attend_rotated_chunk(Row* const* rows, std::uint32_t n, const PartCache& k, const PartCache& v, std::uint32_t at,
                          std::uint32_t last, float softcap) {
  const std::uint32_t key_lines = k.dim / (kIsR8 ? 4 : 8), n_blocks = v.dim / kv::kBlock;
  attend_pages(
      rows, n, k, v, at, last, softcap, key_lines,
      [&]<std::uint32_t kN>(Row* const* piece, const PartPage* keys, std::uint32_t first, std::uint32_t n_pages)
          __attribute__((always_inline)) {
            QueryWords q[kN];
            for (std::uint32_t r = 0; r < kN; ++r) q[r] = query_words(piece[r]->q, k.dim);
            score_pages<kN, rotated_pages(kN)>(
                piece, keys, first, n_pages,
                [&]<int kPages>(const PartPage* pages, std::uint32_t n_of, float* const* scores)
                    __attribute__((always_inline)) {
                      rotated_page_dots<kN, kPages, kIsR8>(q, pages, n_of, k.dim / kv::kBlock, scores);
                    });
          },
      [&](const PartPage* values, std::uint32_t begin, std::uint32_t end, PagesAhead& ahead)
          __attribute__((always_inline)) {
            const std::uint32_t n_pages = (end - begin) / kPage;
            alignas(64) float scales[kMostBlocks][kChunk];
            for (std::uint32_t i = 0; i < n_pages; ++i)
              rotated_value_scales(values[i].scales, n_blocks, begin + i * kPage, scales);
            for (std::uint32_t block = 0; block < n_blocks; ++block)
              add_rotated_block(rows, n, values, begin, end, block, v.dim, scales[block], key_lines / (4 * n_blocks),
                                ahead);
          });
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

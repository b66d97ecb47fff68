// Computes attention over integer cells (kernels/common/kv_integer.h) on 16 lanes, for any number of rows.
// attend_body.h includes this file. For scores the lanes are the 16 tokens of a page; for outputs they are 16 values. A
// lane multiplies two codes by two digits at once, so an integer sum needs no fold, and codes are used without
// conversion.
#pragma once

#include "kernels/common/kv_integer.h"
#include "kernels/cpu/quant/integer_kv.h"
#include "kernels/cpu_simd/attend_parts.h"

namespace zinc_rt::cpu_simd {
namespace {

ZRT_SIMD PartCache integer_cache_of(const cpu::AttendTile& tile, const void* memory, std::uint64_t pitch,
                                    std::uint32_t dim, std::int32_t slot) {
  return part_cache_of(tile, memory, pitch, kv_integer::codes_at(tile.kv_head, dim),
                       kv_integer::scales_at(tile.kv_head, tile.shape.n_kv_heads, dim), dim, slot);
}

ZRT_SIMD Floats joined(const IntPart* high, const IntPart* low) {
  Ints upper, lower;
  for (int l = 0; l < kParts; ++l) part(upper, l) = high[l], part(lower, l) = low[l];
  return fma(to_floats(upper), splat(256.0f), to_floats(lower));
}
// Returns the scales of a page's 16 tokens.
ZRT_SIMD Floats integer_scales(const std::byte* scales) {
  return as_floats(shift_left(load_u16(scales), 16));
}

// Returns how many pages n rows multiply at once. The digits of a query are loaded once for all pages that are
// multiplied at once. Four pages are not faster than two.
constexpr int integer_pages(int n) {
  return kIntegerSums / (2 * n) >= 2 ? 2 : 1;
}

// Computes scores[r], the integer_dots (integer_kv.h) of kQ queries with the tokens of n pages, kPages at once. q[r]
// points to the high digits of query r, followed by its low digits. The loop alternates between both halves of the
// keys' values, because memory is read faster from several places at once.
template <int kQ, int kPages>
__attribute__((noinline)) void integer_page_dots(const std::int16_t* const* q, const PartPage* pages, std::uint64_t n,
                                                 std::uint64_t dim, float* const* scores) {
  const std::int16_t* digits[kQ];
  float* to[kQ];
  for (int r = 0; r < kQ; ++r) digits[r] = q[r], to[r] = scores[r];
  do {
    IntPart high[kQ][kPages][kParts], low[kQ][kPages][kParts];
    const std::byte *codes[kPages], *ahead[kPages];
    for (int p = 0; p < kPages; ++p) codes[p] = pages[p].codes, ahead[p] = codes[p] + pages[p].ahead;
    for (int r = 0; r < kQ; ++r)
      for (int p = 0; p < kPages; ++p)
        for (int l = 0; l < kParts; ++l) high[r][p][l] = low[r][p][l] = splat_int_part(0);
    std::uint64_t i = 0;
    do {
      for (const std::uint64_t at : {i, i + dim / 2}) {
        for (int p = 0; p < kPages; ++p) __builtin_prefetch(ahead[p] + 32 * at);
        IntPart keys[kPages][kParts];
        for (int p = 0; p < kPages; ++p)
          for (int l = 0; l < kParts; ++l) keys[p][l] = hold(load_int_part(codes[p] + 32 * at + 4 * kPartLanes * l));
        for (int r = 0; r < kQ; ++r) {
          const IntPart upper = two_of(digits[r] + at);
          for (int p = 0; p < kPages; ++p)
            for (int l = 0; l < kParts; ++l) high[r][p][l] = add_dot_pairs(high[r][p][l], keys[p][l], upper);
          const IntPart lower = two_of(digits[r] + dim + at);
          for (int p = 0; p < kPages; ++p)
            for (int l = 0; l < kParts; ++l) low[r][p][l] = add_dot_pairs(low[r][p][l], keys[p][l], lower);
        }
      }
    } while ((i += 2) < dim / 2);
    for (int p = 0; p < kPages; ++p) {
      const Floats d = integer_scales(pages[p].scales);
      for (int r = 0; r < kQ; ++r) store(to[r] + p * kLanes, joined(high[r][p], low[r][p]) * d);
    }
    for (int r = 0; r < kQ; ++r) to[r] += kPages * kLanes;
    pages += kPages;
    n -= kPages;
  } while (n >= kPages);
}

// Converts 32 weights to digits of 16 bits, in place: first all high digits, then all low digits.
ZRT_SIMD void make_digits(float* weights, float inverse) {
  const Ints codes = codes_of_weights(weights, inverse);
  store(static_cast<void*>(weights), shift_right_signed_16(add_16(codes, splat(128 << 16 | 128)), 8));
  store(static_cast<void*>(weights + kLanes), shift_right_signed_16(shift_left_16(codes, 8), 8));
}
// Converts the exponentials of n rows, in pages [begin, end) of a chunk, to digits of weights.
__attribute__((noinline)) void make_digits_of_rows(Row* const* rows, std::uint32_t n, const PartPage* values,
                                                   std::uint32_t begin, std::uint32_t end) {
  float scales[kChunk];
  for (std::uint32_t page = begin; page < end; page += kPage, ++values)
    store(scales + page, integer_scales(values->scales));
  weigh_rows(
      rows, n, scales, begin, end, [&](std::uint32_t r) __attribute__((always_inline)) { return rows[r]->scores; },
      [&](std::uint32_t r, float* weights, std::uint32_t from, std::uint32_t to, float inverse, float d)
          __attribute__((always_inline)) {
            rows[r]->unit = d;
            for (std::uint32_t page = from; page < to; page += 2 * kPage) make_digits(weights + page, inverse);
          });
}

// Computes o[r] = d[r] times the sums of the row's digits times the values of n_pages pages, for kColumns columns from
// column `at` on. `page` is the first page's index in the chunk. The digits were made by make_digits(), for whole
// chunks.
template <int kN, int kColumns>
__attribute__((noinline)) void integer_values(const std::int16_t* const* digits, const PartPage* pages,
                                              std::uint64_t page, std::uint64_t n_pages, std::uint64_t dim,
                                              const float* d, float* const* o, std::uint64_t at, PagesAhead& ahead) {
  IntPart high[kN][kColumns][kParts], low[kN][kColumns][kParts];
  for (int r = 0; r < kN; ++r)
    for (int c = 0; c < kColumns; ++c)
      for (int l = 0; l < kParts; ++l) high[r][c][l] = low[r][c][l] = splat_int_part(0);
  do {
    const std::byte *from = pages->codes + 4 * at, *later = ahead.take(kPage / 2 * kColumns, from);
    const std::int16_t* two[kN];
    for (int r = 0; r < kN; ++r) two[r] = digits[r] + page / 2 * 4 * kPage + page % 2 * kPage;
#pragma GCC unroll 1
    for (std::uint64_t pair = 0; pair < kPage; pair += 2) {
      IntPart values[kColumns][kParts];
      for (int c = 0; c < kColumns; ++c) __builtin_prefetch(later + kLine * static_cast<std::uint64_t>(c));
      for (int c = 0; c < kColumns; ++c)
        for (int l = 0; l < kParts; ++l) values[c][l] = hold(load_int_part(from + 64 * c + 4 * kPartLanes * l));
      for (int r = 0; r < kN; ++r) {
        const IntPart upper = two_of(two[r] + pair);
        for (int c = 0; c < kColumns; ++c)
          for (int l = 0; l < kParts; ++l) high[r][c][l] = add_dot_pairs(high[r][c][l], values[c][l], upper);
        const IntPart lower = two_of(two[r] + 2 * kPage + pair);
        for (int c = 0; c < kColumns; ++c)
          for (int l = 0; l < kParts; ++l) low[r][c][l] = add_dot_pairs(low[r][c][l], values[c][l], lower);
      }
      from += 4 * dim;
      later += kLine * kColumns;
    }
  } while (++page, ++pages, --n_pages > 0);
  for (int r = 0; r < kN; ++r)
    for (int c = 0; c < kColumns; ++c)
      store(o[r] + at + kLanes * static_cast<std::uint64_t>(c), joined(high[r][c], low[r][c]) * splat(d[r]));
}

// Sets o of each row to the sum of its weights times the values of a chunk's pages, which begin at position `first`.
template <int kN>
ZRT_SIMD void add_integer_chunk(Row* const* rows, const PartPage* pages, std::uint32_t first, std::uint32_t dim,
                                PagesAhead& ahead) {
  constexpr int kColumns = sum_columns(2 * kN);
  const auto [begin, end, hi] = pages_seen_by(rows, kN);
  const std::int16_t* digits[kN];
  float* o[kN];
  float d[kN];
  for (int r = 0; r < kN; ++r) {
    digits[r] = reinterpret_cast<const std::int16_t*>(rows[r]->scores);
    o[r] = rows[r]->o;
    d[r] = rows[r]->unit;
  }
  pages += (begin - first) / kPage;
  const std::uint32_t n_pages = (end - begin) / kPage;
  std::uint32_t at = 0;
  for (; at + kColumns * kLanes <= dim; at += kColumns * kLanes)
    integer_values<kN, kColumns>(digits, pages, begin / kPage, n_pages, dim, d, o, at, ahead);
  if constexpr (kColumns > 1)
    for (; at < dim; at += kLanes) integer_values<kN, 1>(digits, pages, begin / kPage, n_pages, dim, d, o, at, ahead);
}

// Computes a chunk like attend_chunk (attend_body.h), but for integer cells.
void attend_integer_chunk(Row* const* rows, std::uint32_t n, const PartCache& k, const PartCache& v, std::uint32_t at,
                          std::uint32_t last, float softcap) {
  attend_pages(
      rows, n, k, v, at, last, softcap, k.dim / 2,
      [&]<std::uint32_t kN>(Row* const* piece, const PartPage* keys, std::uint32_t first, std::uint32_t n_pages)
          __attribute__((always_inline)) {
            const std::int16_t* q[kN];
            for (std::uint32_t r = 0; r < kN; ++r) q[r] = reinterpret_cast<const std::int16_t*>(piece[r]->q);
            score_pages<kN, integer_pages(kN)>(
                piece, keys, first, n_pages,
                [&]<int kPages>(const PartPage* pages, std::uint32_t n_of, float* const* scores)
                    __attribute__((always_inline)) { integer_page_dots<kN, kPages>(q, pages, n_of, k.dim, scores); });
          },
      [&](const PartPage* values, std::uint32_t begin, std::uint32_t end, PagesAhead& ahead)
          __attribute__((always_inline)) {
            make_digits_of_rows(rows, n, values, begin, end);
            together(rows, n, [&]<std::uint32_t kN>(Row* const* piece) __attribute__((always_inline)) {
              add_integer_chunk<kN>(piece, values, begin, v.dim, ahead);
              ahead.page = ahead.n;
            });
          });
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

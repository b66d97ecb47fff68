// Attention over integer cells (kernels/common/kv_integer.h) on 16 lanes, for any number of rows, as attend_body.h has it
// for the others: included there. The lanes of a score are the 16 tokens of a page, those of an output are 16 values, and
// a lane multiplies two codes by two digits at once, so that an integer sum needs no fold and a code is read as it lies.
#pragma once

#include "kernels/common/kv_integer.h"
#include "kernels/cpu/quant/integer_kv.h"
#include "kernels/cpu_simd/attend_row.h"

namespace zinc_rt::cpu_simd {
namespace {

ZRT_SIMD PartCache integer_cache_of(const cpu::AttendTile& tile, const void* memory, std::uint64_t pitch,
                                    std::uint32_t dim, std::int32_t slot) {
  return part_cache_of(tile, memory, pitch, kv_integer::codes_at(tile.kv_head, dim),
                       kv_integer::scales_at(tile.kv_head, tile.shape.n_kv_heads, dim), dim, slot);
}

// Two neighbouring digits, in every lane.
ZRT_SIMD IntPart two_digits(const std::int16_t* p) {
  std::int32_t both;
  std::memcpy(&both, p, sizeof both);
  return hold(splat_int_part(both));
}
ZRT_SIMD Floats joined(const IntPart* high, const IntPart* low) {
  Ints upper, lower;
  for (int l = 0; l < kParts; ++l) part(upper, l) = high[l], part(lower, l) = low[l];
  return fma(to_floats(upper), splat(256.0f), to_floats(lower));
}
// The scales of a page's 16 tokens.
ZRT_SIMD Floats integer_scales(const std::byte* scales) {
  return as_floats(shift_left(load_u16(scales), 16));
}

// A head's codes and scales of one page.
struct IntegerPage {
  const std::byte *codes, *scales;
  std::int64_t ahead;  // bytes from a code that is read to the one that is prefetched meanwhile
};

// How many sums, of 16 lanes, stay in registers beside the operands. VNNI adds within the product, whose latency so
// many sums cover.
constexpr int kIntegerSums = kParts == 1 ? 24 : 6;
// How many pages n rows take at once: the digits of a query are loaded once for all of them. Four gain nothing.
constexpr int integer_pages(int n) {
  return kIntegerSums / (2 * n) >= 2 ? 2 : 1;
}

// scores[r] = integer_dots (integer_kv.h) of kQ queries, each its high digits and then its low ones, with the tokens of
// n pages, kPages at once. Memory is read faster from several places at once: both halves of the keys' values are taken
// by turns.
template <int kQ, int kPages>
__attribute__((noinline)) void integer_page_dots(const std::int16_t* const* q, const IntegerPage* pages,
                                                 std::uint64_t n, std::uint64_t dim, float* const* scores) {
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
          const IntPart upper = two_digits(digits[r] + at);
          for (int p = 0; p < kPages; ++p)
            for (int l = 0; l < kParts; ++l) high[r][p][l] = add_dot_pairs(high[r][p][l], keys[p][l], upper);
          const IntPart lower = two_digits(digits[r] + dim + at);
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

// The numbers that make the weights of up to 16 rows integers, from the bits of their largest magnitudes: those of
// quantize_to_digits.
struct IntegerScales {
  float inverse[kLanes], d[kLanes];
};
ZRT_SIMD void make_integer_scales(const std::int32_t* largest, IntegerScales& scales) {
  const Floats amax = as_floats(load_ints(largest)), most = splat(0x1p120f), least = splat(0x1p-100f);
  const Floats zero = splat(0.0f), all = splat(digits::kMost);
  const auto where_usable = [&](const Floats& x, const Floats& otherwise) __attribute__((always_inline)) {
    return select_ge(most, amax, select_ge(amax, least, x, zero), otherwise);
  };
  store(scales.inverse, where_usable(div(all, amax), zero));
  store(scales.d, where_usable(div(amax, all), splat(__builtin_nanf(""))));
}
// Turns 32 weights into digits of 16 bits, in place: the high ones, then the low ones.
ZRT_SIMD void make_digits(float* weights, float inverse) {
  const Floats round = splat(12582912.0f);
  const auto code = [&](const float* w) __attribute__((always_inline)) {
    return as_ints(load(w) * splat(inverse) + round) - as_ints(round);
  };
  const Ints codes = narrow_i16(code(weights), code(weights + kLanes));
  store(static_cast<void*>(weights), shift_right_signed_16(add_16(codes, splat(128 << 16 | 128)), 8));
  store(static_cast<void*>(weights + kLanes), shift_right_signed_16(shift_left_16(codes, 8), 8));
}

// What is prefetched while values are read, which is by columns: pages line by line, one after the other.
struct PagesAhead {
  const std::byte* codes[kChunk / kPage];
  std::uint32_t lines;  // of a page
  std::uint32_t n = 0, page = 0, line = 0;
  // The next lines; `otherwise`, if there are none.
  ZRT_MEMBER const std::byte* take(std::uint32_t n_lines, const std::byte* otherwise) {
    if (page == n) return otherwise;
    const std::byte* from = codes[page] + kLine * line;
    line += n_lines;
    if (line >= lines) line = 0, ++page;
    return from;
  }
};

// How many columns (1, 2 or 4) of 16 values kN rows take at once.
constexpr int integer_columns(int n) {
  const int columns = kIntegerSums / (2 * n);
  return columns >= 4 ? 4 : columns >= 2 ? 2 : 1;
}
// o[r] from column `at` on = the sums of products of the rows' digits with the values of n_pages pages, times d[r].
// Digits are those of make_digits, of whole chunks; the pages begin with page `page` of the chunk.
template <int kN, int kColumns>
__attribute__((noinline)) void integer_values(const std::int16_t* const* digits, const IntegerPage* pages,
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
        const IntPart upper = two_digits(two[r] + pair);
        for (int c = 0; c < kColumns; ++c)
          for (int l = 0; l < kParts; ++l) high[r][c][l] = add_dot_pairs(high[r][c][l], values[c][l], upper);
        const IntPart lower = two_digits(two[r] + 2 * kPage + pair);
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

// Scores of n keys' pages from position `first` of a chunk on, of those that a row sees.
template <int kN>
ZRT_SIMD void score_integer_pages(Row* const* rows, const IntegerPage* pages, std::uint32_t first, std::uint32_t n,
                                  std::uint32_t dim) {
  constexpr int kPages = integer_pages(kN);
  const std::int16_t* q[kN];
  float* scores[kN];
  std::uint32_t lo = kChunk, hi = 0;
  for (int r = 0; r < kN; ++r) {
    q[r] = reinterpret_cast<const std::int16_t*>(rows[r]->q);
    lo = least(lo, rows[r]->lo), hi = most(hi, rows[r]->hi);
  }
  const std::uint32_t end = least(first + n * kPage, hi);
  const std::uint32_t begin = most(first, lo / kPage * kPage);
  if (begin >= end) return;
  const std::uint32_t n_pages = (end - begin + kPage - 1) / kPage, whole = n_pages / kPages * kPages;
  pages += (begin - first) / kPage;
  for (int r = 0; r < kN; ++r) scores[r] = rows[r]->scores + begin;
  if (whole > 0) integer_page_dots<kN, kPages>(q, pages, whole, dim, scores);
  if (whole == n_pages) return;
  for (int r = 0; r < kN; ++r) scores[r] += whole * kPage;
  integer_page_dots<kN, 1>(q, pages + whole, n_pages - whole, dim, scores);
}

// Makes the exponentials of a row weights: times the scales of the chunk's values, and 0 where the row does not see the
// position, in pages [begin, end). Gives the bits of the largest magnitude.
__attribute__((noinline)) std::int32_t weigh(const Row& row, const float* scales, std::uint32_t begin,
                                             std::uint32_t end) {
  const Ints magnitude = splat(0x7FFFFFFF);
  Ints largest = splat(0);
  for (std::uint32_t page = begin; page < end; page += kPage) {
    Floats w = splat(0.0f);
    if (page >= row.lo && page + kPage <= row.hi) {
      w = load(row.scores + page) * load(scales + page);
    } else if (sees(row, page)) {
      const Floats lo = splat(static_cast<float>(most(row.lo, page) - page)),
                   hi = splat(static_cast<float>(row.hi - page));
      w = load(row.scores + page) * load(scales + page);
      w = select_ge(lane_index(), lo, select_gt(hi, lane_index(), w, splat(0.0f)), splat(0.0f));
    }
    store(row.scores + page, w);
    largest = max(largest, as_ints(w) & magnitude);
  }
  return reduce_max(largest);
}
// Turns the exponentials of n rows into digits of weights (make_digits), of pages [begin, end) of a chunk.
__attribute__((noinline)) void make_digits_of_rows(Row* const* rows, std::uint32_t n, const IntegerPage* values,
                                                   std::uint32_t begin, std::uint32_t end) {
  float scales[kChunk];
  for (std::uint32_t page = begin; page < end; page += kPage, ++values)
    store(scales + page, integer_scales(values->scales));
  begin = begin / (2 * kPage) * (2 * kPage), end = (end + 2 * kPage - 1) / (2 * kPage) * (2 * kPage);
  for (; n > 0; rows += least(n, kLanes), n -= least(n, kLanes)) {
    std::int32_t largest[kLanes] = {};
    for (std::uint32_t r = 0; r < least(n, kLanes); ++r) largest[r] = weigh(*rows[r], scales, begin, end);
    IntegerScales of;
    make_integer_scales(largest, of);
    for (std::uint32_t r = 0; r < least(n, kLanes); ++r) {
      rows[r]->unit = of.d[r];
      for (std::uint32_t page = begin; page < end; page += 2 * kPage)
        make_digits(rows[r]->scores + page, of.inverse[r]);
    }
  }
}
// o of each row = its weights times the values of a chunk, whose pages are from position `first` on.
template <int kN>
ZRT_SIMD void add_integer_chunk(Row* const* rows, const IntegerPage* pages, std::uint32_t first, std::uint32_t dim,
                                PagesAhead& ahead) {
  constexpr int kColumns = integer_columns(kN);
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

// attend_chunk over integer cells. While keys are read the chunk's values are prefetched, and while values are read the
// keys of the next chunk: memory is never idle, and what is read waits in the second-level cache.
void attend_integer_chunk(Row* const* rows, std::uint32_t n, const PartCache& k, const PartCache& v, std::uint32_t at,
                          std::uint32_t last, float softcap) {
  constexpr std::uint32_t kGroup = 4;  // pages whose keys stay in the first-level cache for all rows
  const auto [begin, end, hi] = pages_seen_by(rows, n);
  const std::uint32_t n_pages = (end - begin) / kPage;
  IntegerPage keys[kChunk / kPage], values[kChunk / kPage];
  PagesAhead ahead{.codes = {}, .lines = k.dim / 2};
  for (std::uint32_t i = 0; i < n_pages; ++i) {
    const std::uint32_t page = at + begin + i * kPage, later = at + kChunk + i * kPage;
    const std::byte *key = page_at(k, page), *value = page_at(v, page);
    const std::byte* next = later < last ? page_at(k, later) : nullptr;
    __builtin_prefetch(value + v.scales, 0, 2);
    if (next != nullptr) {
      __builtin_prefetch(next + k.scales, 0, 2);
      ahead.codes[ahead.n++] = next + k.codes;
    }
    keys[i] = {key + k.codes, key + k.scales, (value + v.codes) - (key + k.codes)};
    values[i] = {value + v.codes, value + v.scales, 0};
  }
  for (std::uint32_t i = 0; i < n_pages; i += kGroup) {
    together(rows, n, [&]<std::uint32_t kN>(Row* const* piece) __attribute__((always_inline)) {
      const std::uint32_t pages = least(n_pages - i, kGroup);
      score_integer_pages<kN>(piece, keys + i, begin + i * kPage, pages, k.dim);
      for (std::uint32_t p = i; p < i + pages; ++p) keys[p].ahead = 0;
    });
  }
  for (std::uint32_t r = 0; r < n; ++r) soften(*rows[r], softcap);
  make_digits_of_rows(rows, n, values, begin, end);
  together(rows, n, [&]<std::uint32_t kN>(Row* const* piece) __attribute__((always_inline)) {
    add_integer_chunk<kN>(piece, values, begin, v.dim, ahead);
    ahead.page = ahead.n;
  });
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

// Defines what attention over integer cells (attend_integer.h) and over rotated cells (attend_rotated.h) share, because
// both kinds of cells are interleaved by page: the order in which a chunk's pages are read and prefetched, and the
// conversion of weights to integers.
#pragma once

#include "kernels/common/digits.h"
#include "kernels/cpu_simd/attend_row.h"

namespace zinc_rt::cpu_simd {
namespace {

// Says where the codes and scales of one head and page are.
struct PartPage {
  const std::byte *codes, *scales;
  std::int64_t ahead;  // bytes from a key's codes to the memory that is prefetched while the codes are read
};

// Lists the pages that are prefetched while values are read. Values are read by columns, so a read does not walk along
// a page. Therefore later pages are prefetched separately: line by line, one page after the other.
struct PagesAhead {
  const std::byte* codes[kChunk / kPage];
  std::uint32_t lines;  // number of cache lines per page
  std::uint32_t n = 0, page = 0, line = 0;
  // Returns the address of the next n_lines lines, or `otherwise` if none are left.
  ZRT_MEMBER const std::byte* take(std::uint32_t n_lines, const std::byte* otherwise) {
    if (page == n) return otherwise;
    const std::byte* from = codes[page] + kLine * line;
    line += n_lines;
    if (line >= lines) line = 0, ++page;
    return from;
  }
};

// Returns two neighbouring 16-bit numbers, broadcast to every lane.
ZRT_SIMD IntPart two_of(const std::int16_t* p) {
  std::int32_t both;
  std::memcpy(&both, p, sizeof both);
  return hold(splat_int_part(both));
}
// Number of sums, of 16 lanes each, that fit into the registers besides the operands. With VNNI the addition is part of
// the product, so more sums are needed to hide its latency.
constexpr int kIntegerSums = kParts == 1 ? 24 : 6;
// Returns how many columns (1, 2 or 4) of 16 lanes are computed at once if each has n sums.
constexpr int sum_columns(int n) {
  const int columns = kIntegerSums / n;
  return columns >= 4 ? 4 : columns >= 2 ? 2 : 1;
}

// Computes the scores of n pages of keys, from position `first` of a chunk on, for the rows that see them.
// dots.operator()<kAtOnce>(pages, n, scores) computes the scores of n pages, where n is a multiple of kAtOnce.
template <int kN, int kPages, class Dots>
ZRT_SIMD void score_pages(Row* const* rows, const PartPage* pages, std::uint32_t first, std::uint32_t n,
                          const Dots& dots) {
  float* scores[kN];
  std::uint32_t lo = kChunk, hi = 0;
  for (int r = 0; r < kN; ++r) lo = least(lo, rows[r]->lo), hi = most(hi, rows[r]->hi);
  const std::uint32_t end = least(first + n * kPage, hi);
  const std::uint32_t begin = most(first, lo / kPage * kPage);
  if (begin >= end) return;
  const std::uint32_t n_pages = (end - begin + kPage - 1) / kPage, whole = n_pages / kPages * kPages;
  pages += (begin - first) / kPage;
  for (int r = 0; r < kN; ++r) scores[r] = rows[r]->scores + begin;
  if (whole > 0) dots.template operator()<kPages>(pages, whole, scores);
  if (whole == n_pages) return;
  for (int r = 0; r < kN; ++r) scores[r] += whole * kPage;
  dots.template operator()<1>(pages + whole, n_pages - whole, scores);
}

// Holds the factors that convert the weights of up to 16 rows to integers. make_integer_scales() computes them from the
// bits of the rows' largest magnitudes. The factors equal those of quantize_to_digits(), the reference.
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
// Multiplies 32 weights by `inverse`, rounds the results to integers, and returns them as 16-bit codes.
ZRT_SIMD Ints codes_of_weights(const float* weights, float inverse) {
  const Floats round = splat(12582912.0f);
  const auto code = [&](const float* w) __attribute__((always_inline)) {
    return as_ints(load(w) * splat(inverse) + round) - as_ints(round);
  };
  return narrow_i16(code(weights), code(weights + kLanes));
}

// Converts the exponentials of a row to weights, for the pages of positions [begin, end): multiplies them by the scales
// of the chunk's values, and sets the weights of positions that the row does not see to 0. `weights` may be the row's
// scores. Returns the bits of the largest magnitude.
__attribute__((noinline)) std::int32_t weigh(const Row& row, const float* scales, std::uint32_t begin,
                                             std::uint32_t end, float* weights) {
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
    store(weights + page, w);
    largest = max(largest, as_ints(w) & magnitude);
  }
  return reduce_max(largest);
}
// Converts the exponentials of n rows to weights, in the pairs of pages that contain positions [begin, end) of a chunk.
// The weights of row r are written to weights_of(r), kChunk floats. Then use(r, weights, begin, end, inverse, d) is
// called, with the range of whole pairs and the factors that convert the weights to integers.
template <class WeightsOf, class Use>
ZRT_SIMD void weigh_rows(Row* const* rows, std::uint32_t n, const float* scales, std::uint32_t begin, std::uint32_t end,
                         const WeightsOf& weights_of, const Use& use) {
  begin = begin / (2 * kPage) * (2 * kPage), end = (end + 2 * kPage - 1) / (2 * kPage) * (2 * kPage);
  for (std::uint32_t first = 0; first < n; first += kLanes) {
    std::int32_t largest[kLanes] = {};
    const std::uint32_t last = least(n, first + kLanes);
    for (std::uint32_t r = first; r < last; ++r)
      largest[r - first] = weigh(*rows[r], scales, begin, end, weights_of(r));
    IntegerScales of;
    make_integer_scales(largest, of);
    for (std::uint32_t r = first; r < last; ++r)
      use(r, weights_of(r), begin, end, of.inverse[r - first], of.d[r - first]);
  }
}

// Computes a chunk, like attend_chunk. While keys are read, the chunk's values are prefetched. While values are read,
// the keys of the next chunk are prefetched, `key_lines` lines per page. So memory is never idle, and what is read next
// is in the L2 cache. score.operator()<kN>(rows, keys, first, n) computes the scores of n pages from position `first`
// of the chunk on. add(values, begin, end, ahead) computes each row's o over pages [begin, end).
template <class Score, class Add>
ZRT_SIMD void attend_pages(Row* const* rows, std::uint32_t n, const PartCache& k, const PartCache& v, std::uint32_t at,
                           std::uint32_t last, float softcap, std::uint32_t key_lines, const Score& score,
                           const Add& add) {
  constexpr std::uint32_t kGroup = 4;  // number of pages whose keys stay in the L1 cache while all rows use them
  const auto [begin, end, hi] = pages_seen_by(rows, n);
  const std::uint32_t n_pages = (end - begin) / kPage;
  PartPage keys[kChunk / kPage], values[kChunk / kPage];
  PagesAhead ahead{.codes = {}, .lines = key_lines};
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
      score.template operator()<kN>(piece, keys + i, begin + i * kPage, pages);
      for (std::uint32_t p = i; p < i + pages; ++p) keys[p].ahead = 0;
    });
  }
  for (std::uint32_t r = 0; r < n; ++r) soften(*rows[r], softcap);
  add(values, begin, end, ahead);
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

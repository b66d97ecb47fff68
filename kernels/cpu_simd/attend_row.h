// Defines what attention of few rows (attend_body.h) needs for every type of cells: the state of a row, its softmax,
// and the split of rows into pieces.
#pragma once

#include "kernels/cpu_simd/attend_blocks.h"

namespace zinc_rt::cpu_simd {
namespace {

// Number of rows that are multiplied by a page's keys or values at once. The keys or values are loaded and converted
// once for all these rows.
constexpr std::uint32_t kTogether = kParts == 1 ? 4 : 3;

// Holds the state of one row, that is, of one query token and head.
struct Row {
  std::uint32_t begin, end;  // positions [begin, end) that this row's token attends to
  std::uint32_t lo, hi;      // positions [lo, hi) among these that lie in the chunk, counted from the chunk's start
  float scale;               // factor by which the row's scores are multiplied
  const float* q;
  float *scores, *o, *total;  // scores of the chunk; o: sum over the chunk's values; total: sum over all chunks so far
  float max, sum, total_max, total_sum;
  float* y;
  float unit;  // scale of the row's weights, if these are integers
};

// Converts scores to exponentials, in place, and computes the maximum and sum of the row. This function is for a row
// that sees the whole chunk, without softcap.
ZRT_SIMD void soften_chunk(Row& row) {
  constexpr std::uint32_t kPages = kChunk / kPage;
  Floats s[kPages];
  // `depth` is the largest -s, so max + depth is the range of the scores. If it is at most 87, exp_near() suffices.
  Floats top = splat(-__builtin_inff()), depth = top;
#pragma GCC unroll 8
  for (std::uint32_t j = 0; j < kPages; ++j) {
    s[j] = load(row.scores + j * kPage) * splat(row.scale);
    depth = max(negate(s[j]), depth);
    top = max(s[j], top);
  }
  const float max = reduce_max(top);
  const bool is_near = !(max + reduce_max(depth) > 87.0f);
  Floats sum = splat(0.0f);
#pragma GCC unroll 8
  for (std::uint32_t j = 0; j < kPages; ++j) {
    const Floats x = s[j] - splat(max);
    const Floats p = __builtin_expect(is_near, 1) ? exp_near(x) : exp(x);
    store(row.scores + j * kPage, p);
    sum = sum + p;
  }
  row.max = max;
  row.sum = reduce_add(sum);
}
__attribute__((noinline)) void soften(Row& row, float softcap) {
  if (row.lo == 0 && row.hi == kChunk && !(softcap > 0.0f)) return soften_chunk(row);
  const Floats minus_inf = splat(-__builtin_inff());
  const std::uint32_t lo = row.lo, hi = row.hi, begin = lo / kPage * kPage;
  float* scores = row.scores;
  const auto is_whole = [&](std::uint32_t page)
                            __attribute__((always_inline)) { return page >= lo && page + kPage <= hi; };
  // `depth` is the largest -s in whole pages. As in soften_chunk(), it decides whether exp_near() may compute their
  // exponentials.
  Floats top = minus_inf, depth = minus_inf;
  for (std::uint32_t j = begin; j < hi; j += kPage) {
    Floats s = load(scores + j) * splat(row.scale);
    if (softcap > 0.0f) s = splat(softcap) * tanh(s * rcp(splat(softcap)));
    if (is_whole(j)) {
      depth = max(negate(s), depth);
    } else {
      if (hi < j + kPage) s = select_gt(splat(static_cast<float>(hi - j)), lane_index(), s, minus_inf);
      if (lo > j) s = select_ge(lane_index(), splat(static_cast<float>(lo - j)), s, minus_inf);
    }
    store(scores + j, s);
    top = max(s, top);
  }
  const float max = reduce_max(top);
  const bool is_near = !(max + reduce_max(depth) > 87.0f);
  Floats sum = splat(0.0f);
  for (std::uint32_t j = begin; j < hi; j += kPage) {
    const Floats x = load(scores + j) - splat(max);
    const Floats p = is_near && is_whole(j) ? exp_near(x) : exp(x);
    store(scores + j, p);
    sum = sum + p;
  }
  row.max = max;
  row.sum = reduce_add(sum);
}

ZRT_SIMD bool sees(const Row& row, std::uint32_t page) {
  return row.lo < page + kPage && row.hi > page;
}
// Says which part of a chunk at least one of n rows sees: the whole pages [begin, end). `hi` is the end of the
// positions that any row sees.
struct SeenPages {
  std::uint32_t begin, end, hi;
};
ZRT_SIMD SeenPages pages_seen_by(Row* const* rows, std::uint32_t n) {
  std::uint32_t lo = kChunk, hi = 0;
  for (std::uint32_t r = 0; r < n; ++r) lo = least(lo, rows[r]->lo), hi = most(hi, rows[r]->hi);
  return {lo / kPage * kPage, (hi + kPage - 1) / kPage * kPage, hi};
}

// Splits the rows into pieces of up to kTogether and calls f.operator()<size>(rows of the piece) for each.
template <class F>
ZRT_SIMD void together(Row* const* rows, std::uint32_t n, F&& f) {
  in_pieces<kTogether>(n, [&]<std::uint32_t kN>(std::uint32_t r)
                              __attribute__((always_inline)) { f.template operator()<kN>(rows + r); });
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

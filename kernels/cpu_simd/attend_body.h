// Attention over pages on 16 lanes, included by one file an instruction set after its lanes header: of few rows here,
// of many in attend_blocks.h. The order is that of kernels/cpu/flash_attn.cpp; what is shared is the work around it: a
// page of K or V is widened once for all query heads of the kv head and all query tokens of the slot ("rows"), and a
// sum stays in registers while it runs.
//
// A row's sums never meet another row's. Widths are padded to 16 in scratch memory: K with +0 and q with -0, whose
// product -0 leaves every lane as it is; V with +0 in lanes that nobody reads. A masked score is set to minus infinity,
// so that its exponential adds +0 to a sum that is never -0; masked V are not touched.
#pragma once

#include "kernels/cpu_simd/attend_blocks.h"
#include "kernels/cpu_simd/attend_pages.h"

namespace zinc_rt::cpu_simd {
namespace {

// scores[q][0..n) = dots of kQ rows of q with the first n tokens of a page, n 8 or 16. Not inlined, like add_columns:
// the registers are for its sums.
template <int kQ>
__attribute__((noinline)) void page_dots(const float* const* q, WidePage k, std::uint64_t width, std::uint64_t n,
                                         float* const* scores) {
  constexpr int kPairs = columns_of(2 * kQ, kSums);  // of keys, at once
  for (int r = 0; r < kQ; ++r)
    for (std::uint64_t j = 0; j < n; j += 8) std::memset(scores[r] + j, 0, 8 * sizeof(float));
  for (std::uint64_t group = 0; group < width; group += 256) {
    const std::uint64_t end = width - group < 256 ? width - group : 256;
    const float* x[kQ];
    for (int r = 0; r < kQ; ++r) x[r] = q[r] + group;
    for (std::uint64_t j = 0; j < n; j += 8) {
      Pair pairs[kQ][4];
      for (int first = 0; first < 4; first += kPairs) {
        Floats acc[kQ][2 * kPairs];
        const float* key[2 * kPairs];
        for (int i = 0; i < kPairs; ++i) {
          key[2 * i] = k.floats + (j + static_cast<std::uint64_t>(first + i)) * k.pitch + group;
          key[2 * i + 1] = key[2 * i] + 4 * k.pitch;
        }
        for (int r = 0; r < kQ; ++r)
          for (int i = 0; i < 2 * kPairs; ++i) acc[r][i] = splat(0.0f);
        for (std::uint64_t at = 0; at < end; at += kLanes) {
          Floats w[2 * kPairs];
          for (int i = 0; i < 2 * kPairs; ++i) w[i] = load(key[i] + at);
          for (int r = 0; r < kQ; ++r) {
            const Floats v = load(x[r] + at);
            for (int i = 0; i < 2 * kPairs; ++i) acc[r][i] = fma(w[i], v, acc[r][i]);
          }
        }
        for (int r = 0; r < kQ; ++r)
          for (int i = 0; i < kPairs; ++i) pairs[r][first + i] = fold_pair(acc[r][2 * i], acc[r][2 * i + 1]);
      }
      for (int r = 0; r < kQ; ++r) add_folds(pairs[r], scores[r] + j);
    }
  }
}

// o[r] = fma(p[r][j], v_j, o[r]) for n tokens from v on, in kRowsAtOnce rows and kColumns lanes at once.
template <int kRowsAtOnce, int kColumns>
__attribute__((noinline)) void add_columns(const float* const* p, const float* v, std::uint64_t pitch, std::uint64_t n,
                                           float* const* o, std::uint64_t at) {
  Floats acc[kRowsAtOnce][kColumns];
  const float* weight[kRowsAtOnce];
  for (int r = 0; r < kRowsAtOnce; ++r) {
    weight[r] = p[r];
    for (int c = 0; c < kColumns; ++c) acc[r][c] = load(o[r] + at + kLanes * static_cast<std::uint64_t>(c));
  }
  v += at;
  for (std::uint64_t j = 0; j < n; ++j, v += pitch) {
    Floats x[kColumns];
    for (int c = 0; c < kColumns; ++c) x[c] = load(v + kLanes * static_cast<std::uint64_t>(c));
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const Floats scale = splat(weight[r][j]);
      for (int c = 0; c < kColumns; ++c) acc[r][c] = fma(scale, x[c], acc[r][c]);
    }
  }
  for (int r = 0; r < kRowsAtOnce; ++r)
    for (int c = 0; c < kColumns; ++c) store(o[r] + at + kLanes * static_cast<std::uint64_t>(c), acc[r][c]);
}
// Tokens [begin, end) of a page.
template <int kRowsAtOnce>
ZRT_SIMD void add_values(const float* const* p, WidePage v, std::uint32_t width, std::uint32_t begin, std::uint32_t end,
                         float* const* o) {
  constexpr int kColumns = columns_of(kRowsAtOnce, kSums);
  const float* weights[kRowsAtOnce];
  for (int r = 0; r < kRowsAtOnce; ++r) weights[r] = p[r] + begin;
  const float* from = v.floats + begin * v.pitch;
  std::uint32_t at = 0;
  for (; at + kColumns * kLanes <= width; at += kColumns * kLanes)
    add_columns<kRowsAtOnce, kColumns>(weights, from, v.pitch, end - begin, o, at);
  if constexpr (kColumns > 1)
    for (; at < width; at += kLanes) add_columns<kRowsAtOnce, 1>(weights, from, v.pitch, end - begin, o, at);
}

// One query token and head.
struct Row {
  std::uint32_t begin, end;  // positions that it sees
  std::uint32_t lo, hi;      // those of the chunk, from its start
  const float* q;
  float *scores, *o, *total;  // o: where this chunk's is made
  float max, sum, total_max, total_sum;
  float* y;
};

// Scores to exponentials, in place; max and sum of the row.
ZRT_SIMD void soften(Row& row, float scale, float softcap) {
  const Floats minus_inf = splat(-__builtin_inff());
  Floats top = minus_inf;
  const std::uint32_t begin = row.lo / kPage * kPage;
  for (std::uint32_t j = begin; j < row.hi; j += kPage) {
    Floats s = load(row.scores + j) * splat(scale);
    if (softcap > 0.0f) s = splat(softcap) * tanh(s * rcp(splat(softcap)));
    if (row.hi < j + kPage) s = select_gt(splat(static_cast<float>(row.hi - j)), lane_index(), s, minus_inf);
    if (row.lo > j) s = select_ge(lane_index(), splat(static_cast<float>(row.lo - j)), s, minus_inf);
    store(row.scores + j, s);
    top = max(s, top);
  }
  float lane[kLanes];
  store(lane, top);
  row.max = lane[0];
  for (std::uint32_t l = 1; l < kLanes; ++l) row.max = lane[l] > row.max ? lane[l] : row.max;
  Floats sum = splat(0.0f);
  for (std::uint32_t j = begin; j < row.hi; j += kPage) {
    const Floats p = exp(load(row.scores + j) - splat(row.max));
    store(row.scores + j, p);
    sum = sum + p;
  }
  store(lane, sum);
  row.sum = fold16(lane);
}

ZRT_SIMD bool sees(const Row& row, std::uint32_t page) {
  return row.lo < page + kPage && row.hi > page;
}
template <int kTogether>
ZRT_SIMD void score_page(Row* const* rows, WidePage k, std::uint32_t width, std::uint32_t page, std::uint32_t n) {
  const float* q[kTogether];
  float* scores[kTogether];
  bool is_seen = false;
  for (int r = 0; r < kTogether; ++r) {
    q[r] = rows[r]->q;
    scores[r] = rows[r]->scores + page;
    is_seen = is_seen || sees(*rows[r], page);
  }
  if (is_seen) page_dots<kTogether>(q, k, width, n, scores);
}

// Rows lie in pieces of up to kTogether that take their common tokens at once, and their other ones alone.
template <int kTogether>
ZRT_SIMD void add_page(Row* const* rows, WidePage v, std::uint32_t width, std::uint32_t page) {
  const float* p[kTogether];
  float* o[kTogether];
  std::uint32_t lo[kTogether], hi[kTogether], begin = 0, end = kPage;
  for (int r = 0; r < kTogether; ++r) {
    p[r] = rows[r]->scores + page;
    o[r] = rows[r]->o;
    lo[r] = least(most(rows[r]->lo, page) - page, kPage);
    hi[r] = least(most(rows[r]->hi, page) - page, kPage);
    begin = most(begin, lo[r]);
    end = least(end, hi[r]);
  }
  if constexpr (kTogether > 1) {
    if (begin >= end) begin = end = kPage;
    for (int r = 0; r < kTogether; ++r)
      if (lo[r] < begin) add_values<1>(p + r, v, width, lo[r], least(begin, hi[r]), o + r);
  }
  if (begin < end) add_values<kTogether>(p, v, width, begin, end, o);
  if constexpr (kTogether > 1)
    for (int r = 0; r < kTogether; ++r)
      if (end < hi[r]) add_values<1>(p + r, v, width, most(end, lo[r]), hi[r], o + r);
}

ZRT_SIMD void merge(Row& row, std::uint32_t width) {
  const float max = row.max > row.total_max ? row.max : row.total_max;
  float factor[kLanes] = {row.total_max - max, row.max - max};
  store(factor, exp(load(factor)));
  const Floats a = splat(factor[0]), b = splat(factor[1]);
  row.total_sum = __builtin_fmaf(row.sum, factor[1], row.total_sum * factor[0]);
  row.total_max = max;
  for (std::uint32_t i = 0; i < width; i += kLanes)
    store(row.total + i, fma(load(row.o + i), b, load(row.total + i) * a));
}

// y = total * (1 / sum)
ZRT_SIMD void finish(const Row& row, std::uint32_t dim, std::uint32_t width) {
  const Floats r = rcp(splat(row.total_sum));
  for (std::uint32_t i = 0; i < width; i += kLanes) store(row.total + i, load(row.total + i) * r);
  std::memcpy(row.y, row.total, 4 * std::uint64_t{dim});
}

// One chunk from position `at`, which `n` rows see.
void attend_chunk(Row* const* rows, std::uint32_t n, const Cache& k, const Cache& v, std::uint32_t at, float scale,
                  float softcap, float* wide) {
  const std::uint32_t k_width = padded(k.dim), v_width = padded(v.dim);
  std::uint32_t lo = kChunk, hi = 0;
  for (std::uint32_t r = 0; r < n; ++r) lo = least(lo, rows[r]->lo), hi = most(hi, rows[r]->hi);
  for (std::uint32_t page = lo / kPage * kPage; page < hi; page += kPage) {
    const std::uint32_t tokens = least(hi - page, kPage), keys = tokens > 8 ? 16 : 8;
    const WidePage floats = widen(k, at + page, tokens, wide);
    page + kPage < hi ? prefetch(k, at + page + kPage, least(hi - page - kPage, kPage))
                      : prefetch(v, at + lo, least(hi, (lo / kPage + 1) * kPage) - lo);
    std::uint32_t r = 0;
    for (; r + 2 <= n; r += 2) score_page<2>(rows + r, floats, k_width, page, keys);
    if (r < n) score_page<1>(rows + r, floats, k_width, page, keys);
  }
  for (std::uint32_t r = 0; r < n; ++r) {
    soften(*rows[r], scale, softcap);
    for (std::uint32_t i = 0; i < v_width; i += kLanes) store(rows[r]->o + i, splat(0.0f));
  }
  for (std::uint32_t page = lo / kPage * kPage; page < hi; page += kPage) {
    const WidePage floats = widen(v, at + page, least(hi - page, kPage), wide);
    if (page + kPage < hi) prefetch(v, at + page + kPage, least(hi - page - kPage, kPage));
    std::uint32_t r = 0;
    for (; r + 4 <= n; r += 4) add_page<4>(rows + r, floats, v_width, page);
    if (n - r == 3) add_page<3>(rows + r, floats, v_width, page);
    if (n - r == 2) add_page<2>(rows + r, floats, v_width, page);
    if (n - r == 1) add_page<1>(rows + r, floats, v_width, page);
  }
}

// Tokens [begin, end) of the tile, which are of one slot, and heads [h_begin, h_end): at most kRows together.
void attend_rows(const cpu::AttendTile& tile, std::uint32_t begin, std::uint32_t end, std::uint32_t h_begin,
                 std::uint32_t h_end) {
  const auto& c = tile.shape;
  const std::uint32_t k_width = padded(c.head_dim), v_width = padded(c.v_head_dim), group = c.n_heads / c.n_kv_heads;
  float* scratch = tile.scratch;
  const auto take = [&](std::uint32_t n) __attribute__((always_inline)) {
    float* memory = scratch;
    scratch += n;
    return memory;
  };
  float* wide = take(kPage * most(k_width, v_width));
  // Each kind of row lies together: rows of a power of two bytes, one of every kind, would share few cache sets.
  const std::uint32_t n_rows = (end - begin) * (h_end - h_begin);
  float *all_q = take(n_rows * k_width), *all_scores = take(n_rows * kChunk), *all_totals = take(n_rows * v_width),
        *all_o = take(n_rows * v_width);
  Row rows[kRows];
  std::uint32_t n = 0, first = ~0u, last = 0;
  for (std::uint32_t t = begin; t < end; ++t) {
    const auto pos = static_cast<std::uint32_t>(tile.pos[t]);
    for (std::uint32_t h = h_begin; h < h_end; ++h) {
      Row& row = rows[n];
      row.begin = c.window > 0 && pos >= c.window ? pos - c.window + 1 : 0;
      row.end = pos + 1;
      if (tile.records != nullptr) {
        row.begin = most(row.begin, tile.chunk_begin * kChunk);
        row.end = least(row.end, tile.chunk_end * kChunk);
      }
      float* q = all_q + n * k_width;
      std::memcpy(q, tile.q + (std::uint64_t{t} * c.n_heads + h) * c.head_dim, 4 * std::uint64_t{c.head_dim});
      for (std::uint32_t i = c.head_dim; i < k_width; ++i) q[i] = -0.0f;
      row.q = q;
      row.scores = all_scores + n * kChunk;
      row.total = all_totals + n * v_width;
      row.o = all_o + n * v_width;
      row.y = tile.y + (std::uint64_t{t} * c.n_heads + h) * c.v_head_dim;
      first = least(first, row.begin);
      last = most(last, row.end);
      ++n;
    }
  }
  const std::int32_t slot = tile.slot[begin];
  const Cache k = cache_of(tile, tile.kv_k, tile.k_pitch, c.head_dim, slot);
  const Cache v = cache_of(tile, tile.kv_v, tile.v_pitch, c.v_head_dim, slot);
  for (std::uint32_t at = first / kChunk * kChunk; at < last; at += kChunk) {
    Row* seeing[kRows];
    std::uint32_t n_seeing = 0;
    for (std::uint32_t r = 0; r < n; ++r) {
      Row& row = rows[r];
      if (row.begin >= at + kChunk || row.end <= at) continue;
      row.lo = most(row.begin, at) - at;
      row.hi = least(row.end, at + kChunk) - at;
      seeing[n_seeing++] = &row;
    }
    if (tile.records != nullptr) {  // the rows are heads of one token, which sees all of these chunks
      const std::uint64_t first_row = (at / kChunk - tile.chunk_begin) * group + h_begin - tile.kv_head * group;
      for (std::uint32_t r = 0; r < n; ++r) rows[r].o = tile.records + (first_row + r) * (v_width + kLanes);
    }
    attend_chunk(seeing, n_seeing, k, v, at, c.scale, c.softcap, wide);
    for (std::uint32_t r = 0; r < n_seeing; ++r) {
      Row& row = *seeing[r];
      if (tile.records != nullptr) {
        row.o[v_width] = row.max;
        row.o[v_width + 1] = row.sum;
        continue;
      }
      if (row.begin < at) {
        merge(row, v_width);
        continue;
      }
      float* o = row.o;
      row.o = row.total;
      row.total = o;
      row.total_max = row.max;
      row.total_sum = row.sum;
    }
  }
  if (tile.records != nullptr) return;
  for (std::uint32_t r = 0; r < n; ++r) finish(rows[r], c.v_head_dim, v_width);
}

void attend_tile(const cpu::AttendTile& tile) {
  const std::uint32_t group = tile.shape.n_heads / tile.shape.n_kv_heads;
  const std::uint32_t h_begin = tile.kv_head * group, h_end = h_begin + group;
  const std::uint32_t most_tokens = group < kRows ? kRows / group : 1;
  for (std::uint32_t begin = 0; begin < tile.n;) {
    std::uint32_t end = begin + 1;
    while (end < tile.n && end - begin < most_tokens && tile.slot[end] == tile.slot[begin]) ++end;
    for (std::uint32_t h = h_begin; h < h_end; h += kRows) {
      const std::uint32_t to = least(h + kRows, h_end);
      (end - begin) * (to - h) < kLeastForBlocks || tile.records != nullptr ? attend_rows(tile, begin, end, h, to)
                                                                            : attend_blocks(tile, begin, end, h, to);
    }
    begin = end;
  }
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

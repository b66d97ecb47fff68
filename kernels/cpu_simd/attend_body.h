// Computes attention on 16 lanes for few rows; attend_blocks.h is for many. A row is a query token together with a
// query head. A row "sees" a position if its token attends to it. Each instruction set has a .cpp file that includes
// this file after its lanes header. The order of sums is that of kernels/cpu/flash_attn.cpp. Rows share the other work:
// a page of K or V is converted to floats once for all query heads of the kv head and all query tokens of the slot. A
// sum stays in registers until it is complete.
//
// The sums of different rows are independent. In scratch memory, widths are padded to 16. K is padded with +0 and q
// with -0, because their product -0 does not change a lane. V is padded with +0, in lanes that are not read. A masked
// score is set to minus infinity, so that its exponential adds +0 to a sum that is never -0. V of masked tokens is not
// read.
#pragma once

#include "base/kv_type.h"
#include "kernels/cpu_simd/attend_blocks.h"
#include "kernels/cpu_simd/attend_integer.h"
#include "kernels/cpu_simd/attend_pages.h"
#include "kernels/cpu_simd/attend_rotated.h"
#include "kernels/cpu_simd/attend_row.h"

namespace zinc_rt::cpu_simd {
namespace {

// Memory is prefetched this many positions ahead, which is far enough for it to arrive in time.
constexpr std::uint32_t kAhead = 4 * kPage;
// Returns how many columns (1, 2 or 4) a loop computes at once if each has n sums. If 16 lanes are two registers, the
// sums must fit into 16 registers besides one operand of each row and one operand of the page.
constexpr int attend_columns(int n) {
  const int columns = (kParts == 1 ? 16 : 6) / n;
  return columns >= 4 ? 4 : columns >= 2 ? 2 : 1;
}

// Computes scores[q][0..n), the dots of kQ rows of q with the first n tokens of a page, where n is 8 or 16. This
// function and add_columns are not inlined, so that all registers are available for their sums. Their arguments are
// numbers and not a struct, because a call would write a struct to memory and read it again.
template <int kQ, class T>
__attribute__((noinline)) void page_dots(const float* const* q, const T* k, std::uint64_t pitch, std::int64_t ahead,
                                         std::uint64_t width, std::uint64_t n, float* const* scores) {
  // kPairs pairs of keys, that is, kKeys keys, are multiplied at once.
  constexpr int kPairs = attend_columns(2 * kQ), kKeys = 2 * kPairs;
  for (int r = 0; r < kQ; ++r) store(scores[r], splat(0.0f));
  for (std::uint64_t group = 0; group < width; group += 256) {
    const std::uint64_t end = width - group < 256 ? width - group : 256;
    const float* x[kQ];
    for (int r = 0; r < kQ; ++r) x[r] = q[r] + group;
    for (std::uint64_t j = 0; j < n; j += 8) {
      Pair pairs[kQ][4];
      for (int first = 0; first < 4; first += kPairs) {
        Floats acc[kQ][kKeys];
        const T* key[kKeys];
        for (int i = 0; i < kPairs; ++i) {
          key[2 * i] = k + (j + static_cast<std::uint64_t>(first + i)) * pitch + group;
          key[2 * i + 1] = key[2 * i] + 4 * pitch;
        }
        for (int r = 0; r < kQ; ++r)
          for (int i = 0; i < kKeys; ++i) acc[r][i] = splat(0.0f);
        for (std::uint64_t at = 0; at < end; at += kLanes) {
          if (at * sizeof(T) % kLine == 0)
            for (int i = 0; i < kKeys; ++i) ask_for(key[i] + at, ahead);
          for (int p = 0; p < kParts; ++p) {
            const std::uint64_t from = at + static_cast<std::uint64_t>(p) * kPartLanes;
            Part w[kKeys];
            for (int i = 0; i < kKeys; ++i) w[i] = hold(load_part(key[i] + from));
            for (int r = 0; r < kQ; ++r) {
              const Part v = hold(load_part(x[r] + from));
              for (int i = 0; i < kKeys; ++i) part(acc[r][i], p) = fma_part(w[i], v, part(acc[r][i], p));
            }
          }
        }
        for (int r = 0; r < kQ; ++r)
          for (int i = 0; i < kPairs; ++i) pairs[r][first + i] = fold_pair(acc[r][2 * i], acc[r][2 * i + 1]);
      }
      for (int r = 0; r < kQ; ++r) add_folds(pairs[r], scores[r] + j);
    }
  }
}

// Computes o[r] = fma(p[r][j], v_j, o[r]) for n tokens, whose values begin at v, in kN rows and kColumns columns of
// lanes at once.
template <int kN, int kColumns, class T>
__attribute__((noinline)) void add_columns(const float* const* p, const T* v, std::uint64_t pitch, std::int64_t ahead,
                                           std::uint64_t n, float* const* o, std::uint64_t at) {
  Floats acc[kN][kColumns];
  const float* weight[kN];
  for (int r = 0; r < kN; ++r) {
    weight[r] = p[r];
    for (int c = 0; c < kColumns; ++c) acc[r][c] = load(o[r] + at + kLanes * static_cast<std::uint64_t>(c));
  }
  v += at;
  for (std::uint64_t j = 0; j < n; ++j, v += pitch) {
    for (std::uint64_t c = 0; c < kColumns * kLanes; c += kLine / sizeof(T)) ask_for(v + c, ahead);
    Part scale[kN];
    for (int r = 0; r < kN; ++r) {
      Floats all = splat(weight[r][j]);
      scale[r] = hold(part(all, 0));
    }
    for (int c = 0; c < kColumns; ++c) {
      for (int i = 0; i < kParts; ++i) {
        const Part x = hold(load_part(v + c * static_cast<int>(kLanes) + i * kPartLanes));
        for (int r = 0; r < kN; ++r) part(acc[r][c], i) = fma_part(scale[r], x, part(acc[r][c], i));
      }
    }
  }
  for (int r = 0; r < kN; ++r)
    for (int c = 0; c < kColumns; ++c) store(o[r] + at + kLanes * static_cast<std::uint64_t>(c), acc[r][c]);
}
// Adds the values of tokens [begin, end) of a page, times their weights p, to o of kN rows.
template <int kN, class T>
ZRT_SIMD void add_values(const float* const* p, const Page<T>& v, std::uint32_t width, std::uint32_t begin,
                         std::uint32_t end, float* const* o) {
  constexpr int kColumns = attend_columns(kN);
  const float* weights[kN];
  for (int r = 0; r < kN; ++r) weights[r] = p[r] + begin;
  const T* from = v.values + begin * v.pitch;
  std::uint32_t at = 0;
  for (; at + kColumns * kLanes <= width; at += kColumns * kLanes)
    add_columns<kN, kColumns>(weights, from, v.pitch, v.ahead, end - begin, o, at);
  if constexpr (kColumns > 1)
    for (; at < width; at += kLanes) add_columns<kN, 1>(weights, from, v.pitch, v.ahead, end - begin, o, at);
}

template <int kN, class T>
ZRT_SIMD void score_page(Row* const* rows, const Page<T>& k, std::uint32_t width, std::uint32_t page, std::uint32_t n) {
  const float* q[kN];
  float* scores[kN];
  bool is_seen = false;
  for (int r = 0; r < kN; ++r) {
    q[r] = rows[r]->q;
    scores[r] = rows[r]->scores + page;
    is_seen = is_seen || sees(*rows[r], page);
  }
  if (is_seen) page_dots<kN>(q, k.values, k.pitch, k.ahead, width, n, scores);
}

// Adds a page's values, times the weights p of its 16 tokens, to o of kN rows. A value that all rows see is loaded once
// for all of them, and any other value once per row.
template <int kN, class T>
ZRT_SIMD void add_weighted(Row* const* rows, const float* const* p, const Page<T>& v, std::uint32_t width,
                           std::uint32_t page, float* const* o) {
  std::uint32_t lo[kN], hi[kN], begin = 0, end = kPage;
  for (int r = 0; r < kN; ++r) {
    lo[r] = least(most(rows[r]->lo, page) - page, kPage);
    hi[r] = least(most(rows[r]->hi, page) - page, kPage);
    begin = most(begin, lo[r]);
    end = least(end, hi[r]);
  }
  if constexpr (kN > 1) {
    if (begin >= end) begin = end = kPage;
    for (int r = 0; r < kN; ++r)
      if (lo[r] < begin) add_values<1>(p + r, v, width, lo[r], least(begin, hi[r]), o + r);
  }
  if (begin < end) add_values<kN>(p, v, width, begin, end, o);
  if constexpr (kN > 1)
    for (int r = 0; r < kN; ++r)
      if (end < hi[r]) add_values<1>(p + r, v, width, most(end, lo[r]), hi[r], o + r);
}
template <int kN, class T>
ZRT_SIMD void add_page(Row* const* rows, const Page<T>& v, std::uint32_t width, std::uint32_t page) {
  const float* p[kN];
  float* o[kN];
  for (int r = 0; r < kN; ++r) p[r] = rows[r]->scores + page, o[r] = rows[r]->o;
  add_weighted<kN>(rows, p, v, width, page, o);
}
// Merges the chunk of `n` rows into their totals. 8 rows are processed at once, because their factors, two per row,
// fill the 16 lanes.
__attribute__((noinline)) void merge(Row* const* rows, std::uint32_t n, std::uint32_t width) {
  constexpr std::uint32_t kAtOnce = kLanes / 2;
  for (; n > 0; rows += least(n, kAtOnce), n -= least(n, kAtOnce)) {
    float factor[kLanes] = {};
    for (std::uint32_t r = 0; r < least(n, kAtOnce); ++r) {
      Row& row = *rows[r];
      const float total = row.total_max;
      row.total_max = row.max > total ? row.max : total;
      factor[r] = total - row.total_max;
      factor[kAtOnce + r] = row.max - row.total_max;
    }
    store(factor, exp(load(factor)));
    for (std::uint32_t r = 0; r < least(n, kAtOnce); ++r) {
      Row& row = *rows[r];
      const float a = factor[r], b = factor[kAtOnce + r];
      row.total_sum = __builtin_fmaf(row.sum, b, row.total_sum * a);
      for (std::uint32_t i = 0; i < width; i += kLanes)
        store(row.total + i, fma(load(row.o + i), splat(b), load(row.total + i) * splat(a)));
    }
  }
}

// Computes a row's result, y = total * (1 / sum). sink: null, or the sink of the row's head.
ZRT_SIMD void finish(const Row& row, const float* sink, std::uint32_t dim, std::uint32_t width) {
  float sum = row.total_sum;
  if (sink != nullptr) {
    const SinkFactors factors = sink_factors(*sink, row.total_max);
    sum = sum * factors.of_total + factors.share;
    for (std::uint32_t i = 0; i < width; i += kLanes)
      store(row.total + i, load(row.total + i) * splat(factors.of_total));
  }
  const Floats r = rcp(splat(sum));
  for (std::uint32_t i = 0; i < width; i += kLanes) store(row.total + i, load(row.total + i) * r);
  std::memcpy(row.y, row.total, 4 * std::uint64_t{dim});
}

// Calls f(page), where `page` is the page of the cache that contains position `at`.
template <class F>
ZRT_SIMD void with_page(const Cache& cache, std::uint32_t at, std::uint32_t n, const std::byte* ahead, float* wide,
                        F&& f) {
  if (has_halves(cache)) return f(in_place<Half>(cache, at, ahead));
  if (has_floats(cache)) return f(in_place<float>(cache, at, ahead));
  if (ahead != nullptr) prefetch(cache, ahead, kPage);
  f(widen(cache, at, n, wide));
}

// Computes the chunk that begins at position `at` for the `n` rows that see it. Positions up to `last` will be read by
// later calls, so they may be prefetched.
void attend_chunk(Row* const* rows, std::uint32_t n, const Cache& k, const Cache& v, std::uint32_t at,
                  std::uint32_t last, float softcap, float* wide) {
  const std::uint32_t k_width = padded(k.dim), v_width = padded(v.dim);
  const auto [begin, end, hi] = pages_seen_by(rows, n);
  // Returns the address to prefetch. The address is kAhead positions later in the cache `same`. Past the end of `same`,
  // it is in the cache `other`, from position `then` on.
  const auto later = [&](const Cache& same, std::uint32_t page, const Cache& other, std::uint32_t then,
                         std::uint32_t other_end) __attribute__((always_inline)) -> const std::byte* {
    page += kAhead;
    if (page < end) return page_at(same, at + page);
    then += page - end;
    return then < other_end ? page_at(other, then) : nullptr;
  };
  for (std::uint32_t page = begin; page < end; page += kPage) {
    const std::uint32_t tokens = least(hi - page, kPage), keys = tokens > 8 ? 16 : 8;
    with_page(k, at + page, tokens, later(k, page, v, at + begin, at + hi), wide,
              [&](auto of) __attribute__((always_inline)) {
                together(rows, n, [&]<std::uint32_t kN>(Row* const* piece) __attribute__((always_inline)) {
                  score_page<kN>(piece, of, k_width, page, keys);
                  of.ahead = 0;
                });
              });
  }
  for (std::uint32_t r = 0; r < n; ++r) {
    soften(*rows[r], softcap);
    for (std::uint32_t i = 0; i < v_width; i += kLanes) store(rows[r]->o + i, splat(0.0f));
  }
  for (std::uint32_t page = begin; page < end; page += kPage) {
    with_page(v, at + page, least(hi - page, kPage), later(v, page, k, at + kChunk, last), wide,
              [&](auto of) __attribute__((always_inline)) {
                together(rows, n, [&]<std::uint32_t kN>(Row* const* piece) __attribute__((always_inline)) {
                  add_page<kN>(piece, of, v_width, page);
                  of.ahead = 0;
                });
              });
  }
}

// Tells attend_rows how the cells of f32, f16 and q8_0 are read. make_query writes a query to padded(dim) floats and
// returns the factor of its scores. attend computes a chunk. finish converts a finished output if the layout requires
// it.
struct PlainCells {
  const cpu::AttendTile& tile;
  Cache k, v;
  ZRT_MEMBER PlainCells(const cpu::AttendTile& of, std::int32_t slot)
      : tile(of),
        k(cache_of(of, of.kv_k, of.k_pitch, of.shape.head_dim, slot)),
        v(cache_of(of, of.kv_v, of.v_pitch, of.shape.v_head_dim, slot)) {}
  ZRT_MEMBER static float make_query(const float* q, std::uint32_t dim, float* to) {
    std::memcpy(to, q, 4 * std::uint64_t{dim});
    for (std::uint32_t i = dim; i < padded(dim); ++i) to[i] = -0.0f;
    return 1.0f;
  }
  ZRT_MEMBER void attend(Row* const* rows, std::uint32_t n, std::uint32_t at, std::uint32_t last, float* wide) const {
    attend_chunk(rows, n, k, v, at, last, tile.shape.softcap, wide);
  }
  ZRT_MEMBER static void finish(float*, std::uint32_t) {}
};
struct RotatedCells {
  const cpu::AttendTile& tile;
  PartCache k, v;
  ZRT_MEMBER RotatedCells(const cpu::AttendTile& of, std::int32_t slot)
      : tile(of),
        k(rotated_cache_of(of, of.kv_k, of.k_pitch, of.k_type, of.shape.head_dim, slot)),
        v(rotated_cache_of(of, of.kv_v, of.v_pitch, of.v_type, of.shape.v_head_dim, slot)) {}
  ZRT_MEMBER static float make_query(const float* q, std::uint32_t dim, float* to) {
    make_query_words(q, dim, to);
    return 1.0f / static_cast<float>(dim);
  }
  ZRT_MEMBER void attend(Row* const* rows, std::uint32_t n, std::uint32_t at, std::uint32_t last, float*) const {
    (tile.k_type == DType::kR8 ? attend_rotated_chunk<true> : attend_rotated_chunk<false>)(rows, n, k, v, at, last,
                                                                                           tile.shape.softcap);
  }
  ZRT_MEMBER static void finish(float* y, std::uint32_t dim) { cpu::rotate_output_back(y, dim); }
};

struct IntegerCells {
  const cpu::AttendTile& tile;
  PartCache k, v;
  ZRT_MEMBER IntegerCells(const cpu::AttendTile& of, std::int32_t slot)
      : tile(of),
        k(integer_cache_of(of, of.kv_k, of.k_pitch, of.shape.head_dim, slot)),
        v(integer_cache_of(of, of.kv_v, of.v_pitch, of.shape.v_head_dim, slot)) {}
  ZRT_MEMBER static float make_query(const float* q, std::uint32_t dim, float* to) {
    auto* digits = reinterpret_cast<std::int16_t*>(to);
    return cpu::quantize_to_digits(q, dim, digits, digits + dim);
  }
  ZRT_MEMBER void attend(Row* const* rows, std::uint32_t n, std::uint32_t at, std::uint32_t last, float*) const {
    attend_integer_chunk(rows, n, k, v, at, last, tile.shape.softcap);
  }
  ZRT_MEMBER static void finish(float*, std::uint32_t) {}
};

// Computes tokens [begin, end) of the tile, which belong to one slot, for heads [h_begin, h_end). These are at most
// kRows rows.
template <class Cells>
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
  // Memory of the same kind is contiguous for all rows. If the kinds alternated, rows at distances of a power of two
  // bytes would map to few sets of the cache.
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
      row.q = q;
      row.scale = c.scale * Cells::make_query(tile.q + (std::uint64_t{t} * c.n_heads + h) * c.head_dim, c.head_dim, q);
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
  const Cells cells(tile, slot);
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
    if (tile.records != nullptr) {  // all rows are heads of the same token, which sees all chunks of the tile
      const std::uint64_t first_row = (at / kChunk - tile.chunk_begin) * group + h_begin - tile.kv_head * group;
      for (std::uint32_t r = 0; r < n; ++r) rows[r].o = tile.records + (first_row + r) * (v_width + kLanes);
    }
    cells.attend(seeing, n_seeing, at, last, wide);
    if (tile.records != nullptr) {
      for (std::uint32_t r = 0; r < n; ++r) {
        rows[r].o[v_width] = rows[r].max;
        rows[r].o[v_width + 1] = rows[r].sum;
      }
      continue;
    }
    std::uint32_t n_begun = 0;
    for (std::uint32_t r = 0; r < n_seeing; ++r) {
      Row& row = *seeing[r];
      if (row.begin < at) {
        seeing[n_begun++] = &row;
        continue;
      }
      float* o = row.o;
      row.o = row.total;
      row.total = o;
      row.total_max = row.max;
      row.total_sum = row.sum;
    }
    merge(seeing, n_begun, v_width);
  }
  if (tile.records != nullptr) return;
  for (std::uint32_t r = 0; r < n; ++r) {
    const float* sink = tile.sinks == nullptr ? nullptr : tile.sinks + h_begin + r % (h_end - h_begin);
    finish(rows[r], sink, c.v_head_dim, v_width);
    Cells::finish(rows[r].y, c.v_head_dim);
  }
}

void attend_plain(const cpu::AttendTile& tile, std::uint32_t begin, std::uint32_t end, std::uint32_t h_begin,
                  std::uint32_t h_end) {
  const bool is_few = (end - begin) * (h_end - h_begin) < kLeastForBlocks || tile.records != nullptr;
  (is_few ? attend_rows<PlainCells> : attend_blocks)(tile, begin, end, h_begin, h_end);
}

void attend_tile(const cpu::AttendTile& tile) {
  const std::uint32_t group = tile.shape.n_heads / tile.shape.n_kv_heads;
  const std::uint32_t h_begin = tile.kv_head * group, h_end = h_begin + group;
  const std::uint32_t most_tokens = group < kRows ? kRows / group : 1;
  const auto attend = [&](std::uint32_t begin, std::uint32_t end, std::uint32_t h, std::uint32_t to) {
    switch (find_kv_cell(tile.k_type)->layout) {
      case KvLayout::kTokens: return attend_plain(tile, begin, end, h, to);
      case KvLayout::kRotated: return attend_rows<RotatedCells>(tile, begin, end, h, to);
      case KvLayout::kIntegers: return attend_rows<IntegerCells>(tile, begin, end, h, to);
    }
  };
  for (std::uint32_t begin = 0; begin < tile.n;) {
    std::uint32_t end = begin + 1;
    while (end < tile.n && end - begin < most_tokens && tile.slot[end] == tile.slot[begin]) ++end;
    for (std::uint32_t h = h_begin; h < h_end; h += kRows) attend(begin, end, h, least(h + kRows, h_end));
    begin = end;
  }
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

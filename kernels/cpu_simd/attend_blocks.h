// Computes attention of many rows on 16 lanes. A row is a query token of one slot together with one query head. A lane
// holds a row, and 16 rows are a block. So the 16 partial sums of a score are 16 registers, which the tree of additions
// combines without a shuffle. The softmax stays within a lane too, and one broadcast of a key serves a whole block. For
// this purpose q is transposed once per tile.
//
// A row "sees" a position if its token attends to it. Lanes without a row, and rows that do not see a chunk, are
// computed with the rest of their block. Their results are not read.
#pragma once

#include <utility>

#include "kernels/common/sink.h"
#include "kernels/cpu_simd/attend_pages.h"

namespace zinc_rt::cpu_simd {
namespace {

// With at least kLeastForBlocks rows, a block is faster than one row at a time, even if some of its lanes hold no row.
constexpr std::uint32_t kLeastForBlocks = 15;
constexpr std::uint32_t kBlocks = kRows / kLanes;
// Number of blocks that compute their scores at once and share the broadcast of a key. With one block at a time, loads
// would limit the multiply-adds. But with AVX2 the registers hold the sums of only one block.
constexpr std::uint32_t kBlocksAtOnce = kParts == 1 ? 3 : 1;
// Returns how many keys n blocks multiply at once. With AVX2 the sums of 6 keys would fit into the registers, but that
// is slower, because every partial sum is written to memory once.
constexpr std::uint32_t keys_at_once(std::uint32_t n) {
  return kParts == 1 && n == 1 ? 8 : 4;
}
// kRowsAtOnce rows are multiplied by a value at once, and kValueSums registers hold their sums.
constexpr std::uint32_t kRowsAtOnce = 6;
constexpr int kValueSums = kParts == 1 ? 24 : 6;

// Lanes are computed in this order. With it, the tree of kernels/common/fold.h never has more than four sums waiting:
// after lane i of this order the last two sums are added, once for each 1 at the end of i in binary.
constexpr std::uint32_t kFoldOrder[kLanes] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
constexpr int kFoldLevels = 5;

// Splits n (at most 16) into pieces of up to kMost and calls f.operator()<size>(begin) for each.
template <std::uint32_t kMost, class F>
ZRT_SIMD void in_pieces(std::uint32_t n, F&& f) {
  for (std::uint32_t begin = 0; begin < n;) {
    const std::uint32_t left = n - begin;
    const std::uint32_t n_pieces = (left + kMost - 1) / kMost;
    const std::uint32_t size = kMost == 4 ? least(left, 4) : n_pieces == 1 ? left : (left + n_pieces - 1) / n_pieces;
    switch (size) {
      case 8:
        if constexpr (kMost >= 8) f.template operator()<8>(begin);
        break;
      case 7:
        if constexpr (kMost >= 7) f.template operator()<7>(begin);
        break;
      case 6:
        if constexpr (kMost >= 6) f.template operator()<6>(begin);
        break;
      case 5:
        if constexpr (kMost >= 5) f.template operator()<5>(begin);
        break;
      case 4:
        if constexpr (kMost >= 4) f.template operator()<4>(begin);
        break;
      case 3: f.template operator()<3>(begin); break;
      case 2: f.template operator()<2>(begin); break;
      default: f.template operator()<1>(begin);
    }
    begin += size;
  }
}

// Calls f.operator()<n>() with n as a compile-time constant. n is 1 to kBlocksAtOnce.
template <class F>
ZRT_SIMD void in_blocks(std::uint32_t n, F&& f) {
  if constexpr (kBlocksAtOnce >= 3)
    if (n == 3) return f.template operator()<3>();
  if constexpr (kBlocksAtOnce >= 2)
    if (n == 2) return f.template operator()<2>();
  f.template operator()<1>();
}

// Computes scores[b][j][lane] = the dot of the lane's row in q[b] [dim][lanes] with key j, for kN blocks and kKeys
// keys. This function and add_rows are not inlined, so that all registers are available for their sums.
template <std::uint32_t kN, std::uint32_t kKeys>
__attribute__((noinline)) void block_dots(const float* q, std::uint64_t q_pitch, const float* k, std::uint64_t k_pitch,
                                          std::uint64_t dim, float* scores) {
  constexpr std::uint32_t kSums = kN * kKeys;
  const auto score = [&](std::uint32_t s)
                         __attribute__((always_inline)) { return scores + (s / kKeys * kChunk + s % kKeys) * kLanes; };
#pragma GCC unroll 12
  for (std::uint32_t s = 0; s < kSums; ++s) store(score(s), splat(0.0f));
  for (; dim > 0;) {
    const std::uint64_t end = dim < 256 ? dim : 256;
    Floats waiting[kFoldLevels][kSums];
#pragma GCC unroll 16
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      Floats acc[kSums];
#pragma GCC unroll 12
      for (std::uint32_t s = 0; s < kSums; ++s) acc[s] = splat(0.0f);
      for (std::uint64_t at = kFoldOrder[i]; at < end; at += kLanes) {
        Floats x[kN];
#pragma GCC unroll 12
        for (std::uint32_t b = 0; b < kN; ++b) x[b] = load(q + b * q_pitch + at * kLanes);
#pragma GCC unroll 12
        for (std::uint32_t j = 0; j < kKeys; ++j) {
          Floats key = splat(k[j * k_pitch + at]);
          if constexpr (kN > 1) part(key, 0) = hold(part(key, 0));
#pragma GCC unroll 12
          for (std::uint32_t b = 0; b < kN; ++b) acc[b * kKeys + j] = fma(key, x[b], acc[b * kKeys + j]);
        }
      }
      std::uint32_t level = 0;
      for (; i >> level & 1; ++level)
#pragma GCC unroll 12
        for (std::uint32_t s = 0; s < kSums; ++s) acc[s] = waiting[level][s] + acc[s];
#pragma GCC unroll 12
      for (std::uint32_t s = 0; s < kSums; ++s) waiting[level][s] = acc[s];
    }
#pragma GCC unroll 12
    for (std::uint32_t s = 0; s < kSums; ++s) store(score(s), load(score(s)) + waiting[kFoldLevels - 1][s]);
    q += end * kLanes;
    k += end;
    dim -= end;
  }
}

// Computes o[r] = fma(p[j][r], v_j, o[r]) for n tokens, whose values begin at v, and for kN rows, which are `width`
// floats apart. If `begins` is true, o starts at 0.
template <std::uint32_t kN, int kColumns>
ZRT_SIMD void add_block_columns(const float* p, const float* v, std::uint64_t pitch, std::uint64_t n, bool begins,
                                float* o, std::uint64_t width) {
  Floats acc[kN][kColumns];
  for (std::uint32_t r = 0; r < kN; ++r)
    for (int c = 0; c < kColumns; ++c)
      acc[r][c] = begins ? splat(0.0f) : load(o + r * width + kLanes * static_cast<std::uint64_t>(c));
  for (std::uint64_t j = 0; j < n; ++j, v += pitch, p += kLanes) {
    Floats x[kColumns];
    for (int c = 0; c < kColumns; ++c) x[c] = load(v + kLanes * static_cast<std::uint64_t>(c));
    for (std::uint32_t r = 0; r < kN; ++r) {
      const Floats scale = splat(p[r]);
      for (int c = 0; c < kColumns; ++c) acc[r][c] = fma(scale, x[c], acc[r][c]);
    }
  }
  for (std::uint32_t r = 0; r < kN; ++r)
    for (int c = 0; c < kColumns; ++c) store(o + r * width + kLanes * static_cast<std::uint64_t>(c), acc[r][c]);
}
template <std::uint32_t kN>
__attribute__((noinline)) void add_rows(const float* p, const float* v, std::uint64_t pitch, std::uint64_t n,
                                        bool begins, float* o, std::uint64_t width) {
  constexpr int kColumns = columns_of(kN, kValueSums);
  std::uint64_t at = 0;
  for (; at + kColumns * kLanes <= width; at += kColumns * kLanes)
    add_block_columns<kN, kColumns>(p, v + at, pitch, n, begins, o + at, width);
  if constexpr (kColumns > 1)
    for (; at < width; at += kLanes) add_block_columns<kN, 1>(p, v + at, pitch, n, begins, o + at, width);
}

// The following types and functions treat a register as quads of floats. Quad i holds four floats of row 4 i.
typedef float Four __attribute__((vector_size(16)));
ZRT_SIMD Four load_four(const float* p) {
  Four x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
ZRT_SIMD auto join(auto a, auto b) {
  constexpr int kN = sizeof(a) / sizeof(float);
  return [&]<int... kAt>(std::integer_sequence<int, kAt...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, kAt...);
  }(std::make_integer_sequence<int, 2 * kN>());
}
template <std::uint32_t kQuads>
ZRT_SIMD auto load_quads(const float* const* from, std::uint64_t at) {
  if constexpr (kQuads == 1)
    return load_four(from[0] + at);
  else
    return join(load_quads<kQuads / 2>(from, at), load_quads<kQuads / 2>(from + 2 * kQuads, at));
}
// Interleaves two registers, separately in each quad of four lanes. A quad becomes (a0, b0, a1, b1) if kHalf is 0, and
// (a2, b2, a3, b3) if it is 2. With kPairs, pairs of floats are interleaved instead of single floats.
template <int kHalf, bool kPairs>
ZRT_SIMD auto zip_quads(auto a, auto b) {
  constexpr int kN = sizeof(a) / sizeof(float);
  return [&]<int... kAt>(std::integer_sequence<int, kAt...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b,
                                   (kPairs ? kAt / 4 * 4 + kHalf + kAt % 2 + kAt / 2 % 2 * kN
                                           : kAt / 4 * 4 + kHalf + kAt % 4 / 2 + kAt % 2 * kN)...);
  }(std::make_integer_sequence<int, kN>());
}

// Transposes a block: writes to[i][lane] = from[lane][i] for i < dim.
__attribute__((noinline)) void transpose(const float* const* from, std::uint64_t dim, float* to) {
  for (std::uint32_t lane = 0; lane < kLanes; lane += kPartLanes) {
    const float* const* rows = from + lane;
    std::uint64_t i = 0;
    for (; i + 4 <= dim; i += 4) {
      const auto quads = [&](int r) __attribute__((always_inline)) { return load_quads<kPartLanes / 4>(rows + r, i); };
      const auto x0 = quads(0), x1 = quads(1), x2 = quads(2), x3 = quads(3);
      const auto a = zip_quads<0, false>(x0, x1), b = zip_quads<0, false>(x2, x3);
      const auto c = zip_quads<2, false>(x0, x1), d = zip_quads<2, false>(x2, x3);
      float* at = to + i * kLanes + lane;
      store_part(at, Part(zip_quads<0, true>(a, b)));
      store_part(at + kLanes, Part(zip_quads<2, true>(a, b)));
      store_part(at + 2 * kLanes, Part(zip_quads<0, true>(c, d)));
      store_part(at + 3 * kLanes, Part(zip_quads<2, true>(c, d)));
    }
    for (; i < dim; ++i)
      for (std::uint32_t r = 0; r < kPartLanes; ++r) to[i * kLanes + lane + r] = rows[r][i];
  }
}

// Says which positions of a chunk the rows of a block see. At least one row sees each of [lo, hi). All rows see
// [all_lo, all_hi), which may be empty. Only rows [begin, end) of the block see any position.
struct Seen {
  std::uint32_t begin, end, lo, hi, all_lo, all_hi;
};

// Holds the state of the rows of a tile, one array element per row. Positions in a chunk are counted from the chunk's
// start.
struct Rows {
  std::uint32_t begin[kRows], end[kRows];  // positions [begin, end) that the row's token attends to
  std::uint32_t lo[kRows], hi[kRows];      // positions [lo, hi) among these that lie in the chunk; lo = hi if none does
  float max[kRows], sum[kRows], total_max[kRows], total_sum[kRows];
};

ZRT_SIMD Seen seen_by(const Rows& rows, std::uint32_t first, std::uint32_t n) {
  Seen seen{n, 0, kChunk, 0, 0, kChunk};
  std::uint32_t n_seeing = 0;
  for (std::uint32_t r = 0; r < n; ++r) {
    const std::uint32_t lo = rows.lo[first + r], hi = rows.hi[first + r];
    if (lo == hi) continue;
    ++n_seeing;
    seen.begin = least(seen.begin, r);
    seen.end = r + 1;
    seen.lo = least(seen.lo, lo);
    seen.hi = most(seen.hi, hi);
    seen.all_lo = most(seen.all_lo, lo);
    seen.all_hi = least(seen.all_hi, hi);
  }
  if (n_seeing != seen.end - seen.begin) seen.all_hi = 0;
  return seen;
}

// Converts the scores [kChunk][lanes] of a block to exponentials, in place, and computes each row's maximum and sum.
__attribute__((noinline)) void soften_block(float* scores, const Seen& seen, const std::uint32_t* row_lo,
                                            const std::uint32_t* row_hi, float scale, float softcap, float* row_max,
                                            float* row_sum) {
  const Floats minus_inf = splat(-__builtin_inff());
  float bounds[2][kLanes];
  for (std::uint32_t r = 0; r < kLanes; ++r) {
    const bool is_row = r >= seen.begin && r < seen.end && row_lo[r] < row_hi[r];
    bounds[0][r] = static_cast<float>(is_row ? row_lo[r] : seen.lo);
    bounds[1][r] = static_cast<float>(is_row ? row_hi[r] : seen.hi);
  }
  const Floats lo = load(bounds[0]), hi = load(bounds[1]);
  Floats top = minus_inf, depth = minus_inf;  // over positions that all rows see; `depth` is the largest -s
  for (std::uint32_t j = seen.lo; j < seen.hi; ++j) {
    Floats s = load(scores + j * kLanes) * splat(scale);
    if (softcap > 0.0f) s = splat(softcap) * tanh(s * rcp(splat(softcap)));
    if (j < seen.all_lo || j >= seen.all_hi) {
      const Floats at = splat(static_cast<float>(j));
      s = select_ge(at, lo, select_gt(hi, at, s, minus_inf), minus_inf);
    } else {
      depth = max(negate(s), depth);
    }
    store(scores + j * kLanes, s);
    top = max(s, top);
  }
  store(row_max, top);
  float range[kLanes];
  store(range, top + depth);
  bool is_near = true;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) is_near = is_near && !(range[lane] > 87.0f);
  Floats waiting[kFoldLevels];
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    Floats sum = splat(0.0f);
    for (std::uint32_t j = kFoldOrder[i]; j < seen.hi; j += kLanes) {
      if (j < seen.lo) continue;
      const Floats x = load(scores + j * kLanes) - top;
      const Floats p = is_near && j >= seen.all_lo && j < seen.all_hi ? exp_near(x) : exp(x);
      store(scores + j * kLanes, p);
      sum = sum + p;
    }
    std::uint32_t level = 0;
    for (; i >> level & 1; ++level) sum = waiting[level] + sum;
    waiting[level] = sum;
  }
  store(row_sum, waiting[kFoldLevels - 1]);
}

// Adds the values of a page, times the scores' exponentials, to the sums `o` of a block's rows. The rows are handled in
// pieces of up to kRowsAtOnce. A value that all rows of a piece see is loaded once for all of them, and any other value
// once per row.
ZRT_SIMD void add_page_to_block(const float* scores, const Seen& seen, const std::uint32_t* row_lo,
                                const std::uint32_t* row_hi, WidePage v, std::uint32_t page, float* o,
                                std::uint32_t width) {
  const auto in_page = [&](std::uint32_t at)
                           __attribute__((always_inline)) { return least(most(at, page) - page, kPage); };
  const auto one = [&](std::uint32_t r, std::uint32_t begin, std::uint32_t end) __attribute__((always_inline)) {
    if (begin < end)
      add_rows<1>(scores + (page + begin) * kLanes + r, v.values + begin * v.pitch, v.pitch, end - begin, false,
                  o + r * width, width);
  };
  // True for the first page: o is not set yet, so the sums start at 0.
  const bool begins = page == seen.lo / kPage * kPage;
  if (page >= seen.all_lo && page + kPage <= seen.all_hi) {
    in_pieces<kRowsAtOnce>(
        seen.end - seen.begin, [&]<std::uint32_t kN>(std::uint32_t at) __attribute__((always_inline)) {
          const std::uint32_t first = seen.begin + at;
          add_rows<kN>(scores + page * kLanes + first, v.values, v.pitch, kPage, begins, o + first * width, width);
        });
    return;
  }
  if (begins) std::memset(o + seen.begin * width, 0, std::uint64_t{seen.end - seen.begin} * width * sizeof(float));
  in_pieces<kRowsAtOnce>(seen.end - seen.begin, [&]<std::uint32_t kN>(std::uint32_t at) __attribute__((always_inline)) {
    const std::uint32_t first = seen.begin + at;
    std::uint32_t begin = 0, end = kPage;
    for (std::uint32_t r = first; r < first + kN; ++r) {
      begin = most(begin, in_page(row_lo[r]));
      end = least(end, in_page(row_hi[r]));
    }
    if (begin >= end) begin = end = kPage;
    for (std::uint32_t r = first; r < first + kN; ++r) one(r, in_page(row_lo[r]), least(begin, in_page(row_hi[r])));
    if (begin < end)
      add_rows<kN>(scores + (page + begin) * kLanes + first, v.values + begin * v.pitch, v.pitch, end - begin, false,
                   o + first * width, width);
    for (std::uint32_t r = first; r < first + kN; ++r) one(r, most(end, in_page(row_lo[r])), in_page(row_hi[r]));
  });
}

// Merges the maximum, sum and o of a chunk into the totals of those rows that see the chunk. The chunk begins at
// position `at`.
__attribute__((noinline)) void merge_block(Rows& rows, std::uint32_t first, std::uint32_t n, std::uint32_t at,
                                           const float* o, float* totals, std::uint32_t width) {
  const Floats m = load(rows.max + first), total = load(rows.total_max + first), both = max(m, total);
  float new_max[kLanes], a[kLanes], b[kLanes];
  store(new_max, both);
  store(a, exp(total - both));
  store(b, exp(m - both));
  for (std::uint32_t lane = 0; lane < n; ++lane) {
    const std::uint32_t r = first + lane;
    if (rows.lo[r] == rows.hi[r]) continue;
    const float* from = o + r * width;
    float* to = totals + r * width;
    if (rows.begin[r] >= at) {
      rows.total_max[r] = rows.max[r];
      rows.total_sum[r] = rows.sum[r];
      if (from != to) std::memcpy(to, from, width * sizeof(float));
      continue;
    }
    rows.total_max[r] = new_max[lane];
    rows.total_sum[r] = __builtin_fmaf(rows.sum[r], b[lane], rows.total_sum[r] * a[lane]);
    for (std::uint32_t i = 0; i < width; i += kLanes)
      store(to + i, fma(load(from + i), splat(b[lane]), load(to + i) * splat(a[lane])));
  }
}

// Computes tokens [begin, end) of the tile, which belong to one slot, for heads [h_begin, h_end). Tokens times heads
// are at most kRows rows.
void attend_blocks(const cpu::AttendTile& tile, std::uint32_t begin, std::uint32_t end, std::uint32_t h_begin,
                   std::uint32_t h_end) {
  const auto& c = tile.shape;
  const std::uint32_t dim = c.head_dim, width = padded(c.v_head_dim), n_heads = h_end - h_begin;
  const std::uint32_t n = (end - begin) * n_heads, n_blocks = (n + kLanes - 1) / kLanes;
  float* wide = tile.scratch;
  float* q = wide + kPage * most(padded(dim), width);
  float* scores = q + n_blocks * kLanes * dim;
  float* totals = scores + n_blocks * kLanes * kChunk;
  float* o = totals + n_blocks * kLanes * width;

  Rows rows;
  std::uint32_t first = ~0u, last = 0;
  const float* row_q[kRows];
  for (std::uint32_t r = 0; r < n_blocks * kLanes; ++r) {
    rows.total_max[r] = rows.total_sum[r] = 0.0f;
    if (r >= n) {
      row_q[r] = row_q[n - 1];
      continue;
    }
    const std::uint32_t t = begin + r / n_heads, h = h_begin + r % n_heads;
    const auto pos = static_cast<std::uint32_t>(tile.pos[t]);
    rows.begin[r] = c.window > 0 && pos >= c.window ? pos - c.window + 1 : 0;
    rows.end[r] = pos + 1;
    first = least(first, rows.begin[r]);
    last = most(last, rows.end[r]);
    row_q[r] = tile.q + (std::uint64_t{t} * c.n_heads + h) * dim;
  }
  for (std::uint32_t b = 0; b < n_blocks; ++b) transpose(row_q + b * kLanes, dim, q + b * kLanes * dim);

  const std::int32_t slot = tile.slot[begin];
  const Cache k = cache_of(tile, tile.kv_k, tile.k_pitch, dim, slot);
  const Cache v = cache_of(tile, tile.kv_v, tile.v_pitch, c.v_head_dim, slot);
  for (std::uint32_t at = first / kChunk * kChunk; at < last; at += kChunk) {
    Seen seen[kBlocks];
    std::uint32_t lo = kChunk, hi = 0;
    for (std::uint32_t r = 0; r < n; ++r) {
      const bool sees = rows.begin[r] < at + kChunk && rows.end[r] > at;
      rows.lo[r] = sees ? most(rows.begin[r], at) - at : 0;
      rows.hi[r] = sees ? least(rows.end[r], at + kChunk) - at : 0;
    }
    for (std::uint32_t b = 0; b < n_blocks; ++b) {
      seen[b] = seen_by(rows, b * kLanes, least(n - b * kLanes, kLanes));
      lo = least(lo, seen[b].lo);
      hi = most(hi, seen[b].hi);
    }
    const std::uint32_t first_page = lo / kPage * kPage;
    for (std::uint32_t page = first_page; page < hi; page += kPage) {
      const WidePage keys = widen(k, at + page, least(hi - page, kPage), wide);
      page + kPage < hi ? prefetch(k, at + page + kPage, least(hi - page - kPage, kPage))
                        : prefetch(v, at + lo, least(hi, first_page + kPage) - lo);
      for (std::uint32_t b = 0; b < n_blocks;) {
        // Neighbouring blocks that see the page are processed together, so that they share the broadcast of keys.
        if (seen[b].lo >= page + kPage || seen[b].hi <= page) {
          ++b;
          continue;
        }
        std::uint32_t n_seeing = 1, end = seen[b].hi;
        for (; n_seeing < kBlocksAtOnce && b + n_seeing < n_blocks; ++n_seeing) {
          const Seen& next = seen[b + n_seeing];
          if (next.lo >= page + kPage || next.hi <= page) break;
          end = most(end, next.hi);
        }
        in_blocks(n_seeing, [&]<std::uint32_t kN>() __attribute__((always_inline)) {
          in_pieces<keys_at_once(kN)>(
              least(end - page, kPage), [&]<std::uint32_t kKeys>(std::uint32_t j) __attribute__((always_inline)) {
                block_dots<kN, kKeys>(q + b * kLanes * dim, kLanes * dim, keys.values + j * keys.pitch, keys.pitch, dim,
                                      scores + (b * kChunk + page + j) * kLanes);
              });
        });
        b += n_seeing;
      }
    }
    for (std::uint32_t b = 0; b < n_blocks; ++b)
      if (seen[b].lo < seen[b].hi)
        soften_block(scores + b * kLanes * kChunk, seen[b], rows.lo + b * kLanes, rows.hi + b * kLanes, c.scale,
                     c.softcap, rows.max + b * kLanes, rows.sum + b * kLanes);
    // The first chunk is written directly to the rows' totals, because no earlier chunk must be merged.
    float* chunk_o = at <= first ? totals : o;
    for (std::uint32_t page = first_page; page < hi; page += kPage) {
      const WidePage values = widen(v, at + page, least(hi - page, kPage), wide);
      if (page + kPage < hi) prefetch(v, at + page + kPage, least(hi - page - kPage, kPage));
      for (std::uint32_t b = 0; b < n_blocks; ++b)
        if (seen[b].lo < page + kPage && seen[b].hi > page)
          add_page_to_block(scores + b * kLanes * kChunk, seen[b], rows.lo + b * kLanes, rows.hi + b * kLanes, values,
                            page, chunk_o + b * kLanes * width, width);
    }
    for (std::uint32_t b = 0; b < n_blocks; ++b)
      if (seen[b].lo < seen[b].hi)
        merge_block(rows, b * kLanes, least(n - b * kLanes, kLanes), at, chunk_o, totals, width);
  }

  for (std::uint32_t b = 0; b < n_blocks; ++b) {
    float of_total[kLanes];
    if (tile.sinks != nullptr)
      for (std::uint32_t row = b * kLanes; row < least(n, (b + 1) * kLanes); ++row) {
        const SinkFactors sink = sink_factors(tile.sinks[h_begin + row % n_heads], rows.total_max[row]);
        rows.total_sum[row] = rows.total_sum[row] * sink.of_total + sink.share;
        of_total[row % kLanes] = sink.of_total;
      }
    float r[kLanes];
    store(r, rcp(load(rows.total_sum + b * kLanes)));
    for (std::uint32_t row = b * kLanes; row < least(n, (b + 1) * kLanes); ++row) {
      float* total = totals + row * width;
      if (tile.sinks != nullptr)
        for (std::uint32_t i = 0; i < width; i += kLanes)
          store(total + i, load(total + i) * splat(of_total[row % kLanes]));
      for (std::uint32_t i = 0; i < width; i += kLanes) store(total + i, load(total + i) * splat(r[row % kLanes]));
      const std::uint32_t t = begin + row / n_heads, h = h_begin + row % n_heads;
      std::memcpy(tile.y + (std::uint64_t{t} * c.n_heads + h) * c.v_head_dim, total, 4 * std::uint64_t{c.v_head_dim});
    }
  }
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

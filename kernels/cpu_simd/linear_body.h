// LINEAR on quantized weights for one instruction set. linear_<isa>.cpp includes this after its dots_<isa>.h, which
// defines the vectors.
// W is read in panels of 16 interleaved rows (kernels/cpu/quant/panels.h) and groups of 256 values. A tile is the
// product of up to kTile rows of x and one panel, so the same code serves one row of x and many. If there are few
// tiles, each reads the codes directly from the panel. If there are more, a group is unpacked once and then multiplied
// by all rows of x. That is done in wide tiles (kWideTile rows of x by two panels) if the instruction set has registers
// for their sums.
//
// The bits are those of kernels/cpu/quant: integer dots are exact in any order, and each lane does the format's float
// operations in the reference's order (docs/arithmetic.md, rule 3).
#pragma once

#include "kernels/cpu_simd/linear_fixed.h"
#include "kernels/cpu_simd/linear_groups.h"

namespace zinc_rt::cpu_simd {
namespace {

// kTileRows: rows of x of the largest tile. kTokens: how many rows of x are multiplied by a group before it must be
// unpacked again.
constexpr std::uint32_t kTileRows = kWideTile != 0 ? kWideTile : kTile;
constexpr std::uint32_t kTokens = kWideTile != 0 ? 96 : 64;
static_assert(kTokens % kTileRows == 0);
// Up to this many tiles of rows of x, each tile reads the group from its panel.
template <class F>
constexpr std::uint32_t kFewTiles = kWideTile != 0 || !F::kIsK ? 2 : 1;
// From this many rows of x on, it is faster to interleave a plain matrix. Decoded blocks are always interleaved.
constexpr std::uint32_t kFewestPlain = 3;
constexpr std::uint64_t kAhead = 3;  // groups by which prefetching is ahead

// Call fn(p, t) for kP panels and kT rows: each_sum by panels, each_row by rows. They are loops that GCC unrolls after
// inlining, and not `repeat`, because GCC optimizes what is inlined again at each level of inlining: a set of tiles
// would take twice as long to compile.
template <int kP, int kT, class Fn>
ZRT_SIMD void each_sum(Fn&& fn) {
#pragma GCC unroll 16
  for (int p = 0; p < kP; ++p)
#pragma GCC unroll 16
    for (int t = 0; t < kT; ++t) fn(p, t);
}
template <int kP, int kT, class Fn>
ZRT_SIMD void each_row(Fn&& fn) {
#pragma GCC unroll 16
  for (int t = 0; t < kT; ++t)
#pragma GCC unroll 16
    for (int p = 0; p < kP; ++p) fn(p, t);
}

// Sums holds the running sums of kT rows of x times the panels of a Source (Packed or Unpacked, linear_groups.h).
// add(w, codes, x, total) adds the products of word w, which has four values per row of W. x(t) returns the 32 values
// of row t that belong to the 8 words of a block. When a sum cannot take more products, total(p, t, sum) is called with
// it, for panel p and row t.
template <class Source, int kT, bool kStarted = false>
struct Sums {
  using F = typename Source::F;
  Sum<steps_of(F::kLargest, F::kSigned, F::kSub / 4), F::kSigned && kTakesSignedCodes, kStarted> of[Source::kP][kT];
  template <class W, class X, class AddTo>
  ZRT_MEMBER void add(W w, const Codes<Source::kP>& codes, X&& x, AddTo&& total) {
    each_row<Source::kP, kT>([&](int p, int t) ZRT_INLINE_LAMBDA {
      of[p][t].template add<W::kNth>(codes.of[p], x(t) + 4 * w,
                                     [&](const Ints& full) ZRT_INLINE_LAMBDA { total(p, t, full); });
    });
  }
};
template <class Source, int kT>
  requires(Source::kWordPairs)
struct Sums<Source, kT> {
  static constexpr int kRows = kT == 1 ? 1 : 2;
  PairSum<Source::F::kSub / 4, kRows> of[kT / kRows];
  template <class W, class X, class AddTo>
  ZRT_MEMBER void add(W w, const Codes<1>& codes, X&& x, AddTo&& total) {
#pragma GCC unroll 16
    for (int i = 0; i < kT / kRows; ++i)
      of[i].add(
          w, codes.of[0], [&](int r) ZRT_INLINE_LAMBDA { return x(kRows * i + r); },
          [&](int r, const Ints& full) ZRT_INLINE_LAMBDA { total(0, kRows * i + r, full); });
  }
};

// Multiplies kT rows of x, in q8a32, by one group of a format with blocks of 32. x[t] points to the group in row t.
// numbers[t] has its Numbers, if the Source has them prepared. acc has 16 floats per row of x, and kTokens rows per
// panel.
template <class Source, int kT>
ZRT_SIMD void tile_small(const Source& group, const ActBlockQ8A32* const* x, const Numbers* numbers, float (*acc)[16]) {
  using F = typename Source::F;
  constexpr int kP = Source::kP;
  constexpr bool kStarted = kOffsetOf<F> != 0 && kSumsStartAnywhere;
  const auto number = [&](int t, int s)
                          ZRT_INLINE_LAMBDA { return Source::kHasNumbers ? numbers[t].of[s] : number_of<F>(x[t][s]); };
  Floats v[kP][kT];
  each_sum<kP, kT>([&](int p, int t) ZRT_INLINE_LAMBDA { v[p][t] = splat(0.0f); });
  for (int s = 0; s < group.n_blocks; ++s) {
    group.prefetch(s);
    Sums<Source, kT, kStarted> sums;
    Ints isum[kP][kT];
    each_sum<kP, kT>([&](int p, int t) ZRT_INLINE_LAMBDA {
      if constexpr (kStarted)
        sums.of[p][t].start(splat(number(t, s)));
      else
        isum[p][t] = kOffsetOf<F> != 0 ? splat(number(t, s)) : splat(0);
    });
    group.each_word(s, [&](auto w, const Codes<kP>& codes) ZRT_INLINE_LAMBDA {
      sums.add(
          w, codes, [&](int t) ZRT_INLINE_LAMBDA { return x[t][s].qs; },
          [&](int p, int t, const Ints& full) ZRT_INLINE_LAMBDA {
            if constexpr (kStarted)
              isum[p][t] = plain_sum(full);
            else
              add_to(isum[p][t], plain_sum(full));
          });
    });
#pragma GCC unroll 16
    for (int p = 0; p < kP; ++p) {
      const Floats d = group.d(p, s);
      [[maybe_unused]] Floats m;
      if constexpr (F::kHasMin) m = group.m(p, s);
#pragma GCC unroll 16
      for (int t = 0; t < kT; ++t) {
        const Floats d_x = splat(x[t][s].d);
        v[p][t] = fma(to_floats(isum[p][t]) * d, d_x, v[p][t]);
        if constexpr (F::kHasMin) v[p][t] = fma(splat(__builtin_bit_cast(float, number(t, s))) * m, d_x, v[p][t]);
      }
    }
  }
  each_sum<kP, kT>([&](int p, int t) ZRT_INLINE_LAMBDA {
    float* to = acc[p * kTokens + t];
    store(to, load(to) + v[p][t]);
  });
}

// Multiplies kT rows of x, in q8a32, by one group of a format with a scale per half of a block of 32. It has no
// minimums, and its words are passed in order.
template <class Source, int kT>
ZRT_SIMD void tile_halves(const Source& group, const ActBlockQ8A32* const* x, const Numbers* numbers,
                          float (*acc)[16]) {
  using F = typename Source::F;
  constexpr int kP = Source::kP;
  Floats v[kP][kT];
  each_sum<kP, kT>([&](int p, int t) ZRT_INLINE_LAMBDA { v[p][t] = splat(0.0f); });
  for (int s = 0; s < group.n_blocks; ++s) {
    group.prefetch(s);
    Sums<Source, kT> sums;
    Ints isum[2][kP][kT];
    each_sum<kP, kT>([&](int p, int t) ZRT_INLINE_LAMBDA {
      const std::int32_t both = Source::kHasNumbers ? numbers[t].of[s] : number_of<F>(x[t][s]);
      isum[0][p][t] = splat(-kOffsetOf<F> * static_cast<std::int16_t>(both & 0xFFFF));
      isum[1][p][t] = splat(-kOffsetOf<F> * (both >> 16));
    });
    group.each_word(s, [&](auto w, const Codes<kP>& codes) ZRT_INLINE_LAMBDA {
      sums.add(
          w, codes, [&](int t) ZRT_INLINE_LAMBDA { return x[t][s].qs; },
          [&](int p, int t, const Ints& full) ZRT_INLINE_LAMBDA { add_to(isum[w / 4][p][t], plain_sum(full)); });
    });
#pragma GCC unroll 16
    for (int p = 0; p < kP; ++p)
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
        const Floats d = group.d(p, s, half);
#pragma GCC unroll 16
        for (int t = 0; t < kT; ++t) v[p][t] = fma(to_floats(isum[half][p][t]) * d, splat(x[t][s].d), v[p][t]);
      }
  }
  each_sum<kP, kT>([&](int p, int t) ZRT_INLINE_LAMBDA {
    float* to = acc[p * kTokens + t];
    store(to, load(to) + v[p][t]);
  });
}

// Multiplies kT rows of x, in q8a256, by one group of a K-quant.
template <class Source, int kT>
ZRT_SIMD void tile_super(const Source& group, const ActBlockQ8A256* const* x, const Numbers* numbers,
                         float (*acc)[16]) {
  using F = typename Source::F;
  constexpr int kP = Source::kP;
  constexpr int kOffset = kOffsetOf<F>, kParts = 32 / F::kSub;  // scales per 32 values
  Ints isum[kP][kT];
  each_sum<kP, kT>([&](int p, int t) ZRT_INLINE_LAMBDA { isum[p][t] = splat(0); });
  for (int s = 0; s < 8; ++s) {
    group.prefetch(s);
    Sums<Source, kT> sums;
    // Formats with two scales per 32 values return their words in order, so that a sum never mixes codes with different
    // scales.
    group.each_word(s, [&](auto w, const Codes<kP>& codes) ZRT_INLINE_LAMBDA {
      sums.add(
          w, codes, [&](int t) ZRT_INLINE_LAMBDA { return x[t]->qs + 32 * s; },
          [&](int p, int t, const Ints& full) ZRT_INLINE_LAMBDA {
            add_to(isum[p][t], scaled_sum(full, group.scale(p, kParts * s + (kParts == 1 ? 0 : w / 4))));
          });
    });
  }
  // Sums of 16 values are read where they are. GCC would hold a copy of them in scalar registers, and spill those.
  constexpr bool kInPlace = !Source::kHasNumbers && F::kSub == 16;
  Numbers made[kT];
  if constexpr (!Source::kHasNumbers && !kInPlace && (F::kHasMin || kOffset != 0))
    repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA { prepare<F>(x[t], 8, made[t]); });
  const Numbers* own = Source::kHasNumbers ? numbers : made;
  const auto pair = [&](int t, int i) ZRT_INLINE_LAMBDA {
    std::int32_t both;
    std::memcpy(&both, kInPlace ? static_cast<const void*>(x[t]->sums + 2 * i) : own[t].of + i, sizeof(both));
    return splat(both);
  };
  each_sum<kP, kT>([&](int p, int t) ZRT_INLINE_LAMBDA {
    const Floats d = group.d(p, 0);
    [[maybe_unused]] Ints msum = splat(0);
    if constexpr (F::kHasMin || kOffset != 0)
#pragma GCC unroll 8
      for (int i = 0; i < 128 / F::kSub; ++i) msum = add_dot_pairs(msum, group.sum_factors(p, i), pair(t, i));
    Floats v;
    if constexpr (F::kHasMin)
      v = fma(to_floats(isum[p][t]), d, to_floats(msum) * group.m(p, 0));
    else if constexpr (kOffset != 0)
      v = to_floats(isum[p][t] - splat(kOffset) * msum) * d;
    else
      v = to_floats(isum[p][t]) * d;
    float* to = acc[p * kTokens + t];
    store(to, fma(v, splat(x[t]->d), load(to)));
  });
}

// Multiplies n rows of x in tiles. x points to the group in the first row; rows are x_pitch bytes apart.
template <class Source>
ZRT_SIMD void tiles(const Source& group, const std::byte* x, std::uint64_t x_pitch, std::uint32_t n,
                    const Numbers* numbers, float (*acc)[16]) {
  using F = typename Source::F;
  std::uint32_t t = 0;
  const auto tile = [&](auto n_rows) ZRT_INLINE_LAMBDA {
    const ActOf<F>* rows[n_rows];
    for (std::uint32_t i = 0; i < n_rows; ++i) {
      const std::uint32_t row = t + i < n ? t + i : n - 1;
      rows[i] = reinterpret_cast<const ActOf<F>*>(x + row * x_pitch);
    }
    if constexpr (F::kIsK)
      tile_super<Source, n_rows>(group, rows, numbers + t, acc + t);
    else if constexpr (F::kHalves)
      tile_halves<Source, n_rows>(group, rows, numbers + t, acc + t);
    else
      tile_small<Source, n_rows>(group, rows, numbers + t, acc + t);
    t += n_rows;
  };
  // Only few tile sizes are used, because each is separate code for every format. The last wide tile may include rows
  // whose sums are not read.
  if constexpr (Source::kP > 1) {
    while (t < n) tile(std::integral_constant<int, kWideTile>{});
  } else {
    while (t + kTile <= n) tile(std::integral_constant<int, kTile>{});
    while (t + 2 <= n) tile(std::integral_constant<int, 2>{});
    if (t < n) tile(std::integral_constant<int, 1>{});
  }
}

// Multiplies at most kTokens rows of x by at most kPanels panels. It is not inlined: with the loops of its caller
// around them, GCC 12 takes the loops of tiles for less frequent than they are, and copies their sums between registers
// (docs/notes/compile-time.md).
template <class F>
__attribute__((noinline)) void run_panels(const cpu::LinearArgs& a, Groups& groups, std::uint32_t first,
                                          std::uint32_t n, const PanelRows* panels, int n_panels) {
  const std::uint64_t x_group = row_bytes(a.x_dtype, kGroupValues);
  const std::uint32_t n_groups = (a.k + kGroupValues - 1) / kGroupValues;
  const auto* x = static_cast<const std::byte*>(a.x) + first * a.x_pitch;
  alignas(64) float acc[kPanels][kTokens][16];
  Numbers numbers[kTokens];
  for (int p = 0; p < n_panels; ++p)
    for (std::uint32_t t = 0; t < n; ++t) store(acc[p][t], splat(0.0f));
  const auto prepare_rows = [&](std::uint32_t g, int n_blocks) ZRT_INLINE_LAMBDA {
    for (std::uint32_t t = 0; t < n; ++t)
      prepare<F>(reinterpret_cast<const ActOf<F>*>(x + t * a.x_pitch + g * x_group), n_blocks, numbers[t]);
  };
  constexpr int kP = kWideTile != 0 ? 2 : 1;
  const int n_unpacked = n <= kFewTiles<F> * kTile ? 0 : n_panels / kP * kP;
  if (n_unpacked > 0) {
    Unpacked<F, kP> unpacked;
    for (std::uint32_t g = 0; g < n_groups; ++g)
      for (int p = 0; p < n_unpacked; p += kP) {
        const bool is_last = p + kP == n_unpacked;
        for (int i = 0; i < kP; ++i) {
          unpacked.fill(i, {groups.at(panels[p + i], g), nullptr});
          groups.ask_for(panels[is_last ? i : p + kP + i], is_last ? g + 1 : g);
        }
        if (unpacked.kHasNumbers && p == 0) prepare_rows(g, unpacked.n_blocks);
        tiles(unpacked, x + g * x_group, a.x_pitch, n, numbers, acc[p]);
      }
  }
  // With few rows of x, memory is the limit. So a panel is read to its end before the next one, with prefetching across
  // page boundaries, where the processor's own prefetcher stops. A panel without a neighbour is read the same way.
  for (int p = n_unpacked; p < n_panels; ++p)
    for (std::uint32_t g = 0; g < n_groups; ++g) {
      const Packed<F> group{groups.at(panels[p], g), groups.address(panels[p], g + kAhead)};
      tiles(group, x + g * x_group, a.x_pitch, n, numbers, acc[p]);
    }
  // Row by row, because panels are neighbours in a row of y, and the rows of y are in different memory pages.
  for (std::uint32_t t = 0; t < n; ++t)
    for (int p = 0; p < n_panels; ++p)
      store_rows(a, first + t, panels[p].first, panels[p].begin, panels[p].end, acc[p][t]);
}

template <class F>
bool run(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end) {
  Groups groups(a);
  // Sweeps have about the same length, so that no sweep unpacks a group for only a few rows.
  const std::uint32_t n_sweeps = (a.n + kTokens - 1) / kTokens;
  const std::uint32_t n_tiles = (a.n + kTileRows - 1) / kTileRows;
  const std::uint32_t sweep = (n_tiles + n_sweeps - 1) / n_sweeps * kTileRows;
  for (std::uint32_t first = 0; first < a.n; first += sweep) {
    const std::uint32_t n = a.n - first < sweep ? a.n - first : sweep;
    for_panels<kPanels>(a, begin, end, [&](const PanelRows* panels, int n_panels) {
      run_panels<F>(a, groups, first, n, panels, n_panels);
    });
  }
  return true;
}

// Implements KernelSet::linear_rows.
bool panel_linear(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end) {
  if (a.x_dtype == DType::kF32) return false;
  if (!a.packed && a.n < kFewestPlain && cpu::quant_format(a.w_dtype)->decode == nullptr) return false;
  if (a.w_dtype == DType::kFixed16) {
    fixed_linear(a, begin, end);
    return true;
  }
  return with_format(a.w_dtype, [&](auto format) { return run<decltype(format)>(a, begin, end); });
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

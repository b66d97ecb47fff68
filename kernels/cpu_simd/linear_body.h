// LINEAR on quantized weights for one instruction set. linear_<isa>.cpp includes this after its dots_<isa>.h, which
// defines the vectors. The same code serves one row of x and many: it multiplies kTile rows of x by 16 rows of W at a
// time. If there are few tiles, codes are read directly from the panel. If there are more, a group is unpacked once and
// multiplied by all rows of x, in wide tiles (kWideTile rows of x and two panels) if there are registers for that.
//
// The bits are those of kernels/cpu/quant: integer dots are exact in any order, and each lane does the format's float
// operations in the reference's order (docs/arithmetic.md, rule 3).
#pragma once

#include "kernels/cpu_simd/linear_fixed.h"
#include "kernels/cpu_simd/linear_source.h"

namespace zinc_rt::cpu_simd {
namespace {

template <int kSteps, int kRows>
struct PairSum;  // only sets with kHasWordPairs define it

// How many rows of x are multiplied by a group before it must be unpacked again; a multiple of the tile sizes.
constexpr std::uint32_t kTileRows = kWideTile != 0 ? kWideTile : kTile;
constexpr std::uint32_t kTokens = kWideTile != 0 ? 96 : 64;
static_assert(kTokens % kTileRows == 0);
// The number of panels for which the numbers of a group's activations are computed at once. A single row computes them
// in its tile.
constexpr std::uint32_t kPanels = kWideTile != 0 ? 4 : 1;
// Up to this many tiles of rows of x, each tile reads the group from its panel.
template <class F>
constexpr std::uint32_t kFewTiles = kWideTile != 0 || !F::kIsK ? 2 : 1;
// From this many rows of x on, it is faster to interleave a plain matrix.
constexpr std::uint32_t kFewestPlain = 3;
constexpr std::uint64_t kAhead = 2;  // groups by which prefetching is ahead

// A word of codes from each of kP panels.
template <int kP>
struct Codes {
  Ints of[kP];
};

// A group that is read in its panel, without unpacking.
template <class Format>
struct Packed : Group {
  using F = Format;
  static constexpr bool kWordPairs = false, kHasNumbers = false;
  static constexpr int kP = 1;
  template <class Fn>
  ZRT_MEMBER void each_word(int s, Fn&& fn) const {
    F::each_word(*this, s, [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA {
      if constexpr (kShifted<F>)
        fn(w, Codes<1>{{codes ^ every_byte(128)}});
      else
        fn(w, Codes<1>{{codes}});
    });
  }
  ZRT_MEMBER Floats d(int, int s) const { return F::d(*this, s); }
  ZRT_MEMBER Floats m(int, int s) const { return F::m(*this, s); }
  ZRT_MEMBER Ints scale(int, int j) const { return as_scale(F::sc(*this, j)); }
  // Returns numbers 2 p and 2 p + 1 as pairs of 16 bits, by which the sums of the activations are multiplied.
  ZRT_MEMBER Ints sum_factors(int, int p) const {
    if constexpr (F::kHasMin)
      return as_pairs(F::min(*this, 2 * p), F::min(*this, 2 * p + 1));
    else
      return as_pairs(F::sc(*this, 2 * p), F::sc(*this, 2 * p + 1));
  }

  ZRT_SIMD Ints as_pairs(const Ints& low, const Ints& high) { return (low & splat(0xFFFF)) | shift_left(high, 16); }
  ZRT_SIMD Ints as_scale(const Ints& sc) { return kScalesArePairs ? as_pairs(sc, sc) : sc; }
};

// The unpacked groups of kPanelsAtOnce panels. They are in plain memory and read as whole vectors, because the compiler
// would copy a struct of vectors in halves, and reading a vector that was written in halves is slow.
template <class Format, int kPanelsAtOnce>
struct Unpacked {
  using F = Format;
  static constexpr bool kWordPairs = kHasWordPairs, kHasNumbers = kPanels > 1;
  static constexpr int kP = kPanelsAtOnce;
  static constexpr int kScales = static_cast<int>(kGroupValues) / F::kSub;
  static constexpr int kFloats = F::kIsK ? 1 : 8;
  struct Panel {
    alignas(64) std::int32_t words[kGroupValues / 4][16];
    alignas(64) std::int32_t scales[kScales][16], factors[kScales / 2][16];
    alignas(64) float ds[kFloats][16], ms[kFloats][16];
  } panels[kP];
  int n_blocks;

  ZRT_MEMBER void fill(int p, const Packed<F>& group) {
    Panel& to = panels[p];
    n_blocks = group.n_blocks;
    for (int s = 0; s < n_blocks; ++s) {
      group.each_word(
          s, [&](auto w, const Codes<1>& codes) ZRT_INLINE_LAMBDA { store(to.words[8 * s + w], codes.of[0]); });
      if constexpr (kWordPairs)
        for (int w = 8 * s; w < 8 * s + 8; w += 2) PairSum<F::kSub / 4, 1>::interleave(to.words[w], to.words[w + 1]);
      if (F::kIsK && s > 0) continue;
      store(to.ds[F::kIsK ? 0 : s], group.d(0, s));
      if constexpr (F::kHasMin) store(to.ms[F::kIsK ? 0 : s], group.m(0, s));
    }
    if constexpr (F::kIsK) {
      for (int j = 0; j < kScales; ++j) store(to.scales[j], group.scale(0, j));
      if constexpr (F::kHasMin || kOffsetOf<F> != 0)
        for (int i = 0; i < kScales / 2; ++i) store(to.factors[i], group.sum_factors(0, i));
    }
  }
  template <class Fn>
  ZRT_MEMBER void each_word(int s, Fn&& fn) const {
    repeat<8>([&](auto w) ZRT_INLINE_LAMBDA {
      Codes<kP> codes;
      repeat<kP>([&](auto p) ZRT_INLINE_LAMBDA { codes.of[p] = load_ints(panels[p].words[8 * s + w]); });
      fn(w, codes);
    });
  }
  ZRT_MEMBER Floats d(int p, int s) const { return load(panels[p].ds[F::kIsK ? 0 : s]); }
  ZRT_MEMBER Floats m(int p, int s) const { return load(panels[p].ms[F::kIsK ? 0 : s]); }
  ZRT_MEMBER Ints scale(int p, int j) const { return load_ints(panels[p].scales[j]); }
  ZRT_MEMBER Ints sum_factors(int p, int i) const { return load_ints(panels[p].factors[i]); }
};

// The sums of kT rows of x over the words of a Source. add(w, codes, x, total): x(t) returns the 32 values of row t for
// the 8 words. When a sum is full, total(p, t, sum) is called.
template <class Source, int kT>
struct Sums {
  using F = typename Source::F;
  Sum<steps_of(F::kLargest, F::kSigned, F::kSub / 4), F::kSigned && kTakesSignedCodes> of[Source::kP][kT];
  ZRT_MEMBER Sums() {
    repeat<Source::kP>([&](auto p)
                           ZRT_INLINE_LAMBDA { repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA { of[p][t].n = 0; }); });
  }
  template <class X, class AddTo>
  ZRT_MEMBER void add(int w, const Codes<Source::kP>& codes, X&& x, AddTo&& total) {
    repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA {
      repeat<Source::kP>([&](auto p) ZRT_INLINE_LAMBDA {
        of[p][t].add(codes.of[p], x(t) + 4 * w, [&](const Ints& full) ZRT_INLINE_LAMBDA { total(p, t, full); });
      });
    });
  }
};
template <class Source, int kT>
  requires(Source::kWordPairs)
struct Sums<Source, kT> {
  static constexpr int kRows = kT == 1 ? 1 : 2;
  PairSum<Source::F::kSub / 4, kRows> of[kT / kRows];
  template <class X, class AddTo>
  ZRT_MEMBER void add(int w, const Codes<1>& codes, X&& x, AddTo&& total) {
    repeat<kT / kRows>([&](auto i) ZRT_INLINE_LAMBDA {
      of[i].add(
          w, codes.of[0], [&](int r) ZRT_INLINE_LAMBDA { return x(kRows * i + r); },
          [&](int r, const Ints& full) ZRT_INLINE_LAMBDA { total(0, kRows * i + r, full); });
    });
  }
};

// Calls fn(p, t) for kP panels and kT rows.
template <int kP, int kT, class Fn>
ZRT_SIMD void each_sum(Fn&& fn) {
  repeat<kP>([&](auto p) ZRT_INLINE_LAMBDA { repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA { fn(p, t); }); });
}

// Multiplies kT rows of x, in q8a32, by one group of 32-blocks. x[t] points to the group in row t, numbers[t] to its
// numbers. acc has 16 floats per row, and kTokens rows per panel.
template <class Source, int kT>
ZRT_SIMD void tile_small(const Source& group, const ActBlockQ8A32* const* x, const Numbers* numbers, float (*acc)[16]) {
  using F = typename Source::F;
  constexpr int kP = Source::kP;
  constexpr bool kStarted = kOffsetOf<F> != 0 && kSumsStartAnywhere;
  const auto number = [&](int t, int s)
                          ZRT_INLINE_LAMBDA { return Source::kHasNumbers ? numbers[t].of[s] : number_of<F>(x[t][s]); };
  Floats v[kP][kT];
  each_sum<kP, kT>([&](auto p, auto t) ZRT_INLINE_LAMBDA { v[p][t] = splat(0.0f); });
  for (int s = 0; s < group.n_blocks; ++s) {
    Sums<Source, kT> sums;
    Ints isum[kP][kT];
    each_sum<kP, kT>([&](auto p, auto t) ZRT_INLINE_LAMBDA {
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
    repeat<kP>([&](auto p) ZRT_INLINE_LAMBDA {
      const Floats d = group.d(p, s);
      [[maybe_unused]] Floats m;
      if constexpr (F::kHasMin) m = group.m(p, s);
      repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA {
        const Floats d_x = splat(x[t][s].d);
        v[p][t] = fma(to_floats(isum[p][t]) * d, d_x, v[p][t]);
        if constexpr (F::kHasMin) v[p][t] = fma(splat(__builtin_bit_cast(float, number(t, s))) * m, d_x, v[p][t]);
      });
    });
  }
  each_sum<kP, kT>([&](auto p, auto t) ZRT_INLINE_LAMBDA {
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
  each_sum<kP, kT>([&](auto p, auto t) ZRT_INLINE_LAMBDA { isum[p][t] = splat(0); });
  for (int s = 0; s < 8; ++s) {
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
  Numbers made[kT];
  if constexpr (!Source::kHasNumbers && (F::kHasMin || kOffset != 0))
    repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA { prepare<F>(x[t], 8, made[t]); });
  const Numbers* own = Source::kHasNumbers ? numbers : made;
  each_sum<kP, kT>([&](auto p, auto t) ZRT_INLINE_LAMBDA {
    const Floats d = group.d(p, 0);
    [[maybe_unused]] Ints msum = splat(0);
    if constexpr (F::kHasMin || kOffset != 0)
      repeat<128 / F::kSub>(
          [&](auto i) ZRT_INLINE_LAMBDA { msum = add_dot_pairs(msum, group.sum_factors(p, i), splat(own[t].of[i])); });
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

// Multiplies at most kTokens rows of x by at most kPanels panels.
template <class F>
void run_panels(const cpu::LinearArgs& a, Groups& groups, std::uint32_t first, std::uint32_t n, const PanelRows* panels,
                int n_panels) {
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
          unpacked.fill(i, {groups.at(panels[p + i], g)});
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
      const Packed<F> group{groups.at(panels[p], g)};
      groups.ask_for(panels[p], g + kAhead);
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
  if (a.x_dtype == DType::kF32 || (!a.packed && a.n < kFewestPlain)) return false;
  if (a.w_dtype == DType::kFixed16) {
    fixed_linear(a, begin, end);
    return true;
  }
  return with_format(a.w_dtype, [&](auto format) { return run<decltype(format)>(a, begin, end); });
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

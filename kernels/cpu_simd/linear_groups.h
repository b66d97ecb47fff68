// A group of W as LINEAR's tiles read it: in its panel, or unpacked. linear_body.h includes it.
#pragma once

#include "kernels/cpu_simd/linear_source.h"

namespace zinc_rt::cpu_simd {
namespace {

template <int kSteps, int kRows>
struct PairSum;  // only sets with kHasWordPairs define it

// The number of panels for which the numbers of a group's activations are computed at once. A single row computes them
// in its tile.
constexpr std::uint32_t kPanels = kWideTile != 0 ? 4 : 1;

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
  const std::byte* ahead;  // the group to prefetch
  // Prefetches the part of that group which corresponds to sub-block s. A few lines with each sub-block: all lines of a
  // group at once would wait for each other, and the products behind them would wait too (docs/notes/cpu-prefetch.md).
  // To the L2 cache, because L1 can expect fewer lines.
  ZRT_MEMBER void prefetch(int s) const {
    constexpr int kLine = 64, kPart = static_cast<int>(sizeof(typename F::Block)) * (F::kIsK ? 16 / 8 : 16);
#pragma GCC unroll 16
    for (int i = 0; i < kPart; i += kLine) __builtin_prefetch(ahead + kPart * s + i, 0, 2);
  }
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
  ZRT_MEMBER Floats d(int, int s, int half) const { return F::d(*this, s, half); }
  ZRT_MEMBER Floats m(int, int s) const { return F::m(*this, s); }
  ZRT_MEMBER Ints scale(int, int j) const { return as_scale(F::sc(*this, j)); }
  // Returns two 16-bit numbers for each row of W: those of sub-blocks 2 p (lower half of the lane) and 2 p + 1 (upper
  // half). They are the minimums, or the sub-scales if the format has no minimums. The caller multiplies them by the
  // sums of the activations of these sub-blocks.
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
  static constexpr int kHalves = F::kHalves ? 2 : 1;  // scales per block of 32
  static constexpr int kFloats = F::kIsK ? 1 : 8 * kHalves;
  struct Panel {
    alignas(64) std::int32_t words[kGroupValues / 4][16];
    alignas(64) std::int32_t scales[kScales][16], factors[kScales / 2][16];
    alignas(64) float ds[kFloats][16], ms[kFloats][16];
  } panels[kP];
  int n_blocks;
  ZRT_MEMBER void prefetch(int) const {}

  ZRT_MEMBER void fill(int p, const Packed<F>& group) {
    Panel& to = panels[p];
    n_blocks = group.n_blocks;
    for (int s = 0; s < n_blocks; ++s) {
      group.each_word(
          s, [&](auto w, const Codes<1>& codes) ZRT_INLINE_LAMBDA { store(to.words[8 * s + w], codes.of[0]); });
      if constexpr (kWordPairs)
        for (int w = 8 * s; w < 8 * s + 8; w += 2) PairSum<F::kSub / 4, 1>::interleave(to.words[w], to.words[w + 1]);
      if (F::kIsK && s > 0) continue;
      if constexpr (F::kHalves)
        for (int half = 0; half < 2; ++half) store(to.ds[2 * s + half], group.d(0, s, half));
      else
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
      fn(InOrder<w>{}, codes);
    });
  }
  ZRT_MEMBER Floats d(int p, int s) const { return load(panels[p].ds[F::kIsK ? 0 : s]); }
  ZRT_MEMBER Floats d(int p, int s, int half) const { return load(panels[p].ds[2 * s + half]); }
  ZRT_MEMBER Floats m(int p, int s) const { return load(panels[p].ms[F::kIsK ? 0 : s]); }
  ZRT_MEMBER Ints scale(int p, int j) const { return load_ints(panels[p].scales[j]); }
  ZRT_MEMBER Ints sum_factors(int p, int i) const { return load_ints(panels[p].factors[i]); }
};

}  // namespace
}  // namespace zinc_rt::cpu_simd

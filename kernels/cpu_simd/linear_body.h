// LINEAR on quantized weights for one instruction set: included by linear_<isa>.cpp after its dots_<isa>.h, which names
// the vectors. One tile of code serves one activation row and many: kTile rows of x meet 16 rows of W at a time. Up to
// kTile rows read their codes straight from the panel; more sweep over a group that is unpacked once.
//
// The bits are those of kernels/cpu/quant: integer dots are exact in any order, and each lane does the format's float
// operations in the reference's order (docs/arithmetic.md, rule 3).
#pragma once

#include "kernels/common/act_q8.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/panels.h"
#include "kernels/cpu_simd/panel_formats.h"

namespace zinc_rt::cpu_simd {
namespace {

template <int kSteps, int kRows>
struct PairSum;  // of sets with kHasWordPairs

constexpr std::uint32_t kGroupValues = 256;
constexpr std::uint32_t kTokens = 64;      // that sweep over a group before it is unpacked again
constexpr std::uint32_t kFewestPlain = 3;  // rows of x from which interleaving a plain matrix on the way pays
constexpr std::uint64_t kAhead = 2;        // groups that are asked for before they are needed
constexpr std::size_t kLargestGroup = std::size_t{kGroupValues} / 32 * 34 * cpu::kPanelRows;

template <class F>
constexpr bool kShifted = F::kSigned && !kTakesSignedCodes;  // codes are read as unsigned, 128 more
template <class F>
constexpr int kOffsetOf = kShifted<F> ? 128 : F::kOffset;

// A group as it lies in a panel.
template <class Format>
struct Packed : Group {
  using F = Format;
  static constexpr bool kWordPairs = false;
  template <class Fn>
  __attribute__((always_inline)) void each_word(int s, Fn&& fn) const {
    F::each_word(*this, s, [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA {
      if constexpr (kShifted<F>)
        fn(w, codes ^ every_byte(128));
      else
        fn(w, codes);
    });
  }
  __attribute__((always_inline)) Floats d(int s) const { return F::d(*this, s); }
  __attribute__((always_inline)) Floats m(int s) const { return F::m(*this, s); }
  __attribute__((always_inline)) Ints scale(int j) const { return as_scale(F::sc(*this, j)); }
  // Numbers 2 p and 2 p + 1 as pairs of 16 bits: what the sums of the activations are multiplied with.
  __attribute__((always_inline)) Ints sum_factors(int p) const {
    if constexpr (F::kHasMin)
      return as_pairs(F::min(*this, 2 * p), F::min(*this, 2 * p + 1));
    else
      return as_pairs(F::sc(*this, 2 * p), F::sc(*this, 2 * p + 1));
  }

  ZRT_SIMD Ints as_pairs(const Ints& low, const Ints& high) { return (low & splat(0xFFFF)) | shift_left(high, 16); }
  ZRT_SIMD Ints as_scale(const Ints& sc) { return kScalesArePairs ? as_pairs(sc, sc) : sc; }
};

// A group whose codes and scales are ready for use. It is kept in plain memory and read by whole vectors: a copy of a
// struct of vectors would go by halves, whose reload waits for both.
template <class Format>
struct Unpacked {
  using F = Format;
  static constexpr bool kWordPairs = kHasWordPairs;
  static constexpr int kScales = static_cast<int>(kGroupValues) / F::kSub;
  static constexpr int kFloats = F::kIsK ? 1 : 8;
  alignas(64) std::int32_t words[kGroupValues / 4][16];
  alignas(64) std::int32_t scales[kScales][16], factors[kScales / 2][16];
  alignas(64) float ds[kFloats][16], ms[kFloats][16];
  int n_blocks;

  void fill(const Packed<F>& group) {
    n_blocks = group.n_blocks;
    for (int s = 0; s < n_blocks; ++s) {
      group.each_word(s, [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA { store(words[8 * s + w], codes); });
      if constexpr (kWordPairs)
        for (int w = 8 * s; w < 8 * s + 8; w += 2) PairSum<F::kSub / 4, 1>::interleave(words[w], words[w + 1]);
      if (F::kIsK && s > 0) continue;
      store(ds[F::kIsK ? 0 : s], group.d(s));
      if constexpr (F::kHasMin) store(ms[F::kIsK ? 0 : s], group.m(s));
    }
    if constexpr (F::kIsK) {
      for (int j = 0; j < kScales; ++j) store(scales[j], group.scale(j));
      if constexpr (F::kHasMin || kOffsetOf<F> != 0)
        for (int p = 0; p < kScales / 2; ++p) store(factors[p], group.sum_factors(p));
    }
  }
  template <class Fn>
  __attribute__((always_inline)) void each_word(int s, Fn&& fn) const {
    repeat<8>([&](auto w) ZRT_INLINE_LAMBDA { fn(w, load_ints(words[8 * s + w])); });
  }
  __attribute__((always_inline)) Floats d(int s) const { return load(ds[F::kIsK ? 0 : s]); }
  __attribute__((always_inline)) Floats m(int s) const { return load(ms[F::kIsK ? 0 : s]); }
  __attribute__((always_inline)) Ints scale(int j) const { return load_ints(scales[j]); }
  __attribute__((always_inline)) Ints sum_factors(int p) const { return load_ints(factors[p]); }
};

// The sums of kT rows of x over the words that a Source gives. add(w, codes, x, total): x(t) are the 32 values of row t
// that the 8 words meet; total(t, sum) takes what is full.
template <class Source, int kT>
struct Sums {
  using F = typename Source::F;
  Sum<steps_of(F::kLargest, F::kSigned, F::kSub / 4), F::kSigned && kTakesSignedCodes> of[kT];
  __attribute__((always_inline)) Sums() {
    repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA { of[t].n = 0; });
  }
  template <class X, class AddTo>
  __attribute__((always_inline)) void add(int w, const Ints& codes, X&& x, AddTo&& total) {
    repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA {
      of[t].add(codes, x(t) + 4 * w, [&](const Ints& full) ZRT_INLINE_LAMBDA { total(t, full); });
    });
  }
};
template <class Source, int kT>
  requires(Source::kWordPairs)
struct Sums<Source, kT> {
  static constexpr int kRows = kT == 1 ? 1 : 2;
  PairSum<Source::F::kSub / 4, kRows> of[kT / kRows];
  template <class X, class AddTo>
  __attribute__((always_inline)) void add(int w, const Ints& codes, X&& x, AddTo&& total) {
    repeat<kT / kRows>([&](auto p) ZRT_INLINE_LAMBDA {
      of[p].add(
          w, codes, [&](int r) ZRT_INLINE_LAMBDA { return x(kRows * p + r); },
          [&](int r, const Ints& full) ZRT_INLINE_LAMBDA { total(kRows * p + r, full); });
    });
  }
};

// kT rows of x, of q8a32, on one group of 32-blocks; x[t] at the group. acc: 16 floats a row.
template <class Source, int kT>
ZRT_SIMD void tile_small(const Source& group, const ActBlockQ8A32* const* x, float (*acc)[16]) {
  using F = typename Source::F;
  Floats v[kT];
  repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA { v[t] = splat(0.0f); });
  for (int s = 0; s < group.n_blocks; ++s) {
    Sums<Source, kT> sums;
    Ints isum[kT];
    repeat<kT>([&](auto t)
                   ZRT_INLINE_LAMBDA { isum[t] = kOffsetOf<F> != 0 ? splat(-kOffsetOf<F> * x[t][s].sum) : splat(0); });
    group.each_word(s, [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA {
      sums.add(
          w, codes, [&](int t) ZRT_INLINE_LAMBDA { return x[t][s].qs; },
          [&](int t, const Ints& full) ZRT_INLINE_LAMBDA { isum[t] = isum[t] + plain_sum(full); });
    });
    const Floats d = group.d(s);
    repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA {
      const Floats d_x = splat(x[t][s].d);
      v[t] = fma(to_floats(isum[t]) * d, d_x, v[t]);
      if constexpr (F::kHasMin) v[t] = fma(splat(static_cast<float>(x[t][s].sum)) * group.m(s), d_x, v[t]);
    });
  }
  repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA { store(acc[t], load(acc[t]) + v[t]); });
}

// kT rows of x, of q8a256, on one group of a K-quant.
template <class Source, int kT>
ZRT_SIMD void tile_super(const Source& group, const ActBlockQ8A256* const* x, float (*acc)[16]) {
  using F = typename Source::F;
  constexpr int kOffset = kOffsetOf<F>, kParts = 32 / F::kSub;  // scales of 32 values
  Ints isum[kT];
  repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA { isum[t] = splat(0); });
  for (int s = 0; s < 8; ++s) {
    Sums<Source, kT> sums;
    // Formats with two scales give the words in order, so that a sum never holds codes of both.
    group.each_word(s, [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA {
      sums.add(
          w, codes, [&](int t) ZRT_INLINE_LAMBDA { return x[t]->qs + 32 * s; },
          [&](int t, const Ints& full) ZRT_INLINE_LAMBDA {
            isum[t] = isum[t] + scaled_sum(full, group.scale(kParts * s + (kParts == 1 ? 0 : w / 4)));
          });
    });
  }
  const Floats d = group.d(0);
  repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA {
    [[maybe_unused]] Ints msum = splat(0);
    if constexpr (F::kHasMin || kOffset != 0) {
      alignas(16) std::int16_t sums[16];
      for (int j = 0; j < 256 / F::kSub; ++j)
        sums[j] = F::kSub == 16 ? x[t]->sums[j] : static_cast<std::int16_t>(x[t]->sums[2 * j] + x[t]->sums[2 * j + 1]);
      for (int p = 0; p < 128 / F::kSub; ++p) {
        std::int32_t pair;
        std::memcpy(&pair, sums + 2 * p, sizeof(pair));
        msum = msum + dot_pairs(group.sum_factors(p), splat(pair));
      }
    }
    Floats v;
    if constexpr (F::kHasMin)
      v = fma(to_floats(isum[t]), d, to_floats(msum) * group.m(0));
    else if constexpr (kOffset != 0)
      v = to_floats(isum[t] - splat(kOffset) * msum) * d;
    else
      v = to_floats(isum[t]) * d;
    store(acc[t], fma(v, splat(x[t]->d), load(acc[t])));
  });
}

// Rows [first, first + n) of x in tiles; `at` is the byte of the group in a row of x.
template <class Source>
ZRT_SIMD void tiles(const Source& group, const cpu::LinearArgs& a, std::uint32_t first, std::uint32_t n,
                    std::uint64_t at, float (*acc)[16]) {
  using F = typename Source::F;
  using Act = std::conditional_t<F::kIsK, ActBlockQ8A256, ActBlockQ8A32>;
  const auto* x = static_cast<const std::byte*>(a.x) + first * a.x_pitch + at;
  const auto tile = [&](auto n_rows, std::uint32_t t) ZRT_INLINE_LAMBDA {
    const Act* rows[n_rows];
    for (std::uint32_t i = 0; i < n_rows; ++i) rows[i] = reinterpret_cast<const Act*>(x + (t + i) * a.x_pitch);
    if constexpr (F::kIsK)
      tile_super<Source, n_rows>(group, rows, acc + t);
    else
      tile_small<Source, n_rows>(group, rows, acc + t);
  };
  // Three sizes: each is code of its own for every format.
  std::uint32_t t = 0;
  for (; t + kTile <= n; t += kTile) tile(std::integral_constant<int, kTile>{}, t);
  for (; t + 2 <= n; t += 2) tile(std::integral_constant<int, 2>{}, t);
  if (t < n) tile(std::integral_constant<int, 1>{}, t);
}

// Adds the bias and stores rows [begin, end) of a panel whose first is `panel`.
void store_rows(const cpu::LinearArgs& a, std::uint32_t t, std::uint32_t panel, std::uint32_t begin, std::uint32_t end,
                const float* acc) {
  float* y = a.y + t * a.y_pitch + panel;
  if (a.bias == nullptr && end - begin == cpu::kPanelRows) return store(y, load(acc));
  for (std::uint32_t m = begin; m < end; ++m)
    y[m - panel] = a.bias != nullptr ? acc[m - panel] + a.bias[m] : acc[m - panel];
}

template <class F>
void run(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end) {
  const std::uint64_t w_row = row_bytes(a.w_dtype, a.k);
  const std::uint64_t w_group = row_bytes(a.w_dtype, kGroupValues), x_group = row_bytes(a.x_dtype, kGroupValues);
  const std::uint32_t n_groups = (a.k + kGroupValues - 1) / kGroupValues;
  const auto* w = static_cast<const std::byte*>(a.w);
  Unpacked<F> unpacked;
  alignas(64) std::byte interleaved[kLargestGroup];
  for (std::uint32_t first = 0; first < a.n; first += kTokens) {
    const std::uint32_t n = a.n - first < kTokens ? a.n - first : kTokens;
    for (std::uint32_t m = begin; m < end;) {
      const std::uint32_t panel = a.packed ? m / cpu::kPanelRows * cpu::kPanelRows : m;
      const std::uint32_t stop = end - panel < cpu::kPanelRows ? end : panel + cpu::kPanelRows;
      alignas(64) float acc[kTokens][16];
      for (std::uint32_t t = 0; t < n; ++t) store(acc[t], splat(0.0f));
      for (std::uint32_t g = 0; g < n_groups; ++g) {
        const std::uint32_t left = (a.k - g * kGroupValues) / 32;
        Packed<F> group{{w + panel * w_row + g * w_group * cpu::kPanelRows, static_cast<int>(left < 8 ? left : 8)}};
        if (!a.packed) {
          const std::byte* rows[cpu::kPanelRows] = {};
          for (std::uint32_t r = panel; r < stop; ++r) rows[r - panel] = w + r * w_row + g * w_group;
          cpu::pack_group(a.w_dtype, rows, F::kIsK ? 1 : static_cast<std::uint32_t>(group.n_blocks), interleaved);
          group.at = interleaved;
        }
        if (n <= kTile) {
          // Few rows of x wait for memory: a panel is read on across the pages at which the processor's own look-ahead
          // ends.
          for (std::uint64_t at = 0; at < cpu::kPanelRows * w_group; at += 64)
            __builtin_prefetch(group.at + kAhead * cpu::kPanelRows * w_group + at);
          tiles(group, a, first, n, g * x_group, acc);
        } else {
          unpacked.fill(group);
          tiles(unpacked, a, first, n, g * x_group, acc);
        }
      }
      for (std::uint32_t t = 0; t < n; ++t) store_rows(a, first + t, panel, m, stop, acc[t]);
      m = stop;
    }
  }
}

// KernelSet::linear_rows.
bool panel_linear(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end) {
  if (a.x_dtype == DType::kF32 || (!a.packed && a.n < kFewestPlain)) return false;
  switch (a.w_dtype) {
    case DType::kQ4_0: return run<Q4_0>(a, begin, end), true;
    case DType::kQ4_1: return run<Q4_1>(a, begin, end), true;
    case DType::kQ5_0: return run<Q5_0>(a, begin, end), true;
    case DType::kQ5_1: return run<Q5_1>(a, begin, end), true;
    case DType::kQ8_0: return run<Q8_0>(a, begin, end), true;
    case DType::kIQ4_NL: return run<Iq4Nl>(a, begin, end), true;
    case DType::kMXFP4: return run<Mxfp4>(a, begin, end), true;
    case DType::kQ2_K: return run<Q2K>(a, begin, end), true;
    case DType::kQ3_K: return run<Q3K>(a, begin, end), true;
    case DType::kQ4_K: return run<Q4K>(a, begin, end), true;
    case DType::kQ5_K: return run<Q5K>(a, begin, end), true;
    case DType::kQ6_K: return run<Q6K>(a, begin, end), true;
    case DType::kIQ4_XS: return run<Iq4Xs>(a, begin, end), true;
    default: return false;
  }
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

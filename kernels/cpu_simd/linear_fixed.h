// LINEAR on fixed16 weights (docs/arithmetic.md, rule 4); linear_body.h includes it. A code of W is assembled from its
// two digits to 16 bits. Two codes of a row at a time are multiplied by both digits of x.
#pragma once

#include "kernels/cpu_simd/fixed_group.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kFixedWords = kGroupValues / 2;  // words of two codes each
constexpr std::uint32_t kFixedSweep = 64;  // rows of x that are multiplied by a group before the next one is read
// Panels that use the digits of x after these were widened to 16 bits once.
constexpr std::uint32_t kFixedPanels = 4;
constexpr std::uint64_t kFixedAhead = 2;  // groups by which prefetching is ahead

// Splits words of four bytes into two words of two signed 16-bit numbers: bytes 0 and 2, and bytes 1 and 3.
ZRT_SIMD Ints even_bytes(const Ints& a) {
  return shift_right_signed_16(shift_left_16(a, 8), 8);
}
ZRT_SIMD Ints odd_bytes(const Ints& a) {
  return shift_right_signed_16(a, 8);
}

// A group of a row of x: its digits as pairs of 16 bits, in the order of the words of codes.
struct WideDigits {
  alignas(64) std::int32_t high[2][kFixedWords / 2], low[2][kFixedWords / 2];  // for even bytes, for odd bytes
  float d;

  ZRT_MEMBER void fill(const ActBlockQ16A256& x) {
    d = x.d;
    for (std::uint32_t w = 0; w < kGroupValues / 4; w += kLanes) {
      const Ints h = load_ints(x.high + 4 * w), l = load_ints(x.low + 4 * w);
      store(high[0] + w, even_bytes(h));
      store(high[1] + w, odd_bytes(h));
      store(low[0] + w, even_bytes(l));
      store(low[1] + w, odd_bytes(l));
    }
  }
};

// Two words of codes for each of 16 rows.
struct FixedCodes {
  Ints even, odd;
};
ZRT_SIMD FixedCodes read_codes(const FixedGroup& group, std::uint32_t w) {
  const Ints high = load_ints(group.high_word(w)), low = load_ints(group.low_word(w));
  return {add_16(shift_left_16(high, 8), even_bytes(low)),
          add_16(high & splat(static_cast<std::int32_t>(0xFF00FF00u)), odd_bytes(low))};
}
struct KeptCodes {
  alignas(64) std::int32_t words[2][kGroupValues / 4][16];
  ZRT_MEMBER void fill(const FixedGroup& group) {
    for (std::uint32_t w = 0; w < kGroupValues / 4; ++w) {
      const FixedCodes codes = read_codes(group, w);
      store(words[0][w], codes.even);
      store(words[1][w], codes.odd);
    }
  }
};

// Multiplies kT rows of x by a group. read(w) returns the codes.
template <int kT, class Read>
ZRT_SIMD void fixed_tile(const Floats& d, const WideDigits* x, float (*acc)[16], Read&& read) {
  Ints high[kT], low[kT];
  repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA { high[t] = low[t] = splat(0); });
  for (std::uint32_t w = 0; w < kGroupValues / 4; ++w) {
    const FixedCodes codes = read(w);
    repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA {
      high[t] = add_dot_pairs(high[t], codes.even, splat(x[t].high[0][w]));
      low[t] = add_dot_pairs(low[t], codes.even, splat(x[t].low[0][w]));
      high[t] = add_dot_pairs(high[t], codes.odd, splat(x[t].high[1][w]));
      low[t] = add_dot_pairs(low[t], codes.odd, splat(x[t].low[1][w]));
    });
  }
  repeat<kT>([&](auto t) ZRT_INLINE_LAMBDA { add_fixed_group(high[t], low[t], d, x[t].d, acc[t]); });
}

// Multiplies n rows of x in tiles.
template <class Read>
ZRT_SIMD void fixed_tiles(const Floats& d, const WideDigits* x, std::uint32_t n, float (*acc)[16], Read&& read) {
  std::uint32_t t = 0;
  for (; t + kPairTile <= n; t += kPairTile) fixed_tile<kPairTile>(d, x + t, acc + t, read);
  for (; t < n; ++t) fixed_tile<1>(d, x + t, acc + t, read);
}

void fixed_panels(const cpu::LinearArgs& a, Groups& groups, std::uint32_t first, std::uint32_t n,
                  const PanelRows* panels, std::uint32_t n_panels) {
  const std::uint64_t x_group = row_bytes(a.x_dtype, kGroupValues);
  const auto* x = static_cast<const std::byte*>(a.x) + first * a.x_pitch;
  alignas(64) float acc[kFixedPanels][kFixedSweep][16];
  WideDigits wide[kFixedSweep];
  KeptCodes kept;
  for (std::uint32_t p = 0; p < n_panels; ++p)
    for (std::uint32_t t = 0; t < n; ++t) store(acc[p][t], splat(0.0f));
  for (std::uint32_t g = 0; g < a.k / kGroupValues; ++g) {
    for (std::uint32_t t = 0; t < n; ++t)
      wide[t].fill(*reinterpret_cast<const ActBlockQ16A256*>(x + t * a.x_pitch + g * x_group));
    for (std::uint32_t p = 0; p < n_panels; ++p) {
      const FixedGroup group{groups.at(panels[p], g).at};
      groups.ask_for(panels[p], g + kFixedAhead);
      const Floats d = group.d();
      if (n <= kPairTile) {
        fixed_tiles(d, wide, n, acc[p], [&](std::uint32_t w) ZRT_INLINE_LAMBDA { return read_codes(group, w); });
        continue;
      }
      kept.fill(group);
      fixed_tiles(d, wide, n, acc[p], [&](std::uint32_t w) ZRT_INLINE_LAMBDA {
        return FixedCodes{load_ints(kept.words[0][w]), load_ints(kept.words[1][w])};
      });
    }
  }
  for (std::uint32_t t = 0; t < n; ++t)
    for (std::uint32_t p = 0; p < n_panels; ++p)
      store_rows(a, first + t, panels[p].first, panels[p].begin, panels[p].end, acc[p][t]);
}

// Computes rows [begin, end) of fixed16 weights times all rows of x.
void fixed_linear(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end) {
  Groups groups(a);
  for (std::uint32_t first = 0; first < a.n; first += kFixedSweep) {
    const std::uint32_t n = a.n - first < kFixedSweep ? a.n - first : kFixedSweep;
    for_panels<kFixedPanels>(a, begin, end, [&](const PanelRows* panels, std::uint32_t n_panels) {
      fixed_panels(a, groups, first, n, panels, n_panels);
    });
  }
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

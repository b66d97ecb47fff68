// Reads a group of fixed16 weights in its panel (kernels/cpu/quant/panels.h), and converts its integer sums to floats.
// Included after a dots_<isa>.h.
#pragma once

#include "kernels/cpu_simd/linear_source.h"

namespace zinc_rt::cpu_simd {
namespace {

// FixedGroup is a group in memory: 16 scales, then 64 words of high digits and 64 words of low digits; scales and words
// are for 16 rows each.
struct FixedGroup {
  const std::byte* at;
  static constexpr std::uint32_t kScaleBytes = 2 * cpu::kPanelRows;
  ZRT_MEMBER Floats d() const { return as_floats(shift_left(load_u16(at), 16)); }
  ZRT_MEMBER const std::byte* high_word(std::uint32_t w) const { return at + kScaleBytes + w * kVector; }
  ZRT_MEMBER const std::byte* low_word(std::uint32_t w) const {
    return at + kScaleBytes + kGroupValues / 4 * kVector + w * kVector;
  }
};

// Computes acc = fma(v, d_x, acc) for 16 rows of W, where v = (256 high + low) * d. `high` and `low` are the sums of
// W's codes times the high and low digits of x.
ZRT_SIMD void add_fixed_group(const Ints& high, const Ints& low, const Floats& d, float d_x, float* acc) {
  const Floats v = fma(to_floats(high), splat(256.0f), to_floats(low)) * d;
  store(acc, fma(v, splat(d_x), load(acc)));
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

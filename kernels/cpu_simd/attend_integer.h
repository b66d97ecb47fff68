// Attention over integer cells (kernels/common/kv_integer.h) on 16 lanes, for any number of rows, as attend_body.h has it
// for the others: included there. The lanes of a score are the 16 tokens of a page, those of an output are 16 values, and
// a lane multiplies two codes by two digits at once, so that an integer sum needs no fold and a code is read as it lies.
#pragma once

#include "kernels/common/kv_integer.h"
#include "kernels/cpu/quant/integer_kv.h"
#include "kernels/cpu_simd/attend_pages.h"

namespace zinc_rt::cpu_simd {
namespace {

ZRT_SIMD PartCache integer_cache_of(const cpu::AttendTile& tile, const void* memory, std::uint64_t pitch,
                                    std::uint32_t dim, std::int32_t slot) {
  return part_cache_of(tile, memory, pitch, kv_integer::codes_at(tile.kv_head, dim),
                       kv_integer::scales_at(tile.kv_head, tile.shape.n_kv_heads, dim), dim, slot);
}

// Two neighbouring digits, in every lane.
ZRT_SIMD Ints two_digits(const std::int16_t* p) {
  std::int32_t both;
  std::memcpy(&both, p, sizeof both);
  return splat(both);
}
ZRT_SIMD Floats joined(const Ints& high, const Ints& low) {
  return fma(to_floats(high), splat(256.0f), to_floats(low));
}
// The scales of a page's 16 tokens.
ZRT_SIMD Floats integer_scales(const std::byte* scales) {
  return as_floats(shift_left(load_u16(scales), 16));
}

// scores[r] = integer_dots (integer_kv.h) of kQ queries, each its high digits and then its low ones, with the 16 tokens
// of a page.
template <int kQ>
__attribute__((noinline)) void integer_page_dots(const std::int16_t* const* q, const std::byte* codes,
                                                 const std::byte* scales, std::uint32_t dim, float* const* scores) {
  Ints high[kQ], low[kQ];
  for (int r = 0; r < kQ; ++r) high[r] = low[r] = splat(0);
  for (std::uint32_t i = 0; i < dim; i += 2, codes += 64) {
    const Ints keys = load_ints(codes);
    for (int r = 0; r < kQ; ++r) {
      high[r] = high[r] + dot_pairs(keys, two_digits(q[r] + i));
      low[r] = low[r] + dot_pairs(keys, two_digits(q[r] + dim + i));
    }
  }
  const Floats d = integer_scales(scales);
  for (int r = 0; r < kQ; ++r) store(scores[r], joined(high[r], low[r]) * d);
}

// The numbers that make weights integers, from the bits of the largest magnitude: those of quantize_to_digits.
struct IntegerScale {
  float inverse, d;
};
ZRT_SIMD IntegerScale integer_scale(std::int32_t largest) {
  float amax, inverse[kLanes], d[kLanes];
  std::memcpy(&amax, &largest, sizeof amax);
  if (!(amax <= 0x1p120f)) return {0.0f, __builtin_nanf("")};
  if (amax < 0x1p-100f) return {0.0f, 0.0f};
  store(inverse, div(splat(digits::kMost), splat(amax)));
  store(d, div(splat(amax), splat(digits::kMost)));
  return {inverse[0], d[0]};
}
// The digits of 16 weights, as 16 bits each.
ZRT_SIMD void store_digits(const Floats& w, float inverse, void* high, void* low) {
  const Floats round = splat(12582912.0f);
  const Ints code = as_ints(w * splat(inverse) + round) - as_ints(round);
  const Ints upper = shift_right_signed(code + splat(128), 8);
  store_i16(high, upper);
  store_i16(low, code - shift_left(upper, 8));
}

// How many columns of 16 values kN rows take at once: their sums, two each, stay in registers.
constexpr int integer_columns(int n) {
  return kParts == 1 ? (n <= 2 ? 4 : 2) : n == 1 ? 2 : 1;
}
// o[r] from column `at` on = the sums of products of the rows' digits with the values of n_pages pages, times d[r].
template <int kN, int kColumns>
__attribute__((noinline)) void integer_values(const std::int16_t* const* digits, const std::byte* const* codes,
                                              std::uint32_t n_pages, std::uint32_t dim, const float* d, float* const* o,
                                              std::uint32_t at) {
  Ints high[kN][kColumns], low[kN][kColumns];
  for (int r = 0; r < kN; ++r)
    for (int c = 0; c < kColumns; ++c) high[r][c] = low[r][c] = splat(0);
  for (std::uint32_t page = 0; page < n_pages; ++page) {
    const std::byte* from = codes[page] + 4 * std::uint64_t{at};
    for (std::uint32_t pair = 0; pair < kPage / 2; ++pair, from += 4 * std::uint64_t{dim}) {
      Ints values[kColumns];
      for (int c = 0; c < kColumns; ++c) values[c] = load_ints(from + 64 * c);
      for (int r = 0; r < kN; ++r) {
        const std::int16_t* two = digits[r] + 2 * (page * kPage + pair);
        const Ints upper = two_digits(two), lower = two_digits(two + kPage);
        for (int c = 0; c < kColumns; ++c) {
          high[r][c] = high[r][c] + dot_pairs(values[c], upper);
          low[r][c] = low[r][c] + dot_pairs(values[c], lower);
        }
      }
    }
  }
  for (int r = 0; r < kN; ++r)
    for (int c = 0; c < kColumns; ++c)
      store(o[r] + at + kLanes * static_cast<std::uint32_t>(c), joined(high[r][c], low[r][c]) * splat(d[r]));
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

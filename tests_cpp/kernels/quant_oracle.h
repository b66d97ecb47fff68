// A second, slow statement of every quantized format: one function a format that finds the integers of one element by
// bit position, and rule 3 written straight down from them. Shares nothing with kernels/cpu/quant but the numbers of
// the two value tables and of the grids.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/dtype.h"
#include "kernels/common/act_q8.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/cpu/quant/grids.h"

namespace zinc_rt::oracle {

// Element = (d * sc) * q - (dmin * m) for the 256-blocks, d * q + min for the 32-blocks.
struct Code {
  int q = 0;
  int sc = 1;
  int m = 0;
};

inline float f16(const std::uint8_t* p) {
  const int bits = p[0] | p[1] << 8;
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits >> 15) != 0 ? -1 : 1;
  if (exponent == 31) return static_cast<float>(mantissa != 0 ? NAN : sign * INFINITY);
  const double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return static_cast<float>(sign * value);
}

inline int bit_field(const std::uint8_t* p, int byte, int shift, int width) {
  return p[byte] >> shift & ((1 << width) - 1);
}

constexpr int kNonlinear[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

inline int k_scale(const std::uint8_t* p, int j, bool minimum) {
  const int at = (j & 3) + (minimum ? 4 : 0);
  if (j < 4) return bit_field(p, at, 0, 6);
  return bit_field(p, 8 + (j & 3), minimum ? 4 : 0, 4) + 16 * bit_field(p, at, 6, 2);
}

// Bits `first` to `first` + width - 1 of the bytes from p on, as a little-endian number.
inline int bits_at(const std::uint8_t* p, int first, int width) {
  int number = 0;
  for (int i = 0; i < width; ++i) number |= (p[(first + i) / 8] >> (first + i) % 8 & 1) << i;
  return number;
}

// Sign i of eight of which seven are stored, from bit `first` on.
inline int sign_of_seven(const std::uint8_t* p, int first, int i) {
  int set = 0;
  for (int b = 0; b < 7; ++b) set += bits_at(p, first + b, 1);
  const int bit = i < 7 ? bits_at(p, first + i, 1) : set % 2;
  return bit != 0 ? -1 : 1;
}

// Twice the value of a 4-bit float: one bit of sign, two of exponent, one of mantissa.
inline int twice_fp4(int bits) {
  const int exponent = bits >> 1 & 3;
  const int twice = exponent == 0 ? bits & 1 : (2 + (bits & 1)) << (exponent - 1);
  return (bits & 8) != 0 ? -twice : twice;
}

// Digit n, from the most significant one on, of five of base 3. A file's byte is ceil(256 * number / 243).
inline int ternary(int byte, int n) {
  for (int number = 0; number < 243; ++number)
    if ((256 * number + 242) / 243 == byte) {
      for (int i = n; i < 4; ++i) number /= 3;
      return number % 3;
    }
  return -1;
}

inline Code code_of_grid(DType dtype, const std::uint8_t* p, int i) {
  const int at8 = i / 8, at4 = i / 4, sub = i / 32;  // point of 8 or 4, sub-block
  const auto sign = [&](int bit) { return bits_at(p, bit, 1) != 0 ? -1 : 1; };
  switch (dtype) {
    case DType::kIQ2_XXS: {
      const int start = 8 * (2 + 8 * sub);
      return {cpu::kIq2XxsGrid.points[p[2 + 8 * sub + at8 % 4]][i % 8] *
                  sign_of_seven(p, start + 32 + 7 * (at8 % 4), i % 8),
              2 * bits_at(p, start + 60, 4) + 1};
    }
    case DType::kIQ2_XS:
      return {cpu::kIq2XsGrid.points[bits_at(p + 2, 16 * at8, 9)][i % 8] * sign_of_seven(p + 2, 16 * at8 + 9, i % 8),
              2 * bits_at(p + 66, i / 16 * 4, 4) + 1};
    case DType::kIQ2_S:
      return {cpu::kIq2SGrid.points[p[2 + at8] + 256 * bits_at(p + 66, 2 * at8, 2)][i % 8] * sign(8 * 34 + i),
              2 * bits_at(p + 74, i / 16 * 4, 4) + 1};
    case DType::kIQ3_XXS:
      return {cpu::kIq3XxsGrid.points[p[2 + at4]][i % 4] * sign_of_seven(p + 66, 32 * sub + 7 * (at8 % 4), i % 8),
              2 * bits_at(p + 66, 32 * sub + 28, 4) + 1};
    case DType::kIQ3_S:
      return {cpu::kIq3SGrid.points[p[2 + at4] + 256 * bits_at(p + 66, at4, 1)][i % 4] * sign(8 * 74 + i),
              2 * bits_at(p + 106, 4 * sub, 4) + 1};
    case DType::kIQ1_S: {
      const int index = p[2 + at8] + 256 * bits_at(p + 34, 16 * sub + 3 * (at8 % 4), 3);
      return {8 * cpu::kIq1Grid.points[index][i % 8] + (bits_at(p + 34, 16 * sub + 15, 1) != 0 ? -1 : 1),
              2 * bits_at(p + 34, 16 * sub + 12, 3) + 1};
    }
    case DType::kIQ1_M: {
      const int index = p[at8] + 256 * bits_at(p + 32, 4 * at8, 3);
      return {8 * cpu::kIq1Grid.points[index][i % 8] + (bits_at(p + 32, 4 * at8 + 3, 1) != 0 ? -1 : 1),
              2 * bits_at(p + 48, i / 64 * 16 + i / 16 % 4 * 3, 3) + 1};
    }
    default: return {};
  }
}

inline Code code(DType dtype, const std::uint8_t* p, int i) {
  const int nibble_shift = i < 16 ? 0 : 4;     // 32-blocks
  const int part = i % 128 / 32;               // 256-blocks: two halves of four runs of 32
  const int two_bits = i / 128 * 32 + i % 32;  // the byte that holds an element's two bits
  const int pair_byte = i / 64 * 32 + i % 32;  // the byte that holds an element's nibble in Q4_K and Q5_K
  const int pair_shift = i % 64 < 32 ? 0 : 4;
  switch (dtype) {
    case DType::kQ4_0: return {bit_field(p, 2 + i % 16, nibble_shift, 4) - 8};
    case DType::kQ4_1: return {bit_field(p, 4 + i % 16, nibble_shift, 4)};
    case DType::kQ5_0: return {bit_field(p, 6 + i % 16, nibble_shift, 4) + 16 * bit_field(p, 2 + i / 8, i % 8, 1) - 16};
    case DType::kQ5_1: return {bit_field(p, 8 + i % 16, nibble_shift, 4) + 16 * bit_field(p, 4 + i / 8, i % 8, 1)};
    case DType::kQ8_0: return {p[2 + i] - (p[2 + i] >= 128 ? 256 : 0)};
    case DType::kIQ4_NL: return {kNonlinear[bit_field(p, 2 + i % 16, nibble_shift, 4)]};
    case DType::kMXFP4: return {twice_fp4(bit_field(p, 1 + i % 16, nibble_shift, 4))};
    case DType::kNVFP4: return {twice_fp4(bit_field(p, 4 + i / 16 * 8 + i % 8, i % 16 < 8 ? 0 : 4, 4))};
    case DType::kTQ2_0: return {bit_field(p, two_bits, 2 * part, 2) - 1};
    case DType::kTQ1_0:
      return {(i < 160   ? ternary(p[i % 32], i / 32)
               : i < 240 ? ternary(p[32 + i % 16], (i - 160) / 16)
                         : ternary(p[48 + i % 4], (i - 240) / 4)) -
              1};
    case DType::kQ2_K:
      return {bit_field(p, 16 + two_bits, 2 * part, 2), bit_field(p, i / 16, 0, 4), bit_field(p, i / 16, 4, 4)};
    case DType::kQ3_K: {
      const int j = i / 16;
      const int scale = bit_field(p, 96 + j % 8, j < 8 ? 0 : 4, 4) + 16 * bit_field(p, 104 + j % 4, j / 4 * 2, 2);
      return {bit_field(p, 32 + two_bits, 2 * part, 2) - (bit_field(p, i % 32, i / 32, 1) != 0 ? 0 : 4), scale - 32};
    }
    case DType::kQ4_K:
      return {bit_field(p, 16 + pair_byte, pair_shift, 4), k_scale(p + 4, i / 32, false), k_scale(p + 4, i / 32, true)};
    case DType::kQ5_K:
      return {bit_field(p, 48 + pair_byte, pair_shift, 4) + 16 * bit_field(p, 16 + i % 32, i / 32, 1),
              k_scale(p + 4, i / 32, false), k_scale(p + 4, i / 32, true)};
    case DType::kQ6_K: {
      const int low = bit_field(p, i / 128 * 64 + i % 64, i % 128 < 64 ? 0 : 4, 4);
      const int scale = p[192 + i / 16];
      return {low + 16 * bit_field(p, 128 + two_bits, 2 * part, 2) - 32, scale - (scale >= 128 ? 256 : 0)};
    }
    case DType::kIQ4_XS: {
      const int j = i / 32;
      const int high = (p[2] | p[3] << 8) >> (2 * j) & 3;
      const int index = bit_field(p, 8 + j * 16 + i % 16, i % 32 < 16 ? 0 : 4, 4);
      return {kNonlinear[index], bit_field(p, 4 + j / 2, j % 2 * 4, 4) + 16 * high - 32};
    }
    case DType::kFixed16: {
      const auto digit = [](int byte) { return byte >= 128 ? byte - 256 : byte; };
      return {256 * digit(p[i]) + digit(p[256 + i])};
    }
    default: return code_of_grid(dtype, p, i);
  }
}

// The scale of a block and what goes with its minimum (m for the 32-blocks, dmin for the 256-blocks; 0: none).
struct Scales {
  float d = 0;
  float min = 0;
  bool has_min = false;
};

inline Scales scales(DType dtype, const std::uint8_t* p, int i = 0) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K: return {f16(p), f16(p + 2), true};
    case DType::kQ2_K: return {f16(p + 80), f16(p + 82), true};
    case DType::kQ3_K: return {f16(p + 108)};
    case DType::kQ6_K: return {f16(p + 208)};
    case DType::kMXFP4: return {static_cast<float>(std::ldexp(1.0, p[0] - 128))};
    case DType::kNVFP4: {
      const int bits = p[i / 16], exponent = bits >> 3 & 15, mantissa = bits & 7;
      if (bits == 0x7F) return {};
      return {static_cast<float>(exponent == 0 ? std::ldexp(mantissa, -10) : std::ldexp(8 + mantissa, exponent - 11))};
    }
    case DType::kIQ2_XXS:
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
    case DType::kIQ1_S: return {f16(p) / 8};
    case DType::kIQ3_XXS: return {f16(p) / 4};
    case DType::kIQ1_M: {
      const std::uint8_t d[] = {static_cast<std::uint8_t>((p[49] >> 4) | (p[51] & 0xF0)),
                                static_cast<std::uint8_t>((p[53] >> 4) | (p[55] & 0xF0))};
      return {f16(d) / 8};
    }
    case DType::kTQ1_0: return {f16(p + 52)};
    case DType::kTQ2_0: return {f16(p + 64)};
    case DType::kFixed16: {
      const std::uint32_t bits = static_cast<std::uint32_t>(p[512] | p[513] << 8) << 16;
      float d;
      std::memcpy(&d, &bits, sizeof(d));
      return {d};
    }
    default: return {f16(p)};
  }
}

inline float value(DType dtype, const std::uint8_t* p, int i) {
  const Scales s = scales(dtype, p, i);
  const Code c = code(dtype, p, i);
  if (traits(dtype).block_elems < 256) {
    const float product = s.d * static_cast<float>(c.q);
    return s.has_min ? product + s.min : product;
  }
  const float scale = s.d * static_cast<float>(c.sc);
  const float product = scale * static_cast<float>(c.q);
  if (!s.has_min) return product;
  const float minimum = s.min * static_cast<float>(c.m);
  return product - minimum;
}

// Rule 3 of docs/arithmetic.md.
inline float dot_k(DType dtype, const std::uint8_t* row, const ActBlockQ8A256* x, int k) {
  float acc = 0;
  for (int g = 0; g < k / 256; ++g) {
    const std::uint8_t* p = row + static_cast<std::size_t>(g) * traits(dtype).block_bytes;
    std::int64_t isum = 0;
    std::int64_t msum = 0;
    for (int i = 0; i < 256; ++i) {
      const Code c = code(dtype, p, i);
      isum += static_cast<std::int64_t>(c.sc) * c.q * x[g].qs[i];
      msum += static_cast<std::int64_t>(c.m) * x[g].qs[i];
    }
    const Scales s = scales(dtype, p);
    float v = static_cast<float>(isum) * s.d;
    if (s.has_min) v = std::fma(static_cast<float>(isum), s.d, static_cast<float>(msum) * -s.min);
    acc = std::fma(v, x[g].d, acc);
  }
  return acc;
}

// Rule 4, of 16-bit codes.
inline float dot_fixed(const std::uint8_t* row, const ActBlockQ16A256* x, int k) {
  float acc = 0;
  for (int g = 0; g < k / 256; ++g) {
    const std::uint8_t* p = row + static_cast<std::size_t>(g) * sizeof(BlockFixed16);
    std::int64_t a = 0, b = 0;
    for (int i = 0; i < 256; ++i) {
      const std::int64_t w = code(DType::kFixed16, p, i).q;
      a += w * x[g].high[i];
      b += w * x[g].low[i];
    }
    const float v = std::fma(static_cast<float>(a), 256.0f, static_cast<float>(b)) * scales(DType::kFixed16, p).d;
    acc = std::fma(v, x[g].d, acc);
  }
  return acc;
}

inline float dot_32(DType dtype, const std::uint8_t* row, const ActBlockQ8A32* x, int k) {
  float acc = 0;
  float v = 0;
  for (int b = 0; b < k / 32; ++b) {
    const std::uint8_t* p = row + static_cast<std::size_t>(b) * traits(dtype).block_bytes;
    std::int64_t isum = 0;
    std::int64_t sum = 0;
    for (int i = 0; i < 32; ++i) {
      isum += static_cast<std::int64_t>(code(dtype, p, i).q) * x[b].qs[i];
      sum += x[b].qs[i];
    }
    const Scales s = scales(dtype, p);
    const float weighted = static_cast<float>(isum) * s.d;
    v = std::fma(weighted, x[b].d, v);
    if (s.has_min) {
      const float minimum = static_cast<float>(sum) * s.min;
      v = std::fma(minimum, x[b].d, v);
    }
    if (b % 8 == 7 || b + 1 == k / 32) {
      acc = acc + v;
      v = 0;
    }
  }
  return acc;
}

// Rule 3, of NVFP4: a scale per 16 values.
inline float dot_nvfp4(const std::uint8_t* row, const ActBlockQ8A32* x, int k) {
  float acc = 0;
  float v = 0;
  for (int first = 0; first < k; first += 16) {
    const std::uint8_t* p = row + first / 64 * 36;
    std::int64_t isum = 0;
    for (int i = first; i < first + 16; ++i)
      isum += static_cast<std::int64_t>(code(DType::kNVFP4, p, i % 64).q) * x[i / 32].qs[i % 32];
    const float weighted = static_cast<float>(isum) * scales(DType::kNVFP4, p, first % 64).d;
    v = std::fma(weighted, x[first / 32].d, v);
    if ((first + 16) % 256 == 0 || first + 16 == k) {
      acc = acc + v;
      v = 0;
    }
  }
  return acc;
}

// Rule 4.
inline float dot_float(const std::vector<float>& w, const float* x) {
  float acc = 0;
  for (std::size_t first = 0; first < w.size(); first += 256) {
    float lanes[16] = {};
    for (std::size_t k = first; k < w.size() && k < first + 256; ++k)
      lanes[k % 16] = std::fma(w[k], x[k], lanes[k % 16]);
    float eight[8], four[4];
    for (int l = 0; l < 8; ++l) eight[l] = lanes[l] + lanes[l + 8];
    for (int l = 0; l < 4; ++l) four[l] = eight[l] + eight[l + 4];
    const float even = four[0] + four[2];
    const float odd = four[1] + four[3];
    const float v = even + odd;
    acc = acc + v;
  }
  return acc;
}

}  // namespace zinc_rt::oracle

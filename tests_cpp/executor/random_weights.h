// Weights and activations for tests of products: blocks of random bytes of every format, rows with a few large values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "kernels/common/quant_blocks.h"

namespace zinc_rt {

// Of a product: rows of W, values of a row, rows of x.
struct Shape {
  std::uint32_t m, k, n;
};
inline void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.m << " x " << s.k << " by " << s.n;
}

// Codes from random digits; of high ones -128 would be too large. Scales from 2^-16 to 2^-9.
inline std::vector<std::byte> random_fixed16(std::vector<std::byte> bytes, std::mt19937& rng) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(BlockFixed16)) {
    auto& block = *reinterpret_cast<BlockFixed16*>(bytes.data() + at);
    for (auto& digit : block.high) digit = std::max(digit, std::int8_t{-127});
    block.d = static_cast<std::uint16_t>((111 + rng() % 8) << 7);
  }
  return bytes;
}

// Random bytes; numbers of 16 and 32 bits with an exponent of all ones would make NaN, which carries other bits on
// other devices, so that exponent is lowered wherever it may be read as one.
inline std::vector<std::byte> random_blocks(DType dtype, const Shape& s, std::mt19937& rng) {
  std::vector<std::byte> bytes(s.m * row_bytes(dtype, s.k));
  for (auto& byte : bytes) byte = static_cast<std::byte>(rng());
  const std::size_t block = traits(dtype).block_bytes;
  std::vector<std::size_t> scales;  // of f16 numbers in a block
  switch (dtype) {
    case DType::kF32: scales = {2}; break;  // the upper half of the number
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K: scales = {0, 2}; break;
    case DType::kQ2_K: scales = {80, 82}; break;
    case DType::kQ3_K: scales = {108}; break;
    case DType::kQ6_K: scales = {208}; break;
    case DType::kTQ1_0: scales = {52}; break;
    case DType::kTQ2_0: scales = {64}; break;
    case DType::kIQ1_M: scales = {54}; break;  // the highest bits of d are in the last word's
    case DType::kNVFP4:
    case DType::kMXFP4: break;
    case DType::kFixed16: return random_fixed16(std::move(bytes), rng);
    default: scales = {0};
  }
  for (std::size_t at = 0; at < bytes.size(); at += block)
    for (const std::size_t scale : scales) bytes[at + scale + 1] &= std::byte{0xBF};  // at most about 2
  if (dtype == DType::kMXFP4)
    for (std::size_t at = 0; at < bytes.size(); at += block) bytes[at] = static_cast<std::byte>(rng() % 140);
  return bytes;
}

inline std::vector<float> random_rows(const Shape& s, std::mt19937& rng) {
  std::normal_distribution<float> normal;
  std::vector<float> x(std::size_t{s.n} * s.k);
  for (auto& v : x) v = normal(rng);
  // Rare, since a block's other codes then are almost all 0.
  for (std::size_t i = 0; i < x.size(); i += 977) x[i] = i % 2 == 0 ? 300.0f : -300.0f;
  for (std::size_t i = 0; i < s.k && i < 32; ++i) x[i] = 0.0f;  // a block without a scale
  return x;
}

}  // namespace zinc_rt

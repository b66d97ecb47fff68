#include "model/fixed16.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "base/multiversion.h"
#include "kernels/common/digits.h"
#include "kernels/common/half.h"
#include "kernels/common/quant_blocks.h"
#include "model/weights.h"

namespace zinc_rt {
namespace {

constexpr std::uint64_t kGroup = 256;
constexpr std::uint64_t kSampledRows = 32;
constexpr double kLeastExact = 0.9;
constexpr std::uint16_t kNan = 0x7fc0;

ZRT_MULTIVERSION void widen_f16(const std::uint16_t* from, float* to) {
  for (std::uint64_t i = 0; i < kGroup; ++i) to[i] = f16_to_f32(from[i]);
}
ZRT_MULTIVERSION void widen_bf16(const std::uint16_t* from, float* to) {
  for (std::uint64_t i = 0; i < kGroup; ++i) to[i] = bf16_to_f32(from[i]);
}

// Returns the bits of the largest magnitude in a group, without the sign. Read as integers, such bits sort like the
// magnitudes, with infinities and NaN as the largest.
ZRT_MULTIVERSION std::uint32_t largest_bits(const float* w) {
  std::uint32_t largest = 0;
  for (std::uint64_t i = 0; i < kGroup; ++i) {
    const std::uint32_t bits = f32_bits(w[i]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

// Encodes one group into `block` and returns how many of its weights equal code * d, that is, were not rounded. d and
// scale = 1 / d are powers of two. The product of a weight and `scale` is exact, unless it is far below 1. The code is
// then 0 in any case.
ZRT_MULTIVERSION std::uint32_t encode(const float* w, float scale, float d, BlockFixed16* block) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds the sum to an integer in its low bits
  std::uint32_t n_exact = 0;
  for (std::uint64_t i = 0; i < kGroup; ++i) {
    const float shifted = w[i] * scale + kRound;
    const auto code = static_cast<std::int16_t>(f32_bits(shifted));
    block->high[i] = static_cast<std::int8_t>(digits::high_digit(code));
    block->low[i] = static_cast<std::int8_t>(code);
    n_exact += (shifted - kRound) * d == w[i];
  }
  return n_exact;
}

// Returns the exponent s of a group's scale 2^s. `largest` holds the bits of the group's largest magnitude. Subnormal
// weights count as 2^-126.
int exponent_of(std::uint32_t largest) {
  const int exponent = static_cast<int>(largest >> 23) - 127;
  const std::uint32_t most = f32_bits(digits::kMost) & 0x7fffffu;
  const int s = 14 - exponent - ((largest & 0x7fffffu) > most ? 1 : 0);
  return s > 126 ? 126 : s;  // so that 2^-s stays a normal number
}

std::uint64_t encode_group(const float* w, BlockFixed16* block) {
  const std::uint32_t largest = largest_bits(w);
  if (largest == 0 || largest >= 0x7f800000u) {
    *block = {};
    block->d = largest == 0 ? 0 : kNan;
    return largest == 0 ? kGroup : 0;
  }
  const int s = exponent_of(largest);
  block->d = static_cast<std::uint16_t>((127 - s) << 7);
  return encode(w, f32_from_bits(static_cast<std::uint32_t>(127 + s) << 23), bf16_to_f32(block->d), block);
}

}  // namespace

bool fits_fixed16(const Tensor& tensor) {
  if (tensor.n_dims < 2 || tensor.dims[0] == 0 || tensor.dims[0] % kGroup != 0) return false;
  if (tensor.stored != DType::kF16 && tensor.stored != DType::kBF16) return false;
  const std::uint64_t k = tensor.dims[0], n_rows = tensor.n_elements() / k, row = row_bytes(tensor.stored, k);
  const std::uint64_t n = n_rows < kSampledRows ? n_rows : kSampledRows;
  std::vector<std::byte> blocks(row_bytes(DType::kFixed16, k));
  std::uint64_t n_exact = 0;
  for (std::uint64_t i = 0; i < n; ++i)
    n_exact += to_fixed16(tensor.stored, tensor.data.data() + n_rows * i / n * row, k, blocks.data());
  return n > 0 && static_cast<double>(n_exact) >= kLeastExact * static_cast<double>(n * k);
}

unsigned conversion_threads() {
  return std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
}

std::uint64_t to_fixed16(DType from, const std::byte* weights, std::uint64_t k, std::byte* blocks) {
  auto* block = reinterpret_cast<BlockFixed16*>(blocks);
  const auto widen = from == DType::kF16 ? widen_f16 : widen_bf16;
  std::uint64_t n_exact = 0;
  for (std::uint64_t g = 0; g < k / kGroup; ++g) {
    float w[kGroup];
    widen(reinterpret_cast<const std::uint16_t*>(weights) + g * kGroup, w);
    n_exact += encode_group(w, block + g);
  }
  return n_exact;
}

}  // namespace zinc_rt

#include "model/mlc/repack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/common/half.h"

namespace zinc_rt::mlc {
namespace {

static_assert(std::endian::native == std::endian::little, "words are copied as they lie");

using Nibbles = std::array<std::uint8_t, kGroup>;
using Words = std::array<std::uint32_t, 4>;
constexpr std::uint16_t kSign = 0x8000;

std::uint16_t negated(const std::byte* half) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, half, sizeof(bits));
  return bits ^ kSign;
}

Words pack(const Nibbles& n) {
  Words words{};
  for (std::size_t k = 0; k < kGroup; ++k) words[k / 8] |= std::uint32_t{n[k]} << 4 * (k % 8);
  return words;
}

}  // namespace

void q4f16_to_q4_0(const std::byte* words, const std::byte* scales, std::uint64_t n, std::byte* blocks) {
  for (std::uint64_t g = 0; g < n; ++g, words += kGroupWordBytes, scales += kGroupScaleBytes) {
    std::array<std::uint8_t, kGroupWordBytes> in;
    std::memcpy(in.data(), words, sizeof(in));
    // The words are little endian, so byte k / 2 holds elements k and k + 1. Flipping all 4 bits of n computes 15 - n.
    std::array<std::uint8_t, 16> out;
    for (std::size_t k = 0; k < 16; ++k) {
      const unsigned low = in[k / 2] >> 4 * (k % 2) & 15, high = in[8 + k / 2] >> 4 * (k % 2) & 15;
      out[k] = static_cast<std::uint8_t>(~(low | high << 4));
    }
    const std::uint16_t d = negated(scales);
    std::memcpy(blocks, &d, sizeof(d));
    std::memcpy(blocks + sizeof(d), out.data(), sizeof(out));
    blocks += kQ4_0BlockBytes;
  }
}

void q4_0_to_q4f16(const std::byte* blocks, std::uint64_t n, std::byte* words, std::byte* scales) {
  for (std::uint64_t g = 0; g < n; ++g, blocks += kQ4_0BlockBytes) {
    std::array<std::uint8_t, 16> in;
    std::memcpy(in.data(), blocks + 2, sizeof(in));
    Nibbles nibbles;
    for (std::size_t k = 0; k < 16; ++k) {
      nibbles[k] = ~in[k] & 15;
      nibbles[k + 16] = static_cast<std::uint8_t>(~in[k]) >> 4;
    }
    const Words packed = pack(nibbles);
    const std::uint16_t scale = negated(blocks);
    std::memcpy(words, packed.data(), sizeof(packed));
    std::memcpy(scales, &scale, sizeof(scale));
    words += kGroupWordBytes;
    scales += kGroupScaleBytes;
  }
}

bool quantize_q4f16(std::span<const float> x, std::byte* words, std::byte* scales) {
  constexpr float kMiddle = 7;
  bool is_finite = true;
  for (; x.size() >= kGroup; x = x.subspan(kGroup)) {
    float most = 0;
    for (const float value : x.first(kGroup)) {
      if (!std::isfinite(value)) is_finite = false;
      most = std::max(most, std::fabs(value));
    }
    std::uint16_t half = f32_to_f16(most / kMiddle);
    const float scale = f16_to_f32(half);
    Nibbles nibbles;
    if (scale > 0 && std::isfinite(scale)) {
      for (std::size_t k = 0; k < kGroup; ++k)
        nibbles[k] = static_cast<std::uint8_t>(
            std::clamp(std::floor((std::isfinite(x[k]) ? x[k] : 0) / scale + kMiddle + 0.5f), 0.0f, 2 * kMiddle));
    } else {
      if (scale != 0) is_finite = false;
      half = 0;
      nibbles.fill(static_cast<std::uint8_t>(kMiddle));
    }
    const Words packed = pack(nibbles);
    std::memcpy(words, packed.data(), sizeof(packed));
    std::memcpy(scales, &half, sizeof(half));
    words += kGroupWordBytes;
    scales += kGroupScaleBytes;
  }
  return is_finite;
}

}  // namespace zinc_rt::mlc

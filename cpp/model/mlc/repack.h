// Converts groups of 32 weights between MLC's q4f16 and GGUF's Q4_0 blocks, without any loss.
//
// q4f16: four u32, element k in bits 4 (k mod 8) of word k / 8, and an f16 scale s: w = (n - 7) * s.
// Q4_0: an f16 d, then 16 bytes, element k in the low half of byte k, element k + 16 in the high half: w = (n' - 8) *
// d. With n' = 15 - n and d = -s both are the same number, bit for bit, for all 16 values of n, so neither direction
// loses anything. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace zinc_rt::mlc {

inline constexpr std::uint64_t kGroup = 32;           // elements
inline constexpr std::uint64_t kGroupWordBytes = 16;  // of q_weight
inline constexpr std::uint64_t kGroupScaleBytes = 2;  // of q_scale
inline constexpr std::uint64_t kQ4_0BlockBytes = 18;

// n groups each: words has 16 n bytes, scales 2 n, blocks 18 n. They need no alignment.
void q4f16_to_q4_0(const std::byte* words, const std::byte* scales, std::uint64_t n, std::byte* blocks);
void q4_0_to_q4f16(const std::byte* blocks, std::uint64_t n, std::byte* words, std::byte* scales);

// Quantizes x, a multiple of 32 values, as MLC does: s = max|x| / 7, n = x / s + 7 rounded to the nearest, 0 to 14. A
// group is stored as zeros if its scale is not finite or is 0 as f16. Returns false if a scale was not finite.
bool quantize_q4f16(std::span<const float> x, std::byte* words, std::byte* scales);

}  // namespace zinc_rt::mlc

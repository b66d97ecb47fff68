// Converts groups of 32 weights between MLC's q4f16 and GGUF's Q4_0 blocks, without any loss.
//
// A q4f16 group is four u32 and an f16 scale s. Element k is in bits 4 (k mod 8) of word k / 8. w = (n - 7) * s. A Q4_0
// block is an f16 d and 16 bytes. Element k is in the low half of byte k, element k + 16 in the high half. w = (n' - 8)
// * d. With n' = 15 - n and d = -s both formulas give the same number, bit for bit, for all 16 values of n. So neither
// direction loses anything.
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace zinc_rt::mlc {

inline constexpr std::uint64_t kGroup = 32;           // number of elements per group
inline constexpr std::uint64_t kGroupWordBytes = 16;  // bytes of q_weight per group
inline constexpr std::uint64_t kGroupScaleBytes = 2;  // bytes of q_scale per group
inline constexpr std::uint64_t kQ4_0BlockBytes = 18;

// Convert n groups from q4f16 to Q4_0 and back. `words` holds 16 n bytes, `scales` 2 n bytes and `blocks` 18 n bytes.
// None of these pointers needs an alignment.
void q4f16_to_q4_0(const std::byte* words, const std::byte* scales, std::uint64_t n, std::byte* blocks);
void q4_0_to_q4f16(const std::byte* blocks, std::uint64_t n, std::byte* words, std::byte* scales);

// Quantizes x, whose size is a multiple of 32, as MLC does: s = max|x| / 7, and n = x / s + 7 rounded to the nearest
// integer, 0 to 14. A group is stored as zeros if its scale is not finite or becomes 0 in f16. Returns false if the
// scale of any group was not finite.
bool quantize_q4f16(std::span<const float> x, std::byte* words, std::byte* scales);

}  // namespace zinc_rt::mlc

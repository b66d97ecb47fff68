// The layout of KV caches of 16-bit integers, type i16 (docs/arithmetic.md, rule 5). A token's head of K or V is
// head_dim codes with one scale d. A value is code * d, where |code| <= 32,639 and d is a bf16, so the product is exact
// in f32. Products split a code into two digits (kernels/common/digits.h).
//
// A page part is the keys, or the values, of one layer and the 16 tokens of a page. It has all codes first, then all
// scales. A word holds two codes:
//   keys    codes [kv head][head_dim / 2 words][16 tokens], then scales [kv head][16 tokens]. Word w of a token has its
//           values 2 w and 2 w + 1.
//   values  codes [kv head][8 pairs of tokens][head_dim words], then scales [kv head][16 tokens]. Word i of pair t has
//           value i of the tokens 2 t and 2 t + 1.
// So 16 neighbouring words are of 16 keys, or of 16 values of two tokens. A vector can multiply a pair of codes in each
// word and needs no sum over its lanes.
// A head takes head_dim + 1 elements of a token's row: its codes and d. head_dim is at most 512; up to there sums of
// products of codes with digits fit in 32 bits.
// Shared by host and device (C++17, POD).
#pragma once

#include <stdint.h>

#include "kernels/common/digits.h"
#include "kernels/common/kv_page.h"

namespace zinc_rt::kv_integer {

using zinc_rt::kPageTokens;
constexpr uint32_t kMaxHead = 512;
constexpr uint16_t kNanScale = 0x7fc0;

// Return where the codes of `head`, and its scales, begin in a page part with n_heads heads, in bytes.
ZRT_DIGITS_FN uint64_t codes_at(uint32_t head, uint32_t head_dim) {
  return static_cast<uint64_t>(head) * kPageTokens * head_dim * 2;
}
ZRT_DIGITS_FN uint64_t scales_at(uint32_t head, uint32_t n_heads, uint32_t head_dim) {
  return codes_at(n_heads, head_dim) + static_cast<uint64_t>(head) * kPageTokens * 2;
}
// key_at() and value_at() return where value i of a token (0 to 15) lies among the codes of one head of K, or of V, in
// bytes.
ZRT_DIGITS_FN uint64_t key_at(uint32_t token, uint32_t i) {
  return (static_cast<uint64_t>(i / 2) * kPageTokens + token) * 4 + i % 2 * 2;
}
ZRT_DIGITS_FN uint64_t value_at(uint32_t token, uint32_t i, uint32_t head_dim) {
  return (static_cast<uint64_t>(token / 2) * head_dim + i) * 4 + token % 2 * 2;
}

}  // namespace zinc_rt::kv_integer

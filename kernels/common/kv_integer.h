// Cells of the KV cache that hold integers of 16 bits: i16, with one scale d a token and kv head (docs/arithmetic.md, rule
// 5). A value is code * d, where |code| <= 32,639 and d is a bf16, so that the product is exact in f32. A code is two
// digits (kernels/common/digits.h).
//
// A page part holds 16 tokens of one layer's keys, or of its values, as a whole; a word has the codes of two values:
//   keys    codes [kv head][head_dim / 2 words][16 tokens], then d [kv head][16 tokens]; word w of a token has values 2 w
//           and 2 w + 1
//   values  codes [kv head][8 pairs of tokens][head_dim words], then d [kv head][16 tokens]; word i of pair t has value i
//           of tokens 2 t and 2 t + 1
// So a vector of words is of 16 keys, or of 16 values of two tokens, and sums of products of pairs need no fold.
// A head takes head_dim + 1 elements of a token's row: its codes and d. head_dim is at most 512, for which sums of
// products with digits stay within 32 bits.
// Shared by host and device (C++17, POD).
#pragma once

#include <stdint.h>

#include "kernels/common/digits.h"
#include "kernels/common/kv_page.h"

namespace zinc_rt::kv_integer {

using zinc_rt::kPageTokens;
constexpr uint32_t kMaxHead = 512;
constexpr uint16_t kNanScale = 0x7fc0;

// Where a page part of n_heads heads has the codes of `head`, and its scales: bytes.
ZRT_DIGITS_FN uint64_t codes_at(uint32_t head, uint32_t head_dim) {
  return static_cast<uint64_t>(head) * kPageTokens * head_dim * 2;
}
ZRT_DIGITS_FN uint64_t scales_at(uint32_t head, uint32_t n_heads, uint32_t head_dim) {
  return codes_at(n_heads, head_dim) + static_cast<uint64_t>(head) * kPageTokens * 2;
}
// Into the codes of a head: value i of a token.
ZRT_DIGITS_FN uint64_t key_at(uint32_t token, uint32_t i) {
  return (static_cast<uint64_t>(i / 2) * kPageTokens + token) * 4 + i % 2 * 2;
}
ZRT_DIGITS_FN uint64_t value_at(uint32_t token, uint32_t i, uint32_t head_dim) {
  return (static_cast<uint64_t>(token / 2) * head_dim + i) * 4 + token % 2 * 2;
}

}  // namespace zinc_rt::kv_integer

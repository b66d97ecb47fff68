#include "kernels/cpu/quant/integer_kv.h"

#include <cmath>
#include <cstring>

#include "base/multiversion.h"
#include "kernels/common/exact_math.h"
#include "kernels/common/half.h"
#include "kernels/cpu/quant/largest.h"

namespace zinc_rt::cpu {
namespace {

using digits::kMost;
using kv_integer::kPageTokens;

constexpr float kLeast = 0x1p-100f;  // if a head's largest magnitude is below this, all its codes are 0

ZRT_MULTIVERSION Largest largest_of_head(const float* x, std::uint32_t n) {
  return largest_of(x, n);
}

ZRT_MULTIVERSION void encode_by(const float* x, std::uint32_t n, float inverse, std::int16_t* codes) {
  for (std::uint32_t i = 0; i < n; ++i) {
    const float code = exact::round_int(x[i] * inverse);
    codes[i] = static_cast<std::int16_t>(code > kMost ? kMost : code < -kMost ? -kMost : code);
  }
}

std::uint16_t encode(const float* x, std::uint32_t n, std::int16_t* codes) {
  const Largest largest = largest_of_head(x, n);
  const bool is_usable = largest.is_finite && largest.magnitude >= kLeast;
  std::uint16_t d = largest.is_finite ? 0 : kv_integer::kNanScale;
  if (is_usable)
    d = static_cast<std::uint16_t>((__builtin_bit_cast(std::uint32_t, largest.magnitude * (1.0f / kMost)) + 0xffff) >>
                                   16);
  if (is_usable)
    encode_by(x, n, exact::rcp(bf16_to_f32(d)), codes);
  else
    std::memset(codes, 0, n * sizeof(*codes));
  return d;
}

// Computes the codes of a row head by head, calls put(head, codes) for each, and writes the scales.
template <class Put>
void write_row(const float* row, void* page, std::uint32_t token, const IntegerPart& part, const Put& put) {
  auto* base = static_cast<std::byte*>(page);
  for (std::uint32_t head = 0; head < part.n_heads; ++head, row += part.head_dim) {
    std::int16_t codes[kv_integer::kMaxHead];
    const std::uint16_t d = encode(row, part.head_dim, codes);
    put(base + kv_integer::codes_at(head, part.head_dim), codes);
    std::memcpy(base + kv_integer::scales_at(head, part.n_heads, part.head_dim) + token * sizeof(d), &d, sizeof(d));
  }
}

ZRT_MULTIVERSION void digits_by(const float* x, std::uint32_t n, float inverse, std::int16_t* high, std::int16_t* low) {
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto code = static_cast<std::int32_t>(exact::round_int(x[i] * inverse));
    high[i] = static_cast<std::int16_t>(digits::high_digit(code));
    low[i] = static_cast<std::int16_t>(digits::low_digit(code));
  }
}

// Adds products of two digits with two codes of each token. The sums wrap around, because a cell that was not written
// may hold any codes.
ZRT_MULTIVERSION void add_key_word(const std::int16_t* high, const std::int16_t* low, const std::int16_t* codes,
                                   std::uint32_t* high_sums, std::uint32_t* low_sums) {
  for (std::uint32_t j = 0; j < kPageTokens; ++j) {
    high_sums[j] += static_cast<std::uint32_t>(codes[2 * j] * high[0] + codes[2 * j + 1] * high[1]);
    low_sums[j] += static_cast<std::uint32_t>(codes[2 * j] * low[0] + codes[2 * j + 1] * low[1]);
  }
}
ZRT_MULTIVERSION void add_value_words(const std::int16_t* high, const std::int16_t* low, const std::int16_t* codes,
                                      std::uint32_t n, std::int32_t* high_sums, std::int32_t* low_sums) {
  for (std::uint32_t i = 0; i < n; ++i) {
    high_sums[i] += codes[2 * i] * high[0] + codes[2 * i + 1] * high[1];
    low_sums[i] += codes[2 * i] * low[0] + codes[2 * i + 1] * low[1];
  }
}

const std::int16_t* codes_of(const void* page, std::uint32_t head, const IntegerPart& part) {
  return reinterpret_cast<const std::int16_t*>(static_cast<const std::byte*>(page) +
                                               kv_integer::codes_at(head, part.head_dim));
}

float joined(std::int32_t high, std::int32_t low) {
  return __builtin_fmaf(static_cast<float>(high), 256.0f, static_cast<float>(low));
}

}  // namespace

void write_integer_keys(const float* row, void* page, std::uint32_t token, const IntegerPart& part) {
  write_row(row, page, token, part, [&](std::byte* to, const std::int16_t* codes) {
    for (std::uint32_t i = 0; i < part.head_dim; i += 2) std::memcpy(to + kv_integer::key_at(token, i), codes + i, 4);
  });
}

void write_integer_values(const float* row, void* page, std::uint32_t token, const IntegerPart& part) {
  write_row(row, page, token, part, [&](std::byte* to, const std::int16_t* codes) {
    for (std::uint32_t i = 0; i < part.head_dim; ++i)
      std::memcpy(to + kv_integer::value_at(token, i, part.head_dim), codes + i, 2);
  });
}

float quantize_to_digits(const float* x, std::uint32_t n, std::int16_t* high, std::int16_t* low) {
  const Largest largest = largest_of_head(x, n);
  const float amax = largest.magnitude;
  if (!largest.is_finite || amax > 0x1p120f) {
    std::memset(high, 0, n * sizeof(*high));
    std::memset(low, 0, n * sizeof(*low));
    return NAN;
  }
  digits_by(x, n, amax < kLeast ? 0.0f : exact::div(kMost, amax), high, low);
  return amax < kLeast ? 0.0f : exact::div(amax, kMost);
}

void integer_dots(const IntegerQuery& q, const void* page, std::uint32_t head, const IntegerPart& part, float* dots) {
  std::uint32_t high[kPageTokens] = {}, low[kPageTokens] = {};
  const std::int16_t* codes = codes_of(page, head, part);
  for (std::uint32_t i = 0; i < part.head_dim; i += 2, codes += 2 * kPageTokens)
    add_key_word(q.high + i, q.low + i, codes, high, low);
  float d[kPageTokens];
  integer_scales(page, head, part, d);
  for (std::uint32_t j = 0; j < kPageTokens; ++j)
    dots[j] = joined(static_cast<std::int32_t>(high[j]), static_cast<std::int32_t>(low[j])) * d[j];
}

void integer_scales(const void* page, std::uint32_t head, const IntegerPart& part, float* d) {
  std::uint16_t stored[kPageTokens];
  std::memcpy(stored, static_cast<const std::byte*>(page) + kv_integer::scales_at(head, part.n_heads, part.head_dim),
              sizeof(stored));
  for (std::uint32_t j = 0; j < kPageTokens; ++j) d[j] = bf16_to_f32(stored[j]);
}

void add_integer_values(const std::int16_t* high, const std::int16_t* low, const void* page, std::uint32_t head,
                        const IntegerPart& part, IntegerSums& sums) {
  const std::int16_t* codes = codes_of(page, head, part);
  for (std::uint32_t j = 0; j < kPageTokens; j += 2, codes += 2 * part.head_dim)
    add_value_words(high + j, low + j, codes, part.head_dim, sums.high, sums.low);
}

void join_sums(const IntegerSums& sums, std::uint32_t n, float d, float* o) {
  for (std::uint32_t i = 0; i < n; ++i) o[i] = joined(sums.high[i], sums.low[i]) * d;
}

}  // namespace zinc_rt::cpu

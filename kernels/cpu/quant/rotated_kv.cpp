#include "kernels/cpu/quant/rotated_kv.h"

#include <cmath>
#include <cstring>

#include "base/multiversion.h"
#include "kernels/common/half.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/quant/largest.h"
#include "kernels/cpu/quant/quant.h"

namespace zinc_rt::cpu {
namespace {

using kv::kBlock;
using kv::kPageTokens;

constexpr std::uint32_t kValueBytes = kBlock / 2;  // bytes of the codes of one block of values, which are always r4
constexpr std::uint16_t kHalfNan = 0x7e00u, kHalfInf = 0x7c00u;

ZRT_MULTIVERSION Largest largest_of_block(const float* x) {
  return largest_of(x, kBlock);
}

ZRT_MULTIVERSION void codes_by(const float* x, float inverse, std::int8_t* codes) {
  for (std::uint32_t i = 0; i < kBlock; ++i) {
    const float q = exact::round_int(x[i] * inverse);
    codes[i] = static_cast<std::int8_t>(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q);
  }
}

std::uint16_t encode_r8(const float* x, std::int8_t* codes) {
  const Largest largest = largest_of_block(x);
  std::uint16_t d = f32_to_f16(largest.magnitude * (1.0f / 127.0f));
  if (!largest.is_finite || d == kHalfInf) d = kHalfNan;
  if (d != kHalfNan && d != 0)
    codes_by(x, exact::rcp(f16_to_f32(d)), codes);
  else
    std::memset(codes, 0, kBlock);
  return d;
}

// Finds the codes nearest to z * factor, and their table values. Returns the sum of the squares of the table values.
ZRT_MULTIVERSION std::int32_t nearest_codes(const float* z, float factor, std::uint8_t* codes, float* of_table) {
  for (std::uint32_t i = 0; i < kBlock; ++i) {
    const float y = z[i] * factor;
    std::int32_t code = 0;
    for (const float middle : kv::kMiddles) code += middle < y ? 1 : 0;
    codes[i] = static_cast<std::uint8_t>(code);
  }
  std::int32_t squares = 0;
  for (std::uint32_t i = 0; i < kBlock; ++i) {
    const std::int32_t value = kv::kTable[codes[i]];
    of_table[i] = static_cast<float>(value);
    squares += value * value;
  }
  return squares;
}

std::uint16_t encode_r4(const float* x, std::uint8_t* codes) {
  const QuantFormat& f32 = *quant_format(DType::kF32);
  const Largest largest = largest_of_block(x);
  std::memset(codes, 0, kBlock);
  if (!largest.is_finite || largest.magnitude > 0x1p100f) return kHalfNan;
  if (largest.magnitude < 0x1p-100f) return 0;
  const float inverse = exact::div(kv::kMost, largest.magnitude);
  float z[kBlock];
  for (std::uint32_t i = 0; i < kBlock; ++i) z[i] = x[i] * inverse;
  float best_gain = -1.0f, best_factor = 0.0f;
  for (const float factor : kv::kFactors) {
    std::uint8_t tried[kBlock];
    float of_table[kBlock];
    const auto squares = static_cast<float>(nearest_codes(z, factor, tried, of_table));
    const float t = f32.dot(z, of_table, kBlock), gain = exact::div(t * t, squares);
    if (!(gain > best_gain)) continue;
    best_gain = gain;
    best_factor = exact::div(t, squares);
    std::memcpy(codes, tried, kBlock);
  }
  const std::uint16_t d = f32_to_f16(best_factor * (largest.magnitude * (kv::kStoredScale / kv::kMost)));
  return d == kHalfInf ? kHalfNan : d;
}

// Writes a block's packed codes (64 bytes for r8, 32 for r4) and returns its scale.
std::uint16_t encode(DType type, const float* x, std::byte* packed) {
  if (type == DType::kR8) {
    std::int8_t codes[kBlock];
    const std::uint16_t d = encode_r8(x, codes);
    std::memcpy(packed, codes, kBlock);
    return d;
  }
  std::uint8_t codes[kBlock];
  const std::uint16_t d = encode_r4(x, codes);
  for (std::uint32_t i = 0; i < kBlock / 2; ++i)
    packed[i] = static_cast<std::byte>(codes[i] | codes[i + kBlock / 2] << 4);
  return d;
}

ZRT_MULTIVERSION void rotate_head(const float* x, float* y, std::uint32_t n) {
  kv::rotate(x, y, n);
}

ZRT_MULTIVERSION void rotate_back_head(float* y, std::uint32_t n) {
  kv::rotate_back(y, n);
}

// Encodes all blocks of a row and calls write(head, block, packed codes, scale) for each.
template <class Write>
void encode_row(const float* row, const RotatedPart& part, const Write& write) {
  for (std::uint32_t head = 0; head < part.n_heads; ++head, row += part.head_dim) {
    float x[kv::kMaxHead];
    rotate_head(row, x, part.head_dim);
    for (std::uint32_t block = 0; block < part.head_dim / kBlock; ++block) {
      std::byte packed[kBlock];
      const std::uint16_t d = encode(part.type, x + block * kBlock, packed);
      write(head, block, packed, d);
    }
  }
}

ZRT_MULTIVERSION void add_dots_r8(const std::int8_t* q, const std::int8_t* codes, std::int32_t* sums) {
  for (std::uint32_t w = 0; w < kBlock / 4; ++w, q += 4, codes += 4 * kPageTokens)
    for (std::uint32_t j = 0; j < kPageTokens; ++j)
      for (std::uint32_t b = 0; b < 4; ++b) sums[j] += q[b] * codes[4 * j + b];
}
ZRT_MULTIVERSION void add_dots_r4(const std::int8_t* q, const std::uint8_t* codes, std::int32_t* sums) {
  for (std::uint32_t w = 0; w < kBlock / 8; ++w, q += 4, codes += 4 * kPageTokens)
    for (std::uint32_t j = 0; j < kPageTokens; ++j)
      for (std::uint32_t b = 0; b < 4; ++b)
        sums[j] += q[b] * kv::kTable[codes[4 * j + b] & 15] + q[kBlock / 2 + b] * kv::kTable[codes[4 * j + b] >> 4];
}
ZRT_MULTIVERSION void add_dots_of_block(const std::int32_t* sums, const std::uint16_t* d, float d_unit, float d_q,
                                        float* dots) {
  for (std::uint32_t j = 0; j < kPageTokens; ++j)
    dots[j] = __builtin_fmaf(static_cast<float>(sums[j]) * (f16_to_f32(d[j]) * d_unit), d_q, dots[j]);
}
ZRT_MULTIVERSION void add_value_block(std::int32_t high, std::int32_t low, const std::uint8_t* codes,
                                      IntegerSums& sums) {
  std::int32_t of_table[kBlock];
  for (std::uint32_t i = 0; i < kBlock / 2; ++i) {
    of_table[i] = kv::kTable[codes[i] & 15];
    of_table[i + kBlock / 2] = kv::kTable[codes[i] >> 4];
  }
  for (std::uint32_t i = 0; i < kBlock; ++i) {
    sums.high[i] += high * of_table[i];
    sums.low[i] += low * of_table[i];
  }
}

float unit_of(DType type) {
  return type == DType::kR8 ? 1.0f : 1.0f / kv::kStoredScale;
}

}  // namespace

void write_rotated_keys(const float* row, void* page, std::uint32_t token, const RotatedPart& part) {
  auto* base = static_cast<std::byte*>(page);
  const bool is_r8 = part.type == DType::kR8;
  const std::uint32_t bytes = kv::code_bytes(is_r8, kBlock);
  encode_row(row, part, [&](std::uint32_t head, std::uint32_t block, const std::byte* packed, std::uint16_t d) {
    std::byte* codes = base + kv::codes_at(is_r8, head, part.head_dim) + block * bytes * kPageTokens;
    for (std::uint32_t w = 0; w < bytes / 4; ++w)
      std::memcpy(codes + (w * kPageTokens + token) * 4, packed + 4 * std::uint64_t{w}, 4);
    std::memcpy(base + kv::scales_at(is_r8, head, part.n_heads, part.head_dim) + (block * kPageTokens + token) * 2, &d,
                2);
  });
}

void write_rotated_values(const float* row, void* page, std::uint32_t token, const RotatedPart& part) {
  auto* base = static_cast<std::byte*>(page);
  const std::uint32_t n_blocks = part.head_dim / kBlock;
  encode_row(row, part, [&](std::uint32_t head, std::uint32_t block, const std::byte* packed, std::uint16_t d) {
    std::memcpy(base + kv::codes_at(false, head, part.head_dim) + (token * n_blocks + block) * kValueBytes, packed,
                kValueBytes);
    std::memcpy(base + kv::scales_at(false, head, part.n_heads, part.head_dim) + (token * n_blocks + block) * 2, &d, 2);
  });
}

void rotate_query(const float* q, std::uint32_t head_dim, RotatedQuery& out) {
  float x[kv::kMaxHead];
  rotate_head(q, x, head_dim);
  for (std::uint32_t block = 0; block < head_dim / kBlock; ++block)
    out.d[block] = quantize_block(x + block * kBlock, out.q + block * kBlock, kBlock);
}

void rotate_output_back(float* y, std::uint32_t head_dim) {
  rotate_back_head(y, head_dim);
}

void rotated_dots(const RotatedQuery& q, const void* page, std::uint32_t head, const RotatedPart& part, float* dots) {
  const auto* base = static_cast<const std::byte*>(page);
  const bool is_r8 = part.type == DType::kR8;
  const std::byte* codes = base + kv::codes_at(is_r8, head, part.head_dim);
  const std::byte* scales = base + kv::scales_at(is_r8, head, part.n_heads, part.head_dim);
  for (std::uint32_t j = 0; j < kPageTokens; ++j) dots[j] = 0.0f;
  for (std::uint32_t block = 0; block < part.head_dim / kBlock; ++block) {
    std::int32_t sums[kPageTokens] = {};
    if (is_r8)
      add_dots_r8(q.q + block * kBlock, reinterpret_cast<const std::int8_t*>(codes), sums);
    else
      add_dots_r4(q.q + block * kBlock, reinterpret_cast<const std::uint8_t*>(codes), sums);
    std::uint16_t d[kPageTokens];
    std::memcpy(d, scales + block * sizeof(d), sizeof(d));
    add_dots_of_block(sums, d, unit_of(part.type), q.d[block], dots);
    codes += std::uint64_t{kPageTokens} * kv::code_bytes(is_r8, kBlock);
  }
}

void rotated_value_scales(const void* page, const RotatedBlock& of, float* d) {
  const auto& part = of.part;
  const auto* scales =
      static_cast<const std::byte*>(page) + kv::scales_at(false, of.head, part.n_heads, part.head_dim) + of.block * 2;
  for (std::uint32_t j = 0; j < kPageTokens; ++j) {
    std::uint16_t stored;
    std::memcpy(&stored, scales + std::uint64_t{j} * (part.head_dim / kBlock) * 2, 2);
    d[j] = f16_to_f32(stored) * unit_of(DType::kR4);
  }
}

void add_rotated_values(const std::int16_t* high, const std::int16_t* low, const void* page, const RotatedBlock& of,
                        IntegerSums& sums) {
  const std::uint32_t head_dim = of.part.head_dim;
  const auto* codes =
      static_cast<const std::uint8_t*>(page) + kv::codes_at(false, of.head, head_dim) + of.block * kValueBytes;
  for (std::uint32_t j = 0; j < kPageTokens; ++j, codes += head_dim / 2) add_value_block(high[j], low[j], codes, sums);
}

}  // namespace zinc_rt::cpu

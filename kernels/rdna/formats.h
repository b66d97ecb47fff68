// Reads weights as they lie in a file (kernels/common/quant_blocks.h). Each format is a struct with these members:
//   Block, kBlock         the block, and how many values it has: 32 or 256
//   X                     the block of quantized x by which the weights are multiplied (kernels/common/act_q8.h)
//   codes4(block, i)      codes of the values i..i+3 of a block, as signed bytes of a word; i is a multiple of 4
//   d(block)              the scale of the block
//   kMin                  whether values have a minimum
//   m(block)              with kMin: in blocks of 32 the minimum, in blocks of 256 the scale of the minimums
//   kSub                  blocks of 256: how many values share a sub-scale and a minimum, 16 or 32
//   sc(block, j)          blocks of 256: the integer sub-scale of the j-th kSub values
//   minimum(block, j)     blocks of 256 with kMin: the integer minimum of the j-th kSub values
//   minimums4(block, i)   blocks of 256 with kMin: the minimums of the i-th to the (i+3)-th 16 values, as bytes; i is a
//                         multiple of 4
// A value is d * code + m in blocks of 32, and d * sc * code - m * minimum in blocks of 256; without kMin the second
// term is left out. Fixed16 and the float formats, below, have fewer members.
#pragma once

#include "kernels/rdna/device.h"

namespace zinc_rt::rdna {

// Returns the four bytes at `at`, which need not be aligned.
ZRT_DEVICE uint32_t word(const void* at) {
  uint32_t value;
  memcpy(&value, at, sizeof(value));
  return value;
}
// Converts an f16 to float. The device's own conversion is exact, so its bits are those of kernels/common/half.h.
ZRT_DEVICE float widened(uint16_t half) {
  return (float)__builtin_bit_cast(_Float16, half);
}
// Returns each byte of `bytes` minus `offset`, as signed bytes. REQUIRES: bytes are below 128 and offset is at most
// 128, so that no byte borrows from the next one.
ZRT_DEVICE uint32_t lowered(uint32_t bytes, uint32_t offset) {
  return ((bytes | 0x80808080u) - offset * 0x01010101u) ^ 0x80808080u;
}
// Returns bits 0..3 of `bits`, one in each byte of a word.
ZRT_DEVICE uint32_t spread4(uint32_t bits) {
  return (bits & 1) | (bits & 2) << 7 | (bits & 4) << 14 | (bits & 8) << 21;
}
// Returns the nibbles of the values i..i+3, one in each byte of a word. Byte j of qs has value j in its low nibble and
// value j + half in its high one.
ZRT_DEVICE uint32_t nibbles(const uint8_t* qs, uint32_t i, uint32_t half) {
  return word(qs + i % half) >> (i / half * 4) & 0x0F0F0F0Fu;
}
// Returns table[index] for each byte of `indices`, all below 16. The 16 bytes of the table are given as four words.
ZRT_DEVICE uint32_t looked_up(const uint32_t (&table)[4], uint32_t indices) {
  const uint32_t low = indices & 0x07070707u, upper = (indices >> 3 & 0x01010101u) * 255u;
  const uint32_t a = __builtin_amdgcn_perm(table[1], table[0], low), b = __builtin_amdgcn_perm(table[3], table[2], low);
  return (a & ~upper) | (b & upper);
}
// Returns byte i of a word, as a signed number.
ZRT_DEVICE int byte_of(uint32_t bytes, int i) {
  return (int8_t)(bytes >> (8 * i));
}

// What formats with blocks of 32 values have in common; Block32Min is for those with a minimum.
struct Block32 {  // for formats without a minimum
  using X = ActBlockQ8A32;
  static constexpr uint32_t kBlock = 32;
  static constexpr bool kMin = false;
};
struct Block32Min {
  using X = ActBlockQ8A32;
  static constexpr uint32_t kBlock = 32;
  static constexpr bool kMin = true;
};

struct Q4_0 : Block32 {
  using Block = BlockQ4_0;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) { return lowered(nibbles(b.qs, i, 16), 8); }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
};
struct Q4_1 : Block32Min {
  using Block = BlockQ4_1;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) { return nibbles(b.qs, i, 16); }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
  ZRT_DEVICE float m(const Block& b) { return widened(b.m); }
};
struct Q5_0 : Block32 {
  using Block = BlockQ5_0;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) {
    return lowered(nibbles(b.qs, i, 16) | spread4(word(b.qh) >> i) << 4, 16);
  }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
};
struct Q5_1 : Block32Min {
  using Block = BlockQ5_1;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) {
    return nibbles(b.qs, i, 16) | spread4(word(b.qh) >> i) << 4;
  }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
  ZRT_DEVICE float m(const Block& b) { return widened(b.m); }
};
struct Q8_0 : Block32 {
  using Block = BlockQ8_0;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) { return word(b.qs + i); }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
};
// The values of the codes of IQ4_NL, IQ4_XS and MXFP4, as bytes (kernels/cpu/quant/value_tables.h).
constexpr uint32_t kIq4Words[4] = {0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u};
constexpr uint32_t kFp4Words[4] = {0x03020100u, 0x0C080604u, 0xFDFEFF00u, 0xF4F8FAFCu};
struct IQ4_NL : Block32 {
  using Block = BlockIQ4_NL;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) { return looked_up(kIq4Words, nibbles(b.qs, i, 16)); }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
};
struct MXFP4 : Block32 {
  using Block = BlockMXFP4;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) { return looked_up(kFp4Words, nibbles(b.qs, i, 16)); }
  ZRT_DEVICE float d(const Block& b) { return f32_from_bits(b.e < 2 ? 0x00200000u << b.e : (b.e - 1u) << 23); }
};

// What formats with blocks of 256 values have in common.
template <uint32_t kSubValues, bool kHasMin>
struct Block256 {
  using X = ActBlockQ8A256;
  static constexpr uint32_t kBlock = 256, kSub = kSubValues;
  static constexpr bool kMin = kHasMin;
};
// Return the sub-scales or the minimums of sub-blocks 0 to 3 of Q4_K and Q5_K (if j < 4) or of sub-blocks 4 to 7, as
// four bytes. `packed` has six bits for each (kernels/cpu/quant/k_scales.h).
ZRT_DEVICE uint32_t k_scales4(const uint8_t* packed, uint32_t j) {
  const uint32_t first = word(packed), last = word(packed + 8);
  return j < 4 ? first & 0x3F3F3F3Fu : (last & 0x0F0F0F0Fu) | (first >> 2 & 0x30303030u);
}
ZRT_DEVICE uint32_t k_minimums4(const uint8_t* packed, uint32_t j) {
  const uint32_t middle = word(packed + 4), last = word(packed + 8);
  return j < 4 ? middle & 0x3F3F3F3Fu : (last >> 4 & 0x0F0F0F0Fu) | (middle >> 2 & 0x30303030u);
}
// Returns byte i of a word, as a number from 0 to 255.
ZRT_DEVICE int unsigned_byte_of(uint32_t bytes, uint32_t i) {
  return (int)(bytes >> (8 * i) & 255);
}
// Returns the first two bytes of a word (half = 0) or its last two (half = 1), each twice. This turns the minimums of
// sub-blocks of 32 values into minimums of 16 values each.
ZRT_DEVICE uint32_t doubled(uint32_t bytes, uint32_t half) {
  return __builtin_amdgcn_perm(0, bytes, half == 0 ? 0x01010000u : 0x03030202u);
}
struct Q2_K : Block256<16, true> {
  using Block = BlockQ2_K;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) {
    return word(b.qs + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 0x03030303u;
  }
  ZRT_DEVICE int sc(const Block& b, uint32_t j) { return unsigned_byte_of(word(b.scales + j / 4 * 4), j % 4) & 15; }
  ZRT_DEVICE int minimum(const Block& b, uint32_t j) {
    return unsigned_byte_of(word(b.scales + j / 4 * 4), j % 4) >> 4;
  }
  ZRT_DEVICE uint32_t minimums4(const Block& b, uint32_t i) { return word(b.scales + i) >> 4 & 0x0F0F0F0Fu; }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
  ZRT_DEVICE float m(const Block& b) { return widened(b.dmin); }
};
struct Q3_K : Block256<16, false> {
  using Block = BlockQ3_K;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) {
    const uint32_t low = word(b.qs + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 0x03030303u;
    return lowered(low | (word(b.hmask + i % 32) >> (i / 32) & 0x01010101u) << 2, 4);
  }
  ZRT_DEVICE int sc(const Block& b, uint32_t j) {
    const uint32_t low = word(b.scales + j % 8 / 4 * 4) >> (8 * (j % 4) + j / 8 * 4) & 15,
                   high = word(b.scales + 8) >> (8 * (j % 4) + j / 4 * 2) & 3;
    return (int)(low | high << 4) - 32;
  }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
};
struct Q4_K : Block256<32, true> {
  using Block = BlockQ4_K;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) { return nibbles(b.qs + i / 64 * 32, i % 64, 32); }
  ZRT_DEVICE int sc(const Block& b, uint32_t j) { return unsigned_byte_of(k_scales4(b.scales, j), j % 4); }
  ZRT_DEVICE int minimum(const Block& b, uint32_t j) { return unsigned_byte_of(k_minimums4(b.scales, j), j % 4); }
  ZRT_DEVICE uint32_t minimums4(const Block& b, uint32_t i) {
    return doubled(k_minimums4(b.scales, i / 2), i / 2 % 4 / 2);
  }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
  ZRT_DEVICE float m(const Block& b) { return widened(b.dmin); }
};
struct Q5_K : Block256<32, true> {
  using Block = BlockQ5_K;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) {
    return nibbles(b.qs + i / 64 * 32, i % 64, 32) | (word(b.qh + i % 32) >> (i / 32) & 0x01010101u) << 4;
  }
  ZRT_DEVICE int sc(const Block& b, uint32_t j) { return unsigned_byte_of(k_scales4(b.scales, j), j % 4); }
  ZRT_DEVICE int minimum(const Block& b, uint32_t j) { return unsigned_byte_of(k_minimums4(b.scales, j), j % 4); }
  ZRT_DEVICE uint32_t minimums4(const Block& b, uint32_t i) {
    return doubled(k_minimums4(b.scales, i / 2), i / 2 % 4 / 2);
  }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
  ZRT_DEVICE float m(const Block& b) { return widened(b.dmin); }
};
struct Q6_K : Block256<16, false> {
  using Block = BlockQ6_K;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) {
    const uint32_t half = i / 128, part = i % 128 / 32, j = i % 32;
    const uint32_t low = word(b.ql + 64 * half + part % 2 * 32 + j) >> (part / 2 * 4) & 0x0F0F0F0Fu;
    return lowered(low | (word(b.qh + 32 * half + j) >> (2 * part) & 0x03030303u) << 4, 32);
  }
  ZRT_DEVICE int sc(const Block& b, uint32_t j) { return byte_of(word(b.scales + j / 4 * 4), (int)(j % 4)); }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
};
struct IQ4_XS : Block256<32, false> {
  using Block = BlockIQ4_XS;
  ZRT_DEVICE uint32_t codes4(const Block& b, uint32_t i) {
    return looked_up(kIq4Words, nibbles(b.qs + i / 32 * 16, i % 32, 16));
  }
  ZRT_DEVICE int sc(const Block& b, uint32_t j) {
    return (int)((word(b.scales_l) >> (4 * j) & 15) | (b.scales_h >> (2 * j) & 3u) << 4) - 32;
  }
  ZRT_DEVICE float d(const Block& b) { return widened(b.d); }
};

// The format fixed16: codes of two digits. Kernels read the digits of its block themselves, four at a time.
struct Fixed16 {
  using Block = BlockFixed16;
  using X = ActBlockQ16A256;
  static constexpr uint32_t kBlock = 256;
  ZRT_DEVICE float d(const Block& b) { return bf16_to_f32(b.d); }
};

// Formats whose weights are floats. Each value is a block of its own.
struct F32 {
  using X = float;
  static constexpr uint32_t kBlock = 1;
  using Block = float;
  ZRT_DEVICE float value(Block b) { return b; }
};
struct F16 {
  using X = float;
  static constexpr uint32_t kBlock = 1;
  using Block = uint16_t;
  ZRT_DEVICE float value(Block b) { return widened(b); }
};
struct BF16 {
  using X = float;
  static constexpr uint32_t kBlock = 1;
  using Block = uint16_t;
  ZRT_DEVICE float value(Block b) { return bf16_to_f32(b); }
};

// Returns the bytes of a row of k weights.
template <class F>
ZRT_DEVICE uint64_t row_bytes_of(uint32_t k) {
  return (uint64_t)(k / F::kBlock) * sizeof(typename F::Block);
}

// Converts the values i..i+3 of a row to float, with the bits of the format's dequantize_row (kernels/cpu/quant). i is
// a multiple of 4.
template <class F>
ZRT_DEVICE void widen4(const uint8_t* row, uint32_t i, float (&y)[4]) {
  const auto* blocks = (const typename F::Block*)row;
  if constexpr (F::kBlock == 1) {
    for (int k = 0; k < 4; ++k) y[k] = F::value(blocks[i + k]);
  } else {
    const auto& block = blocks[i / F::kBlock];
    const uint32_t at = i % F::kBlock, codes = F::codes4(block, at);
    if constexpr (F::kBlock == 32) {
      for (int k = 0; k < 4; ++k) {
        const float scaled = F::d(block) * (float)byte_of(codes, k);
        if constexpr (F::kMin)
          y[k] = scaled + F::m(block);
        else
          y[k] = scaled;
      }
    } else {
      const float scale = F::d(block) * (float)F::sc(block, at / F::kSub);
      for (int k = 0; k < 4; ++k) {
        const float scaled = scale * (float)byte_of(codes, k);
        if constexpr (F::kMin)
          y[k] = scaled - F::m(block) * (float)F::minimum(block, at / F::kSub);
        else
          y[k] = scaled;
      }
    }
  }
}

template <>
__device__ __forceinline__ void widen4<Fixed16>(const uint8_t* row, uint32_t i, float (&y)[4]) {
  const BlockFixed16& block = ((const BlockFixed16*)row)[i / 256];
  const uint32_t high = word(block.high + i % 256), low = word(block.low + i % 256);
  for (int k = 0; k < 4; ++k) y[k] = Fixed16::d(block) * (float)(byte_of(high, k) * 256 + byte_of(low, k));
}

// Lists the formats: X(its name in kernels' names, its struct).
#define ZRT_QUANT_FORMATS(X) \
  X(q4_0, Q4_0)              \
  X(q4_1, Q4_1)              \
  X(q5_0, Q5_0)              \
  X(q5_1, Q5_1)              \
  X(q8_0, Q8_0)              \
  X(q2_k, Q2_K)              \
  X(q3_k, Q3_K)              \
  X(q4_k, Q4_K)              \
  X(q5_k, Q5_K)              \
  X(q6_k, Q6_K)              \
  X(iq4_nl, IQ4_NL)          \
  X(iq4_xs, IQ4_XS)          \
  X(mxfp4, MXFP4)            \
  X(fixed16, Fixed16)
#define ZRT_FLOAT_FORMATS(X) X(f32, F32) X(f16, F16) X(bf16, BF16)

}  // namespace zinc_rt::rdna

// The blocks of the quantized weight formats, byte for byte as in a file; device kernels read the same bytes. A comment
// gives the value of a weight from its code q, its block's scale d and what else the format has: minimums (m, dmin) or
// integer sub-scales sc of 16 or 32 weights each. Fields of type f16 are raw bits (kernels/common/half.h). Weights are
// numbered from 0 to 31 or 255 along the row.
// (C++17, POD.)
#pragma once

#include <stdint.h>

namespace zinc_rt {

struct BlockQ4_0 {  // value = d * (q - 8)
  uint16_t d;
  uint8_t qs[16];  // low nibbles: values 0..15, high nibbles: 16..31
};
struct BlockQ4_1 {  // value = d * q + m
  uint16_t d;
  uint16_t m;
  uint8_t qs[16];
};
struct BlockQ5_0 {  // value = d * (q - 16)
  uint16_t d;
  uint8_t qh[4];   // bit i (little endian) is the fifth bit of value i
  uint8_t qs[16];  // as in Q4_0
};
struct BlockQ5_1 {  // value = d * q + m
  uint16_t d;
  uint16_t m;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ8_0 {  // value = d * q
  uint16_t d;
  int8_t qs[32];
};
struct BlockIQ4_NL {  // value = d * kIq4Values[q]
  uint16_t d;
  uint8_t qs[16];
};
struct BlockMXFP4 {  // value = 2^(e - 128) * kFp4Values[q]
  uint8_t e;
  uint8_t qs[16];
};
struct BlockQ2_K {     // value = d * sc * q - dmin * m, with sc and m per 16 values
  uint8_t scales[16];  // sc in the low nibbles, m in the high ones
  uint8_t qs[64];      // bits 2 n and 2 n + 1 of byte 32 h + i are q of value 128 h + 32 n + i
  uint16_t d;
  uint16_t dmin;
};
struct BlockQ3_K {     // value = d * (sc - 32) * q, with q from -4 to 3 and sc per 16 values
  uint8_t hmask[32];   // if bit j of byte i is 0, 4 is subtracted from q of value 32 j + i
  uint8_t qs[64];      // the low two bits of q, as in Q2_K
  uint8_t scales[12];  // 16 sc of six bits: low nibbles in bytes 0..7, the upper two bits in bytes 8..11
  uint16_t d;
};
struct BlockQ4_K {  // value = d * sc * q - dmin * m, with sc and m per 32 values
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];  // 8 pairs (sc, m) of six bits each (kernels/cpu/quant/k_scales.h)
  uint8_t qs[128];     // byte 32 j + i: values 64 j + i (low nibble) and 64 j + 32 + i
};
struct BlockQ5_K {  // as Q4_K, but q has a fifth bit
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qh[32];  // bit j of byte i is the fifth bit of value 32 j + i
  uint8_t qs[128];
};
struct BlockQ6_K {  // value = d * sc * (q - 32), with sc per 16 values
  uint8_t ql[128];  // byte 64 h + i: values 128 h + i (low nibble) and 128 h + 64 + i
  uint8_t qh[64];   // bits 2 n and 2 n + 1 of byte 32 h + i are the upper bits of value 128 h + 32 n + i
  int8_t scales[16];
  uint16_t d;
};
struct BlockIQ4_XS {  // value = d * (sc - 32) * kIq4Values[q], with sc per 32 values
  uint16_t d;
  uint16_t scales_h;    // the upper two bits of sc j are at bit 2 j
  uint8_t scales_l[4];  // the low nibbles of sc, two per byte
  uint8_t qs[128];      // byte 16 j + i: values 32 j + i (low nibble) and 32 j + 16 + i
};
struct BlockNVFP4 {   // value = s * kFp4Values[q], with s per 16 values
  uint8_t scales[4];  // s is half of an unsigned 8-bit float with 4 bits of exponent
  uint8_t qs[32];     // byte 8 j + i: values 16 j + i (low nibble) and 16 j + 8 + i
};
// The following formats store indices of points of a grid (kernels/cpu/quant/grids.h). A point is 8 values, or 4 in
// IQ3. sc = 2 s + 1, where s has 4 bits, or 3 in IQ1. Of a point with 7 signs, an even number of its 8 is set.
struct BlockIQ2_XXS {  // value = d / 8 * sc * q, with sc per 32 values
  uint16_t d;
  uint8_t qs[64];  // per 32 values: 4 indices, then a word with 4 times 7 signs and, highest, s
};
struct BlockIQ2_XS {  // value = d / 8 * sc * q, with sc per 16 values
  uint16_t d;
  uint16_t qs[32];  // 9 bits of index, 7 signs
  uint8_t scales[8];
};
struct BlockIQ2_S {  // value = d / 8 * sc * q, with sc per 16 values
  uint16_t d;
  uint8_t qs[32];  // the low 8 bits of indices
  uint8_t signs[32];
  uint8_t qh[8];  // the upper 2 bits of indices, four per byte
  uint8_t scales[8];
};
struct BlockIQ3_XXS {  // value = d / 4 * sc * q, with sc per 32 values
  uint16_t d;
  uint8_t qs[64];
  uint8_t signs_and_scales[32];  // a word per 32 values: 4 times 7 signs and, highest, s
};
struct BlockIQ3_S {  // value = d * sc * q, with sc per 32 values
  uint16_t d;
  uint8_t qs[64];
  uint8_t qh[8];  // the ninth bits of indices
  uint8_t signs[32];
  uint8_t scales[4];
};
struct BlockIQ1_S {  // value = d / 8 * sc * (8 * q + shift), with sc and shift per 32 values
  uint16_t d;
  uint8_t qs[32];
  uint16_t
      qh[8];  // per 32 values: 4 times 3 upper bits of indices, s, and the highest bit is set if shift is -1, not 1
};
struct BlockIQ1_M {  // value = d / 8 * sc * (8 * q + shift), with sc per 16 and shift per 8 values
  uint8_t qs[32];
  uint8_t qh[16];      // a nibble per point: 3 upper bits of the index, and a bit that is set if shift is -1, not 1
  uint16_t scales[4];  // 4 times 3 bits s; the highest nibbles are those of d, the lowest first
};
// The following formats are ternary: q is in -1..1.
struct BlockTQ1_0 {  // value = d * q
  uint8_t qs[48];    // five digits q + 1 of base 3 per byte, plane by plane: 32 bytes, then 16
  uint8_t qh[4];     // four digits per byte
  uint16_t d;
};
struct BlockTQ2_0 {  // value = d * q
  uint8_t qs[64];    // bits 2 n and 2 n + 1 of byte 32 h + i are q + 1 of value 128 h + 32 n + i
  uint16_t d;
};
// fixed16 is no file format. F16 and BF16 matrices are converted to it when a model is loaded (cpp/model/fixed16.h).
struct BlockFixed16 {  // value = d * code, code = 256 * high + low (kernels/common/digits.h), |code| <= 32,639
  int8_t high[256];
  int8_t low[256];
  uint16_t d;  // bf16: a power of two, or 0, or NaN if a weight of the block is not finite
};

static_assert(sizeof(BlockFixed16) == 514, "layout is shared with device code");
static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20, "layout of the file format");
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24, "layout of the file format");
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockIQ4_NL) == 18, "layout of the file format");
static_assert(sizeof(BlockMXFP4) == 17 && sizeof(BlockQ2_K) == 84, "layout of the file format");
static_assert(sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144, "layout of the file format");
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210, "layout of the file format");
static_assert(sizeof(BlockIQ4_XS) == 136 && sizeof(BlockNVFP4) == 36, "layout of the file format");
static_assert(sizeof(BlockIQ2_XXS) == 66 && sizeof(BlockIQ2_XS) == 74, "layout of the file format");
static_assert(sizeof(BlockIQ2_S) == 82 && sizeof(BlockIQ3_XXS) == 98, "layout of the file format");
static_assert(sizeof(BlockIQ3_S) == 110 && sizeof(BlockIQ1_S) == 50, "layout of the file format");
static_assert(sizeof(BlockIQ1_M) == 56 && sizeof(BlockTQ1_0) == 54, "layout of the file format");
static_assert(sizeof(BlockTQ2_0) == 66, "layout of the file format");

}  // namespace zinc_rt

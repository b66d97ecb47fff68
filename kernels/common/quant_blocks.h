// The blocks of the quantized weight formats as they lie in a file (C++17, POD; device kernels read the same bytes).
// f16 fields are raw bits (kernels/common/half.h). A block's values run 0..31 or 0..255 along the row.
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
  uint8_t qh[4];   // bit i (little endian): fifth bit of value i
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
struct BlockQ2_K {     // value = d * sc * q - dmin * m, sc and m per 16
  uint8_t scales[16];  // sc in the low nibble, m in the high one
  uint8_t qs[64];      // byte 32 h + i: values 128 h + i + {0, 32, 64, 96} from the lowest two bits up
  uint16_t d;
  uint16_t dmin;
};
struct BlockQ3_K {     // value = d * (sc - 32) * q, q in -4..3, sc per 16
  uint8_t hmask[32];   // bit j of byte i: value 32 j + i is not lowered by 4
  uint8_t qs[64];      // low two bits, as in Q2_K
  uint8_t scales[12];  // 16 six-bit scales: low nibbles in bytes 0..7, the upper two bits in bytes 8..11
  uint16_t d;
};
struct BlockQ4_K {  // value = d * sc * q - dmin * m, sc and m per 32
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];  // 8 six-bit pairs, see k_scales.h
  uint8_t qs[128];     // byte 32 j + i: values 64 j + i (low nibble) and 64 j + 32 + i
};
struct BlockQ5_K {  // as Q4_K with a fifth bit
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qh[32];  // bit j of byte i: fifth bit of value 32 j + i
  uint8_t qs[128];
};
struct BlockQ6_K {  // value = d * sc * (q - 32), sc per 16
  uint8_t ql[128];  // byte 64 h + i: values 128 h + i (low nibble) and 128 h + 64 + i
  uint8_t qh[64];   // byte 32 h + i: upper two bits of values 128 h + i + {0, 32, 64, 96} from the lowest up
  int8_t scales[16];
  uint16_t d;
};
struct BlockIQ4_XS {  // value = d * (sc - 32) * kIq4Values[q], sc per 32
  uint16_t d;
  uint16_t scales_h;    // upper two bits of scale j at bit 2 j
  uint8_t scales_l[4];  // low nibbles, two a byte
  uint8_t qs[128];      // byte 16 j + i: values 32 j + i (low nibble) and 32 j + 16 + i
};
// No format of files: what F16 and BF16 matrices become when a model is loaded (cpp/model/fixed16.h).
struct BlockFixed16 {  // value = d * code, code = 256 * high + low (kernels/common/digits.h), |code| <= 32,639
  int8_t high[256];
  int8_t low[256];
  uint16_t d;  // bf16: a power of two, 0, or NaN where a weight of the block is not finite
};

static_assert(sizeof(BlockFixed16) == 514, "layout is shared with device code");
static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20, "layout of the file format");
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24, "layout of the file format");
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockIQ4_NL) == 18, "layout of the file format");
static_assert(sizeof(BlockMXFP4) == 17 && sizeof(BlockQ2_K) == 84, "layout of the file format");
static_assert(sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144, "layout of the file format");
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210, "layout of the file format");
static_assert(sizeof(BlockIQ4_XS) == 136, "layout of the file format");

}  // namespace zinc_rt

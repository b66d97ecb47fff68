// Unpacks the six-bit scales and minimums of Q4_K and Q5_K.
#pragma once

#include <stdint.h>

namespace zinc_rt::cpu {

struct KScales {
  uint8_t sc[8];
  uint8_t m[8];
};

// Returns the 8 scales sc and the 8 minimums m of a block. Bytes 0..3 hold sc 0..3, and bytes 4..7 hold m 0..3, in
// their low six bits. Bytes 8..11 hold the low four bits of sc 4..7 (low nibble) and m 4..7 (high nibble). The upper
// two bits of sc 4..7 are the top bits of bytes 0..3, and the upper two bits of m 4..7 those of bytes 4..7.
static inline __attribute__((always_inline)) KScales unpack_k_scales(const uint8_t* packed) {
  KScales out;
  for (int j = 0; j < 4; ++j) {
    out.sc[j] = packed[j] & 63;
    out.m[j] = packed[4 + j] & 63;
    out.sc[4 + j] = static_cast<uint8_t>((packed[8 + j] & 15) | ((packed[j] >> 6) << 4));
    out.m[4 + j] = static_cast<uint8_t>((packed[8 + j] >> 4) | ((packed[4 + j] >> 6) << 4));
  }
  return out;
}

}  // namespace zinc_rt::cpu

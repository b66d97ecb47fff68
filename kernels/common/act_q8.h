// The blocks of quantized activations: rows of x as the op QUANTIZE writes them (kernels/cpu/quantize.cpp), and as
// products with quantized weights read them. Shared by host and device (C++17, POD).
#pragma once

#include <stdint.h>

namespace zinc_rt {

// qs are -127..127, never -128; kernels rely on that.

// q8a32: a block of 32 values, value i = d * qs[i].
struct ActBlockQ8A32 {
  float d;
  int32_t sum;  // exact sum of qs, for weights with a minimum
  int8_t qs[32];
};
static_assert(sizeof(ActBlockQ8A32) == 40, "layout is shared with device code");

// q8a256: a block of 256 values, value i = d * qs[i].
struct ActBlockQ8A256 {
  float d;
  int16_t sums[16];  // exact sums of 16 neighbouring qs each, for weights with minimums
  int8_t qs[256];
};
static_assert(sizeof(ActBlockQ8A256) == 292, "layout is shared with device code");

// q16a256: a block of 256 values, each a 16-bit code of two digits from -128 to 127 (kernels/common/digits.h). Value i
// = d * (256 * high[i] + low[i]), where the code in brackets is -32,639..32,639.
struct ActBlockQ16A256 {
  float d;
  int8_t high[256];
  int8_t low[256];
};
static_assert(sizeof(ActBlockQ16A256) == 516, "layout is shared with device code");

}  // namespace zinc_rt

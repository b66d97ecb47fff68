// Quantized activations: what the QUANTIZE op writes and every integer dot reads. Shared by host and device (C++17,
// POD).
#pragma once

#include <stdint.h>

namespace zinc_rt {

// qs of q8 run from -127 to 127: kernels rely on it.

// One 32-element block: value = d * qs[i].
struct ActBlockQ8A32 {
  float d;
  int32_t sum;  // exact sum of qs, for formats with a min term
  int8_t qs[32];
};
static_assert(sizeof(ActBlockQ8A32) == 40, "layout is shared with device code");

// One 256-element block: value = d * qs[i].
struct ActBlockQ8A256 {
  float d;
  int16_t sums[16];  // exact sums of 16 consecutive qs, for formats with min terms
  int8_t qs[256];
};
static_assert(sizeof(ActBlockQ8A256) == 292, "layout is shared with device code");

// One 256-element block of codes of 16 bits, |code| <= 32,639, each as two digits in -128..127 (kernels/common/digits.h):
// value = d * (256 * high[i] + low[i]).
struct ActBlockQ16A256 {
  float d;
  int8_t high[256];
  int8_t low[256];
};
static_assert(sizeof(ActBlockQ16A256) == 516, "layout is shared with device code");

}  // namespace zinc_rt

// Rows of floats to blocks of integers with one scale a block (types.glsl), of the type Y: int8 in blocks of 32 or 256,
// most = 127, or codes of two digits in blocks of 256, most = 32,639. amax = max |x|, d = amax / most, q = round(x * (most
// / amax)), ties to even; sums of q of the first two. A block with amax below 2^-100 is all zero; a NaN or an infinity
// makes d NaN.
// Order: none; the maximum is the same in any order. An invocation has four values, side by side in a row.
// Included after the number of invocations, a multiple of 64.
#include "types.glsl"
layout(constant_id = 0) const uint Y = kQ8A32;
shared float maxima[gl_WorkGroupSize.x];
shared int sums[gl_WorkGroupSize.x];
shared bool is_finite[gl_WorkGroupSize.x];

int sum_of(uint first, uint n) {
  int sum = 0;
  for (uint i = first; i < first + n; ++i) sum += sums[i];
  return sum;
}

// The codes of an invocation: words of four digits each, and their sum where the type has one.
struct Codes {
  uint high, low;
  int sum;
};
Codes codes_of(float values[4], float inverse, bool usable) {
  Codes codes = Codes(0u, 0u, 0);
  for (uint k = 0; k < 4; ++k) {
    int shifted = floatBitsToInt((usable ? values[k] * inverse : 0.0) + kRound);
    int code = bitfieldExtract(shifted, 0, 16);
    codes.low |= uint(code & 255) << (8 * k);
    codes.high |= uint((code + 128) >> 8 & 255) << (8 * k);
    codes.sum += code;
  }
  return codes;
}

// Values i..i + 3 of a row of n_row, to the row at y. Those past its end are 0, and nothing is stored. All invocations
// call it, with blocks that begin at multiples of 64 of them.
void quantize4(float values[4], uint i, uint n_row, uint64_t y) {
  const uint n = Y == kQ8A32 ? 32u : 256u;
  float most = Y == kQ16A256 ? 32639.0 : 127.0;
  uint id = gl_LocalInvocationID.x, sharing = n / 4, first = id / sharing * sharing;
  bool is_within = i < n_row;
  float amax = 0.0, zero = 0.0;  // zero: x * 0 summed, or NaN when some x is not finite
  for (uint k = 0; k < 4; ++k) {
    float a = abs(values[k]);
    amax = a > amax ? a : amax;
    zero = zero + values[k] * 0.0;
  }
  barrier();
  maxima[id] = amax;
  is_finite[id] = zero == 0.0;
  barrier();
  bool all_finite = true;
  for (uint k = first; k < first + sharing; ++k) {
    amax = maxima[k] > amax ? maxima[k] : amax;
    all_finite = all_finite && is_finite[k];
  }
  bool usable = amax >= 7.888609052210118e-31 && amax <= 1.329227995784916e36 && all_finite;
  float inverse = usable ? exact_div(most, amax) : 0.0;
  Codes codes = codes_of(values, inverse, usable);
  sums[id] = codes.sum;
  barrier();
  if (!is_within) return;
  uint64_t heads = y + (Y == kQ16A256 ? 2 * n_row : Y == kQ8A256 ? q8a256_heads(n_row) : n_row);
  Words head = Words(heads + i / n * (Y == kQ8A32 ? kQ8A32Head : Y == kQ8A256 ? kQ8A256Head : kQ16A256Head));
  uint at = id - first;
  Words(y).v[i / 4] = Y == kQ16A256 ? codes.high : codes.low;
  switch (Y) {
    case kQ8A32:
      if (at == 0) head.v[1] = uint(sum_of(first, 8));
      break;
    case kQ8A256:
      if (at % 8 == 0) head.v[1 + at / 8] = uint((sum_of(id, 4) & 0xFFFF) | sum_of(id + 4, 4) << 16);
      if (at % 4 == 0) {
        int sum = sum_of(id, 4);
        Bytes digits = Bytes(y + n_row + i / 256 * 32);
        digits.v[at / 4] = uint8_t(sum & 255);
        digits.v[16 + at / 4] = uint8_t(sum + 128 >> 8 & 255);
      }
      break;
    case kQ16A256: Words(y + n_row).v[i / 4] = codes.low; break;
  }
  if (id != first) return;
  float d = !all_finite || amax > 1.329227995784916e36 ? kNan : (usable ? exact_div(amax, most) : 0.0);
  head.v[0] = floatBitsToUint(d);
}

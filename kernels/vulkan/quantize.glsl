// Converts rows of floats to blocks of integers with one scale per block, as QUANTIZE defines it. Y is the type of the
// blocks (types.glsl): int8 in blocks of 32 or 256, with most = 127, or codes of two digits in blocks of 256, with most
// = 32,639. In each block:
//   amax = max |x|, d = amax / most, q = round(x * (most / amax)), ties to even
// The int8 types also store exact sums of q. A block with amax below 2^-100 is all zero. A NaN, an infinity or an amax
// above 2^120 makes d NaN.
// There is no order of sums, because integers and the maximum have none. Each invocation converts four neighbouring
// values of a row.
// Included after local_size_x, which is a multiple of 64.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "types.glsl"
layout(constant_id = 0) const uint Y = kQ8A32;
shared float maxima[gl_WorkGroupSize.x / 8];  // the largest |x| of each subgroup

// Returns the invocation's number in its workgroup. The invocations of a subgroup have neighbouring numbers.
uint own_id() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }

// The codes of an invocation's four values, a word of high and a word of low digits, and their sum. An int8 code is its
// low digit.
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

// Converts the values i..i + 3 of a row of n_row values, and writes them to the row of blocks at address y. Values past
// the end of the row must be 0 and are not stored. REQUIRES: all invocations call it; each 64 of them, by own_id(),
// have 256 neighbouring values that begin at a multiple of 256.
void quantize4(float values[4], uint i, uint n_row, uint64_t y) {
  const uint n = Y == kQ8A32 ? 32u : 256u;
  float most = Y == kQ16A256 ? 32639.0 : 127.0;
  uint id = own_id(), sharing = n / 4, at = id % sharing;
  float amax = 0.0;
  for (uint k = 0; k < 4; ++k) amax = max(amax, magnitude(values[k]));
  for (uint mask = 1; mask < min(gl_SubgroupSize, sharing); mask *= 2) amax = max(amax, subgroupShuffleXor(amax, mask));
  if (sharing > gl_SubgroupSize) {
    barrier();
    if (gl_SubgroupInvocationID == 0) maxima[gl_SubgroupID] = amax;
    barrier();
    uint first = (id - at) / gl_SubgroupSize;
    for (uint s = 0; s < sharing / gl_SubgroupSize; ++s) amax = max(amax, maxima[first + s]);
  }
  bool usable = amax >= 7.888609052210118e-31 && amax <= 1.329227995784916e36;
  float inverse = usable ? exact_div(most, amax) : 0.0;
  Codes codes = codes_of(values, inverse, usable);
  int sum = codes.sum;  // first of 4 codes, then of 16; `next` is that of the neighbouring 16
  for (uint mask = 1; mask < 4; mask *= 2) sum += subgroupShuffleXor(sum, mask);
  int next = subgroupShuffleXor(sum, 4);
  if (i >= n_row) return;
  uint64_t heads = y + (Y == kQ16A256 ? 2 * n_row : Y == kQ8A256 ? q8a256_heads(n_row) : n_row);
  Words head = Words(heads + i / n * (Y == kQ8A32 ? kQ8A32Head : Y == kQ8A256 ? kQ8A256Head : kQ16A256Head));
  Words(y).v[i / 4] = Y == kQ16A256 ? codes.high : codes.low;
  switch (Y) {
    case kQ8A32:
      if (at == 0) head.v[1] = uint(sum + next);
      break;
    case kQ8A256:
      if (at % 8 == 0) head.v[1 + at / 8] = uint((sum & 0xFFFF) | next << 16);
      if (at % 4 == 0) {
        Bytes digits = Bytes(y + n_row + i / 256 * 32);
        digits.v[at / 4] = uint8_t(sum & 255);
        digits.v[16 + at / 4] = uint8_t(sum + 128 >> 8 & 255);
      }
      break;
    case kQ16A256: Words(y + n_row).v[i / 4] = codes.low; break;
  }
  if (at != 0) return;
  float d = amax > 1.329227995784916e36 ? kNan : (usable ? exact_div(amax, most) : 0.0);
  head.v[0] = floatBitsToUint(d);
}

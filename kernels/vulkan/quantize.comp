// QUANTIZE: rows of floats to int8 blocks with one scale a block (kernels/common/act_q8.h), of BLOCK = 32 or 256
// elements: amax = max |x|, d = amax / 127, q = round(x * (127 / amax)), ties to even; sums of q. A block with amax below
// 2^-100 is all zero; a NaN or an infinity makes d NaN.
// Order: none; the maximum is the same in any order. Grid: (elements of a row / 256, rows), four elements an invocation.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(constant_id = 0) const uint BLOCK = 32;
layout(local_size_x = kWidth) in;
PUSH(Quantize);
shared float maxima[kWidth];
shared int sums[kWidth];
shared bool is_finite[kWidth];

int sum_of(uint first, uint n) {
  int sum = 0;
  for (uint i = first; i < first + n; ++i) sum += sums[i];
  return sum;
}

void main() {
  uint id = gl_LocalInvocationID.x, i = column() * 4, sharing = BLOCK / 4, first = id / sharing * sharing;
  bool is_within = i < p.k;
  Floats x = Floats(float_row(p.x, row(), p.k));
  float values[4], amax = 0.0, zero = 0.0;  // zero: x * 0 summed, or NaN when some x is not finite
  for (uint k = 0; k < 4; ++k) {
    values[k] = is_within ? x.v[i + k] : 0.0;
    float a = abs(values[k]);
    amax = a > amax ? a : amax;
    zero = zero + values[k] * 0.0;
  }
  maxima[id] = amax;
  is_finite[id] = zero == 0.0;
  barrier();
  bool all_finite = true;
  for (uint k = first; k < first + sharing; ++k) {
    amax = maxima[k] > amax ? maxima[k] : amax;
    all_finite = all_finite && is_finite[k];
  }
  bool usable = amax >= 7.888609052210118e-31 && amax <= 1.329227995784916e36 && all_finite;
  float inverse = usable ? exact_div(127.0, amax) : 0.0;
  uint codes = 0u;
  int sum = 0;
  for (uint k = 0; k < 4; ++k) {
    float shifted = (usable ? values[k] * inverse : 0.0) + kRound;
    int q = bitfieldExtract(floatBitsToInt(shifted), 0, 8);
    sum += q;
    codes |= uint(q & 255) << (8 * k);
  }
  sums[id] = sum;
  barrier();
  if (!is_within) return;
  uint block_words = BLOCK == 32u ? 10u : 73u, codes_at = BLOCK == 32u ? 2u : 9u;
  Words y = Words(p.y + (uint64_t(row()) * (p.k / BLOCK) + i / BLOCK) * block_words * 4u);
  y.v[codes_at + id - first] = codes;
  if (BLOCK == 256u && id % 8 == 0) y.v[1 + id / 8] = uint((sum_of(id, 4) & 0xFFFF) | sum_of(id + 4, 4) << 16);
  if (id != first) return;
  float d = !all_finite || amax > 1.329227995784916e36 ? kNan : (usable ? exact_div(amax, 127.0) : 0.0);
  y.v[0] = floatBitsToUint(d);
  if (BLOCK == 32u) y.v[1] = uint(sum_of(first, 8));
}

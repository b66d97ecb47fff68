// Converts floats to codes of two digits, which are signed bytes, and sums products of these digits with the codes of a
// cache of 16-bit integers. The rule is in flash_attn_integer.comp.
// The digits of four values 4 g..4 g + 3 fill two words: one has the four high digits, the other the four low digits.
// The bytes of each word belong to the values 4 g, 4 g + 2, 4 g + 1 and 4 g + 3, because upper_bytes() and
// lower_bytes() can take the bytes of cached codes in this order at the least cost.
// Included after exact_math.glsl.
#include "dots.glsl"
#include "half.glsl"
#include "integer_cells.glsl"

// Scaled has the two factors between a row of floats and its codes: code = round(x * inverse), and d * code is about x.
// scale_of() returns them. amax: the largest |x| of the row, or infinity if the row has a NaN.
struct Scaled {
  float inverse, d;
};
Scaled scale_of(float amax) {
  if (amax > 1.329227995784916e36) return Scaled(0.0, kNan);
  if (amax < 7.888609052210118e-31) return Scaled(0.0, 0.0);
  return Scaled(exact_div(kMostCode, amax), exact_div(amax, kMostCode));
}
// Returns the high (x) and the low (y) digits of four values. If `inverse` is 0, all digits are 0, whatever the values
// are.
uvec2 digits_of(vec4 x, float inverse) {
  uvec2 words = uvec2(0u);
  for (uint i = 0; i < 4; ++i) {
    int code = inverse > 0.0 ? int(round_int(x[i] * inverse)) : 0;
    uint at = 8 * (i / 2 + i % 2 * 2);
    words |= uvec2(uint(code + 128 >> 8 & 255) << at, uint(code & 255) << at);
  }
  return words;
}

// Functions that sum products of cached codes with digits. A cached code is a signed high byte and an unsigned low
// byte. lower_bytes() subtracts 128 from the low byte, so that it fits a signed dot; joined() makes up for that by
// adding 128 times the sum of the digits. `two` has the codes of the values 4 g and 4 g + 1, next_two those of 4 g + 2
// and 4 g + 3. add_codes() adds a dot of four products to each of `sums`: high bytes times high digits, low bytes times
// high digits, high bytes times low digits, low bytes times low digits.
uint upper_bytes(uint two, uint next_two) { return (two >> 8 & 0x00FF00FFu) | (next_two & 0xFF00FF00u); }
uint lower_bytes(uint two, uint next_two) {
  return ((two & 0x00FF00FFu) | (next_two << 8 & 0xFF00FF00u)) ^ 0x80808080u;
}
void add_codes(uint two, uint next_two, uint high, uint low, inout ivec4 sums) {
  uint upper = upper_bytes(two, next_two), lower = lower_bytes(two, next_two);
  sums += ivec4(dot4(upper, high), dot4(lower, high), dot4(upper, low), dot4(lower, low));
}
// Returns the sum of four high digits and the sum of four low ones.
ivec2 sum_of_digits(uint high, uint low) { return ivec2(dot4(0x01010101u, high), dot4(0x01010101u, low)); }
// Both return fma(A, 256, B), where A is the sum of cached codes times high digits, and B the same with low digits. A
// and B are integers, so no result is a denormal. The second computes A and B from the sums of add_codes().
// sum_of_digits: the sum of all high digits and the sum of all low ones.
float joined(int a, int b) { return usual_fma(float(a), 256.0, float(b)); }
float joined(ivec4 sums, ivec2 sum_of_digits) {
  ivec2 ab = 256 * sums.xz + sums.yw + 128 * sum_of_digits;
  return joined(ab.x, ab.y);
}

// Returns the high (x) and the low (y) digits of four cached codes, in the order of digits_of(). Both are signed bytes,
// because |code| <= kMostCode.
uvec2 digits_of_codes(uint two, uint next_two) {
  uint upper = upper_bytes(two, next_two), lower = (two & 0x00FF00FFu) | (next_two << 8 & 0xFF00FF00u);
  return uvec2((upper & 0x7F7F7F7Fu) + (lower >> 7 & 0x01010101u) ^ upper & 0x80808080u, lower);
}

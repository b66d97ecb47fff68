// Converts rows of floats to codes of two digits, and sums products of these with the codes of caches of integers
// (flash_attn_integer.comp has the rule). One word has the high digits of the values 4 g..4 g + 3, another their low
// digits. The bytes of a word are the values 4 g, 4 g + 2, 4 g + 1, 4 g + 3: the order in which upper_bytes() and
// lower_bytes() take bytes from two words of codes.
// Included after exact_math.glsl.
#include "dots.glsl"
#include "half.glsl"
#include "integer_cells.glsl"

// How a row of floats becomes codes: code = round(x * inverse), and d * code is about x. amax: the largest |x| of the
// row, infinity if there is a NaN.
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

// Sums products of cached codes with digits. A code is a signed high byte and an unsigned low byte. 128 is subtracted
// from the low byte so that it fits a signed dot; joined() adds 128 times the sum of the digits for that. two and
// next_two: two codes each. add_codes() adds four products to each of `sums`: high bytes times high digits, low bytes
// times high digits, high bytes times low digits, low bytes times low digits.
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
// Return fma(A, 256, B). A and B are integers, so nothing here is a denormal. sum_of_digits: the sums of all high and
// of all low digits.
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

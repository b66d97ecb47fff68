// Rows of floats as codes of two digits, and their sums with cells of integers (flash_attn_integer.comp says the rule).
// The digits of 4 g..4 g + 3 lie in a word each of high and of low ones, as bytes of 4 g, 4 g + 2, 4 g + 1, 4 g + 3.
// Included after exact_math.glsl.
#include "dots.glsl"
#include "half.glsl"
#include "integer_cells.glsl"

struct Scaled {
  float inverse, d;
};
Scaled scale_of(float amax) {
  if (amax > 1.329227995784916e36) return Scaled(0.0, kNan);
  if (amax < 7.888609052210118e-31) return Scaled(0.0, 0.0);
  return Scaled(exact_div(kMostCode, amax), exact_div(amax, kMostCode));
}
// x: the high digits, y: the low ones. Where the inverse is 0 so are the codes, whatever x is.
uvec2 digits_of(vec4 x, float inverse) {
  uvec2 words = uvec2(0u);
  for (uint i = 0; i < 4; ++i) {
    int code = inverse > 0.0 ? int(round_int(x[i] * inverse)) : 0;
    uint at = 8 * (i / 2 + i % 2 * 2);
    words |= uvec2(uint(code + 128 >> 8 & 255) << at, uint(code & 255) << at);
  }
  return words;
}

// Adds the products of four codes, two in a word, and their digits: high bytes and low bytes times high digits, then both
// times low digits. Low bytes have no sign; they are taken less 128, which joined() makes up for by the sums of digits.
uint upper_bytes(uint two, uint next_two) { return (two >> 8 & 0x00FF00FFu) | (next_two & 0xFF00FF00u); }
uint lower_bytes(uint two, uint next_two) {
  return ((two & 0x00FF00FFu) | (next_two << 8 & 0xFF00FF00u)) ^ 0x80808080u;
}
void add_codes(uint two, uint next_two, uint high, uint low, inout ivec4 sums) {
  uint upper = upper_bytes(two, next_two), lower = lower_bytes(two, next_two);
  sums += ivec4(dot4(upper, high), dot4(lower, high), dot4(upper, low), dot4(lower, low));
}
ivec2 sum_of_digits(uint high, uint low) { return ivec2(dot4(0x01010101u, high), dot4(0x01010101u, low)); }
// Of A and B: integers, which are no denormals.
float joined(int a, int b) { return usual_fma(float(a), 256.0, float(b)); }
float joined(ivec4 sums, ivec2 sum_of_digits) {
  ivec2 ab = 256 * sums.xz + sums.yw + 128 * sum_of_digits;
  return joined(ab.x, ab.y);
}

// The same four codes as two digits each, high (x) and low (y) ones, as q's: signed bytes, as |code| <= kMostCode.
uvec2 digits_of_codes(uint two, uint next_two) {
  uint upper = upper_bytes(two, next_two), lower = (two & 0x00FF00FFu) | (next_two << 8 & 0xFF00FF00u);
  return uvec2((upper & 0x7F7F7F7Fu) + (lower >> 7 & 0x01010101u) ^ upper & 0x80808080u, lower);
}

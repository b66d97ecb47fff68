// How linear_matrix.glsl makes matrices of int8 of weights in groups of 256. A group is made in steps of kStep codes.
// - Formats whose sub-blocks have 32 codes: the codes themselves. One product of 32 values is the sum of a sub-block;
//   it is then multiplied by the sub-block's integer scale.
// - Other K-quants: codes times their integer scales, which do not fit a byte and therefore become two digits, high and
//   low. isum = 256 * (high digits times x) + (low digits times x), which is two products.
// - fixed16: its two digits, times both digits of x.
// - Minimums: msum = 256 * (minimums times the high digits of the sums of x) + (minimums times their low digits), which
//   is two products.
// A row of a plane (of codes or of one digit) has kPitch words of `tile`: kStep codes, and for K-quants after them the
// minimums of the group. A matrix loaded from kMinimumsLow meets the low digits of the sums of x, and one loaded from
// kMinimumsHigh the high digits.
#include "groups.glsl"
const uint kStep = X == kQ8A256 ? 128 : 64, kSteps = 256 / kStep, kPitch = X == kQ8A256 ? 44 : 20;
const uint kMinimumsHigh = 32, kMinimumsLow = 36;  // four words of 0, the minimums, four words of 0
const uint kParts = 4;  // parts of a row that are made in a step
bool has_sub_blocks() { return X == kQ8A256 && (FORMAT == kQ4_K || FORMAT == kQ5_K || FORMAT == kIQ4_XS); }

// Returns the low (x) and the high (y) digits of four codes, each times `scale`. Two codes are multiplied at a time, as
// the 16-bit halves of a word. 0x8080 is added to each half, so that it does not borrow from its neighbour. Codes with
// a sign have 128 added before.
uvec2 digits_of(uint codes, uint scale) {
  const uint kBias = has_minimum() ? 0u : 0x00800080u;
  uint biased = codes ^ 257u * kBias, less = 0x80808080u - kBias * scale;
  uint even = (biased & 0x00FF00FFu) * scale + less, odd = (biased >> 8 & 0x00FF00FFu) * scale + less;
  return uvec2(even & 0x00FF00FFu | odd << 8 & 0xFF00FF00u, even >> 8 & 0x00FF00FFu | odd & 0xFF00FF00u) ^ 0x80808080u;
}

void put(uint at, uvec4 words) {
  tile[at / 4] = words;
}

// read_part() loads what part `i` of a step needs of a block. put_part() makes codes or digits of it and writes them to
// the rows at `low` and `high` of the workgroup's memory. It writes integer scales of sub-blocks to `scale`,
// kMatrixRows words apart.
RawPart read_part(uint64_t block, uint step, uint i) {
  if (X == kQ8A256) return raw_part(block, kParts * step + i);
  RawPart raw = RawPart(uvec4(0u), uvec4(0u), uvec4(0u));
  uint64_t at = block + kStep * step + 16 * i;
  raw.a = words_around(at + kLowDigits, raw.c.x);
  raw.b = words_around(at, raw.c.y);
  return raw;
}
void put_digits(uint low, uint high, uvec4 codes, uint scale) {
  uvec4 lows, highs;
  for (uint k = 0; k < 4; ++k) {
    uvec2 digits = digits_of(codes[k], scale);
    lows[k] = digits.x;
    highs[k] = digits.y;
  }
  put(low, lows);
  put(high, highs);
}
void put_minimums(uint low, uint i, uint minimums) {
  WORD(low + kMinimumsLow + i) = minimums;
  WORD(low + kMinimumsHigh + i) = WORD(low + kMinimumsLow + 4 + i) = 0u;
}
void put_part(RawPart raw, uint64_t block, uint step, uint i, uint low, uint high, uint scale) {
  if (X != kQ8A256) {
    put(low + 4 * i, quad_of(raw.a, raw.c.x, block));
    put(high + 4 * i, quad_of(raw.b, raw.c.y, block));
    return;
  }
  Part part = unpacked(raw, block, kParts * step + i);
  uvec2 at = (halves_at(kParts * step + i) - kStep * step) / 4;
  if (has_sub_blocks()) {
    put(low + at.x, part.first);
    put(low + at.y, part.second);
  } else {
    put_digits(low + at.x, high + at.x, part.first, uint(part.sub.x));
    put_digits(low + at.y, high + at.y, part.second, uint(part.sub.y));
  }
  if (FORMAT == kIQ4_XS) WORD(scale + kMatrixRows * i) = uint(part.sub.x);
  if (FORMAT == kQ4_K || FORMAT == kQ5_K) {  // even parts write the scales of two sub-blocks, and four minimums
    if (i % 2 == 1) return;
    WORD(scale + kMatrixRows * i) = uint(part.sub.x);
    WORD(scale + kMatrixRows * (i + 1)) = uint(part.sub.y);
    put_minimums(low, (kParts * step + i) / 2, uint(part.sub.z | part.sub.w << 16) * 0x0101u);
  } else if (has_minimum() && step == 0) {
    uint minimums = 0u;
    for (uint s = 0; s < 4; ++s) minimums |= uint(sub_block(block, 4 * i + s).y) << (8 * s);
    put_minimums(low, i, minimums);
  }
}

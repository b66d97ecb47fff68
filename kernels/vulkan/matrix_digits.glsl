// How weights of groups of 256 become matrices of int8 for linear_matrix.glsl. A group is made in steps of kStep codes.
// - Formats whose sub-blocks have 32 codes stay codes: a product of 32 is a sub-block's sum, which is then multiplied by
//   the sub-block's integer scale.
// - Of others the codes times their scales are two digits, high and low, so that isum = 256 * high x + low x is two
//   products. fixed16 is digits, and x is too: A and B are made with both planes of x.
// - msum is 256 * high sums + low sums, two products of the minimums and the digits of the sums of x.
// In `tile` a row of a plane of codes or digits has kPitch words: kStep codes, and for K-quants behind them the minimums
// of the group, where kMinimumsLow says for the low digits of sums and kMinimumsHigh for the high ones.
#include "groups.glsl"
const uint kStep = X == kQ8A256 ? 128 : 64, kSteps = 256 / kStep, kPitch = X == kQ8A256 ? 44 : 20;
const uint kMinimumsHigh = 32, kMinimumsLow = 36;  // 0, minimums, 0: four words each
const uint kParts = 4;  // of a row in a step
bool has_sub_blocks() { return X == kQ8A256 && (FORMAT == kQ4_K || FORMAT == kQ5_K || FORMAT == kIQ4_XS); }

// Digits of four codes, each times scale: low ones (x) and high ones (y). Codes are multiplied two at a time, as
// numbers of 16 bits; with 0x8080 added to each none borrows from its neighbour. Codes with a sign have 128 added.
uvec2 digits_of(uint codes, uint scale) {
  const uint kBias = has_minimum() ? 0u : 0x00800080u;
  uint biased = codes ^ 257u * kBias, less = 0x80808080u - kBias * scale;
  uint even = (biased & 0x00FF00FFu) * scale + less, odd = (biased >> 8 & 0x00FF00FFu) * scale + less;
  return uvec2(even & 0x00FF00FFu | odd << 8 & 0xFF00FF00u, even >> 8 & 0x00FF00FFu | odd & 0xFF00FF00u) ^ 0x80808080u;
}

void put(uint at, uvec4 words) {
  tile[at / 4] = words;
}

// What an invocation reads of a block for part `i` of a step, and how it becomes codes or digits in rows at `low` and
// `high`; scales of sub-blocks go to `scale` and each kMatrixRows words from there.
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
  if (FORMAT == kQ4_K || FORMAT == kQ5_K) {  // an even part has the scales of two sub-blocks, and four minimums
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

// Computes LINEAR for many rows of x, of floats, of blocks of 32 and, on devices without cooperative matrices, of
// groups of 256. linear.glsl has the formula and the order of sums.
// Grid: (rows of w / 64, rows of x / kTile). Each invocation computes one output of each of kTile rows of x, so that it
// unpacks a block of weights once for all of them.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(constant_id = 1) const uint X = kF32;
layout(local_size_x = kWidth) in;
PUSH(Linear);

// The following functions return the value v of one group for each of kTile rows of x. float_group() is for floats: n
// values from index `first` on.
void float_group(uint64_t w, uint64_t x[kTile], uint first, uint n, out float v[kTile]) {
  for (uint t = 0; t < kTile; ++t) {
    float lane[16];
    for (int l = 0; l < 16; ++l) lane[l] = 0.0;
    for (uint i = 0; i < n; i += 16)
      for (uint l = 0; l < 16; ++l)
        if (i + l < n) lane[l] = ZRT_FMA(element(w, first + i + l), Floats(x[t]).v[first + i + l], lane[l]);
    v[t] = fold16(lane);
  }
}

// For K-quants and fixed16 `block` is the group's block of weights, and g is the number of the group.
void k_group(uint64_t block, uint64_t x[kTile], uint g, out float v[kTile]) {
  int isum[kTile], msum[kTile];
  for (uint t = 0; t < kTile; ++t) isum[t] = msum[t] = 0;
  for (uint s = 0; s < 16; ++s) {
    uint c0 = codes4(block, 16 * s), c1 = codes4(block, 16 * s + 4), c2 = codes4(block, 16 * s + 8),
         c3 = codes4(block, 16 * s + 12);
    ivec2 sub = sub_block(block, s);
    for (uint t = 0; t < kTile; ++t) {
      Words q = Words(x[t] + 256 * g + 16 * s), head = Words(x[t] + q8a256_heads(p.k) + g * kQ8A256Head);
      isum[t] += sub.x * (dot4(c0, q.v[0]) + dot4(c1, q.v[1]) + dot4(c2, q.v[2]) + dot4(c3, q.v[3]));
      if (has_minimum()) msum[t] += sub.y * bitfieldExtract(int(head.v[1 + s / 2]), int(s % 2 * 16), 16);
    }
  }
  vec2 d = block_scales(block);
  for (uint t = 0; t < kTile; ++t)
    v[t] = has_minimum() ? ZRT_FMA(float(isum[t]), d.x, float(msum[t]) * -d.y) : float(isum[t]) * d.x;
}

void fixed_group(uint64_t block, uint64_t x[kTile], uint g, out float v[kTile]) {
  ivec2 high[kTile], low[kTile];
  for (uint t = 0; t < kTile; ++t) high[t] = low[t] = ivec2(0);
  for (uint k = 0; k < 256; k += 4) {
    uint w_high = word_at(block + k), w_low = word_at(block + kLowDigits + k);
    for (uint t = 0; t < kTile; ++t) {
      uint x_high = Words(x[t] + 256 * g).v[k / 4], x_low = Words(x[t] + p.k + 256 * g).v[k / 4];
      high[t] += ivec2(dot4(w_high, x_high), dot4(w_high, x_low));
      low[t] += ivec2(dot4(w_low, x_high), dot4(w_low, x_low));
    }
  }
  float d = bf16_to_f32(half_at(block + kScale));
  for (uint t = 0; t < kTile; ++t)
    v[t] = ZRT_FMA(float(256 * high[t].x + low[t].x), 256.0, float(256 * high[t].y + low[t].y)) * d;
}

void group_of_blocks(uint64_t w, uint64_t x[kTile], uint first_block, uint n_blocks, out float v[kTile]) {
  for (uint t = 0; t < kTile; ++t) v[t] = 0.0;
  for (uint b = first_block; b < first_block + n_blocks; ++b) {
    uint64_t block = w + uint64_t(b) * block_bytes();
    uint codes[8];
    for (uint i = 0; i < 8; ++i) codes[i] = codes4(block, 4 * i);
    vec2 d = block_scales(block);
    for (uint t = 0; t < kTile; ++t) {
      Words q = Words(x[t] + 32 * b), head = Words(x[t] + p.k + b * kQ8A32Head);
      int isum = 0;
      for (uint i = 0; i < 8; ++i) isum += dot4(codes[i], q.v[i]);
      float dx = uintBitsToFloat(head.v[0]);
      v[t] = ZRT_FMA(float(isum) * d.x, dx, v[t]);
      if (has_minimum()) v[t] = ZRT_FMA(float(int(head.v[1])) * d.y, dx, v[t]);
    }
  }
}

void main() {
  uint m = column(), first_row = row() * kTile, n_rows = min(kTile, Words(p.n_rows).v[0] - first_row);
  if (m >= p.m) return;
  bool has_factors = X == kQ8A256 || X == kQ16A256;
  uint64_t w = p.w + uint64_t(m) * p.w_row_bytes, x[kTile];
  // Rows past the last one repeat it and are not stored.
  for (uint t = 0; t < kTile; ++t) x[t] = p.x + uint64_t(first_row + min(t, n_rows - 1)) * p.x_row_bytes;
  float acc[kTile];
  for (uint t = 0; t < kTile; ++t) acc[t] = 0.0;
  for (uint g = 0; g < (p.k + 255) / 256; ++g) {
    float v[kTile], factor[kTile];
    uint64_t block = w + uint64_t(g) * block_bytes();  // used for formats with blocks of 256
    for (uint t = 0; t < kTile && has_factors; ++t)
      factor[t] = Floats(x[t] + (X == kQ8A256 ? q8a256_heads(p.k) + g * kQ8A256Head : 2 * p.k + g * kQ16A256Head)).v[0];
    switch (X) {
      case kQ8A32: group_of_blocks(w, x, 8 * g, min(8, p.k / 32 - 8 * g), v); break;
      case kQ8A256: k_group(block, x, g, v); break;
      case kQ16A256: fixed_group(block, x, g, v); break;
      default: float_group(w, x, 256 * g, min(256, p.k - 256 * g), v);
    }
    for (uint t = 0; t < kTile; ++t) acc[t] = has_factors ? ZRT_FMA(v[t], factor[t], acc[t]) : acc[t] + v[t];
  }
  float bias = p.bias != 0 ? Floats(p.bias).v[m] : 0.0;
  for (uint t = 0; t < n_rows; ++t)
    Floats(float_row(p.y, first_row + t, p.m)).v[m] = p.bias != 0 ? acc[t] + bias : acc[t];
}

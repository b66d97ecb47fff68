// Stores one head of K or V in its cell of the KV cache (KV_WRITE_BATCHED): the values head[0..n), as those of `token`
// (0 to 15) and `kv_head`. part: the K or the V of one layer in a page, with p.n_kv_heads heads. FORMAT is the type of
// the cache:
// - f32, f16, q8_0: 16 cells, one token's row of values each. f16 rounds to nearest even. q8_0 has blocks of 32 values
//   with d = f16(amax / 127) and q = round(x / d), clamped to -127..127; all q are 0 if d is 0. d is NaN if the block
//   has a NaN or an infinity, or if d exceeds f16.
// - i16 (integer_cells.glsl): codes with one scale per head. amax is the largest |x|, d is the least bf16 that is not
//   below amax * (1 / 32639), and a code is round(x * (1 / d)), clamped to -32639..32639. All codes are 0 if amax is
//   below 2^-100. d is NaN if the head has a NaN or an infinity.
const uint kI16 = 23;

// Converts head[first..first + 32) to a block of Q8_0 at address `to`. One invocation does it.
void store_block(uint first, uint64_t to) {
  float amax = 0.0, finite = 0.0;
  for (uint i = first; i < first + 32; ++i) {
    float a = abs(head[i]);
    amax = a > amax ? a : amax;
    finite = finite + head[i] * 0.0;
  }
  uint d = f32_to_f16(amax * 7.874015748031496e-3);
  bool is_nan = finite != 0.0 || d == 0x7c00u;
  if (is_nan) d = 0x7e00u;
  bool usable = !is_nan && d != 0u;
  float inverse = usable ? rcp(f16_to_f32(d)) : 0.0;
  Halves(to).v[0] = uint16_t(d);
  for (uint i = 0; i < 32; ++i) {
    float q = usable ? round_int(head[first + i] * inverse) : 0.0;
    Bytes(to + 2).v[i] = uint8_t(int(q > 127.0 ? 127.0 : q < -127.0 ? -127.0 : q) & 255);
  }
}

int code_of(float x, float inverse) { return int(clamp(round_int(x * inverse), -kMostCode, kMostCode)); }
void store_integers(uint64_t part, uint kv_head, uint token, bool is_key, uint n) {
  uint id = gl_LocalInvocationID.x;
  float amax = 0.0;
  for (uint i = id; i < n; i += kWidth) amax = max(amax, magnitude(head[i]));
  amax = largest(amax, 0.0);
  bool is_finite = amax < kInfinity, is_usable = is_finite && amax >= 7.888609052210118e-31;
  uint d = is_usable ? floatBitsToUint(amax * 3.0638195312349126e-5) + 0xFFFFu >> 16 : is_finite ? 0u : 0x7FC0u;
  float inverse = is_usable ? rcp(bf16_to_f32(d)) : 0.0;
  Halves codes = Halves(part + codes_at(kv_head, n));
  for (uint i = id; i < n; i += kWidth) {
    uint at = is_key ? (i / 2 * 16 + token) * 2 + i % 2 : (token / 2 * n + i) * 2 + token % 2;
    codes.v[at] = uint16_t((is_usable ? code_of(head[i], inverse) : 0) & 0xFFFF);
  }
  if (id == 0) Halves(part + scales_at(kv_head, p.n_kv_heads, n)).v[token] = uint16_t(d);
}

void store_head(uint64_t part, uint kv_head, uint token, bool is_key, uint n) {
  uint id = gl_LocalInvocationID.x, first = (token * p.n_kv_heads + kv_head) * n;  // in values of the part
  switch (FORMAT) {
    case kF32:
      for (uint i = id; i < n; i += kWidth) Floats(part).v[first + i] = head[i];
      break;
    case kF16:
      for (uint i = id; i < n; i += kWidth) Halves(part).v[first + i] = uint16_t(f32_to_f16(head[i]));
      break;
    case kQ8_0:
      for (uint b = id; b < n / 32; b += kWidth) store_block(32 * b, part + (first / 32 + b) * 34u);
      break;
    case kI16: store_integers(part, kv_head, token, is_key, n); break;
  }
}

// KV_WRITE_BATCHED with a cache of integers (integer_cells.glsl): stores each token's heads of K and V in the page
// pages[slot][pos / 16]. In each head amax is the largest |x|, d the least bf16 that is not below amax * (1 / 32639), and
// a code round(x * (1 / d)), held to -32639..32639. A head with amax below 2^-100 is all 0; a NaN or an infinity in it
// makes its d NaN.
// Grid: (heads of K and of V, tokens), a head a workgroup.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
layout(local_size_x = kWidth) in;
#include "exact_math.glsl"
#include "half.glsl"
#include "integer_cells.glsl"
#include "largest.glsl"
PUSH(KvWrite);

int code_of(float x, float inverse) { return int(clamp(round_int(x * inverse), -kMostCode, kMostCode)); }

void main() {
  uint id = gl_LocalInvocationID.x, n_heads = p.nk / p.head_dim;
  bool is_key = gl_WorkGroupID.x < n_heads;
  uint head = is_key ? gl_WorkGroupID.x : gl_WorkGroupID.x - n_heads, n = is_key ? p.head_dim : p.nv / n_heads;
  Floats x = Floats(float_row(is_key ? p.k : p.v, row() * n_heads + head, n));
  float amax = 0.0;
  for (uint i = id; i < n; i += kWidth) amax = max(amax, magnitude(x.v[i]));
  amax = largest(amax, 0.0);
  bool is_finite = amax < kInfinity, is_usable = is_finite && amax >= 7.888609052210118e-31;
  uint d = is_usable ? floatBitsToUint(amax * 3.0638195312349126e-5) + 0xFFFFu >> 16 : is_finite ? 0u : 0x7FC0u;
  float inverse = is_usable ? rcp(bf16_to_f32(d)) : 0.0;

  uint position = uint(Ints(p.positions).v[row()]), slot = uint(Ints(p.slots).v[row()]), token = position % 16;
  uint64_t part = p.cache + uint64_t(Words(p.pages).v[slot * p.width + position / 16]) * p.page_bytes +
                  (is_key ? 0u : p.v_offset);
  Halves codes = Halves(part + codes_at(head, n));
  for (uint i = id; i < n; i += kWidth) {
    uint at = is_key ? (i / 2 * 16 + token) * 2 + i % 2 : (token / 2 * n + i) * 2 + token % 2;
    codes.v[at] = uint16_t((is_usable ? code_of(x.v[i], inverse) : 0) & 0xFFFF);
  }
  if (id == 0) Halves(part + scales_at(head, n_heads, n)).v[token] = uint16_t(d);
}

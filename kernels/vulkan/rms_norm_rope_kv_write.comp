// Computes RMS_NORM of heads, ROPE and KV_WRITE_BATCHED for one token:
//   heads of q   normalized with q_w and rotated, in place
//   heads of k   normalized with k_w, rotated, and stored in the token's cell of the KV cache
//   heads of v   stored; with kNormedValues normalized before, without a weight
// If a weight is absent, the norm of q or k is left out; if the table is absent, RoPE is. RoPE turns a pair (a, b) into
// (a c - b s, a s + b c), where c and s are the table's cosine and sine of the token's position. With kNeox pairs are
// (i, i + n_rot/2), else (2i, 2i + 1), for i below n_rot/2.
// Order of sums: norms as in rms_norm.comp; a*c rounded, then fma(-b, s, a*c); a*s rounded, then fma(b, c, a*s); cells
// as in kv_cells.glsl.
// Grid: (heads of q, then of k, then of v; tokens). Each workgroup computes one head.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "squares.glsl"
#include "formats.glsl"
layout(local_size_x = kWidth) in;
#include "integer_cells.glsl"
#include "largest.glsl"
PUSH(RmsNormRopeKvWrite);
shared float head[kMostHeadDim], lanes[kWidth], run_sums[kWidth / 16];
#include "kv_cells.glsl"

// Normalizes the head in `head`; w is 0 if there is no weight.
void norm(uint64_t w, uint n) {
  uint id = gl_LocalInvocationID.x, begin = id / 16 * 256 + id % 16;
  float lane[16], sum = 0.0;
  for (uint j = 0; j < 16; ++j) lane[j] = begin + 16 * j < n ? head[begin + 16 * j] : 0.0;
  lanes[id] = sum_of_squares(lane);
  barrier();
  if (id % 16 == 0) {
    float run[16];
    for (int l = 0; l < 16; ++l) run[l] = lanes[id + l];
    run_sums[id / 16] = fold16(run);
  }
  barrier();
  for (uint run = 0; run * 256 < n; ++run) sum = sum + run_sums[run];
  float r = rsqrt(ZRT_FMA(sum, exact_div(1.0, float(int(n))), p.eps));
  for (uint i = id; i < n; i += kWidth) {
    float v = head[i] * r;
    head[i] = w != 0 ? v * Floats(w).v[i] : v;
  }
  barrier();
}

// Rotates the head in `head`.
void rotate() {
  uint pairs = p.n_rot / 2;
  Floats table = Floats(float_row(p.table, Words(p.rope_positions).v[row()], p.n_rot));
  for (uint i = gl_LocalInvocationID.x; i < pairs; i += kWidth) {
    uint first = (p.flags & kNeox) != 0u ? i : 2 * i, second = (p.flags & kNeox) != 0u ? first + pairs : first + 1;
    float a = head[first], b = head[second], c = table.v[2 * i], s = table.v[2 * i + 1];
    head[first] = ZRT_FMA(-b, s, a * c);
    head[second] = ZRT_FMA(b, c, a * s);
  }
  barrier();
}

void main() {
  uint id = gl_LocalInvocationID.x, h = gl_WorkGroupID.x;
  bool is_query = h < p.n_heads, is_key = !is_query && h < p.n_heads + p.n_kv_heads;
  uint kv_head = is_query ? 0 : (h - p.n_heads) % p.n_kv_heads, n = is_query || is_key ? p.head_dim : p.v_head_dim;
  Floats x = Floats(is_query ? float_row(p.q, row() * p.n_heads + h, n)
                             : float_row(is_key ? p.k : p.v, row() * p.n_kv_heads + kv_head, n));
  for (uint i = id; i < n; i += kWidth) head[i] = x.v[i];
  barrier();
  uint64_t w = is_query ? p.q_w : is_key ? p.k_w : 0;
  if (w != 0 || (!is_query && !is_key && (p.flags & kNormedValues) != 0u)) norm(w, n);
  if ((is_query || is_key) && p.table != 0) rotate();
  if (is_query) {
    for (uint i = id; i < n; i += kWidth) x.v[i] = head[i];
    return;
  }
  uint position = Words(p.positions).v[row()], slot = Words(p.slots).v[row()];
  uint64_t part = p.cache + uint64_t(Words(p.pages).v[slot * p.width + position / 16]) * p.page_bytes +
                  (is_key ? 0u : p.v_offset);
  store_head(part, kv_head, position % 16, is_key, n);
}

// Computes SSM_DELTA_NET, the gated delta rule, head by head and token by token. A row of x is [q | k | v] of a token
// after the convolution: q, k [n_k_heads, k_dim], v [n_v_heads, v_dim]. v head h reads key head h mod n_k_heads (tiled
// = 1) or h / (n_v_heads / n_k_heads) (tiled = 0). For each v head, with S its state [k_dim, v_dim]:
//   q = q / |q| / sqrt(k_dim), k = k / |k|, where |.|^2 has eps added
//   g = exp(a[h] * softplus(alpha + dt[h])), b = sigmoid(beta)
//   S = g S, u = (v - k S) b, S = S + k u^T, y = q S
// A token at position 0 begins with S = 0.
// Order of sums: |.|^2 by the float dot; k S and q S: for each column fma over the k_dim rows, ascending from 0; tokens
// in order (rule 8).
// Grid: (v heads, runs). A run is the tokens of one slot in the step. Each workgroup computes one head of a run; each
// invocation computes columns of S, kDeltaWidth apart.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kDeltaWidth) in;
PUSH(SsmDeltaNet);
shared float q[kMostKeyDim], k[kMostKeyDim], squares[32];

// Reads q and k of a key head, and returns 1 / |q| (x) and 1 / |k| (y). Each of them is one group of the float dot,
// because k_dim is at most 256.
vec2 read_key(uint64_t row_of_x, uint key_head) {
  uint id = gl_LocalInvocationID.x;
  Floats xq = Floats(row_of_x + uint64_t(key_head * p.k_dim) * 4u);
  Floats xk = Floats(row_of_x + uint64_t((p.n_k_heads + key_head) * p.k_dim) * 4u);
  for (uint i = id; i < p.k_dim; i += kDeltaWidth) {
    q[i] = xq.v[i];
    k[i] = xk.v[i];
  }
  barrier();
  if (id < 32) {
    float lane = 0.0;
    for (uint i = id % 16; i < p.k_dim; i += 16) {
      float value = id < 16 ? q[i] : k[i];
      lane = ZRT_FMA(value, value, lane);
    }
    squares[id] = lane;
  }
  barrier();
  float of_q[16], of_k[16];
  for (int l = 0; l < 16; ++l) {
    of_q[l] = squares[l];
    of_k[l] = squares[16 + l];
  }
  return vec2(rsqrt(fold16(of_q) + p.eps), rsqrt(fold16(of_k) + p.eps));
}

void main() {
  uint id = gl_LocalInvocationID.x, h = gl_WorkGroupID.x;
  uint key_head = p.tiled != 0u ? h % p.n_k_heads : h / (p.n_v_heads / p.n_k_heads);
  uint first = Words(p.runs).v[2 * row()], n = Words(p.runs).v[2 * row() + 1];
  uint columns = 2 * p.n_k_heads * p.k_dim + p.n_v_heads * p.v_dim;
  Floats state = Floats(float_row(p.state, Words(p.slots).v[first] * p.n_v_heads + h, p.k_dim * p.v_dim));
  float q_scale = rsqrt(float(int(p.k_dim)));
  for (uint t = first; t < first + n; ++t) {
    uint64_t x = float_row(p.x, t, columns);
    bool is_start = Words(p.positions).v[t] == 0u;
    vec2 r = read_key(x, key_head);
    for (uint i = id; i < p.k_dim; i += kDeltaWidth) {
      q[i] = q[i] * r.x * q_scale;
      k[i] = k[i] * r.y;
    }
    barrier();
    float alpha = Floats(float_row(p.alpha, t, p.n_v_heads)).v[h] + Floats(p.dt).v[h];
    float decay = exact_exp(Floats(p.a).v[h] * softplus(alpha));
    float beta = sigmoid(Floats(float_row(p.beta, t, p.n_v_heads)).v[h]);
    Floats v = Floats(x + uint64_t(2 * p.n_k_heads * p.k_dim + h * p.v_dim) * 4u);
    Floats y = Floats(float_row(p.y, t * p.n_v_heads + h, p.v_dim));
    for (uint j = id; j < p.v_dim; j += kDeltaWidth) {
      float u = 0.0, out_j = 0.0;
      for (uint i = 0; i < p.k_dim; ++i)
        u = ZRT_FMA(k[i], (is_start ? 0.0 : state.v[i * p.v_dim + j]) * decay, u);
      u = (v.v[j] - u) * beta;
      for (uint i = 0; i < p.k_dim; ++i) {
        float s = ZRT_FMA(k[i], u, (is_start ? 0.0 : state.v[i * p.v_dim + j]) * decay);
        state.v[i * p.v_dim + j] = s;
        out_j = ZRT_FMA(q[i], s, out_j);
      }
      y.v[j] = out_j;
    }
    barrier();
  }
}

// Computes MOE_SUM: z[t] = the sum over a token's choices j of weight_j * y[t][j], where weight_j = weights[t][j],
// times expert_scale[ids[t][j]] if expert_scale is given.
// Order of sums: acc = 0, then acc = fma(weight_j, y_j, acc) for j = 0, 1, ...
// Grid: (d / 64, tokens). Each invocation computes one value.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kWidth) in;
PUSH(MoeSum);

void main() {
  uint i = column();
  if (i >= p.d) return;
  float acc = 0.0;
  for (uint j = 0; j < p.n_used; ++j) {
    uint choice = row() * p.n_used + j;
    float weight = Floats(p.weights).v[choice];
    float scale = Floats(or_else(p.expert_scale, p.weights)).v[p.expert_scale != 0 ? Words(p.ids).v[choice] : 0];
    if (p.expert_scale != 0) weight = weight * scale;
    acc = ZRT_FMA(weight, Floats(float_row(p.y, choice, p.d)).v[i], acc);
  }
  Floats(float_row(p.z, row(), p.d)).v[i] = acc;
}

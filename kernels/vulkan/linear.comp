// LINEAR for few rows of x: y[t][m] = dot(w[m], x[t]) + bias[m]; linear.glsl says in which order.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kLinearWidth) in;
PUSH(Linear);
#include "linear.glsl"

uint64_t matrix() { return p.w; }
uint first_row() { return gl_WorkGroupID.x * kTokens; }
uint n_rows() { return kTokens == 1 ? 1 : Words(p.n_rows).v[0] - first_row(); }
uint64_t row_of_x(uint t) { return p.x + uint64_t(first_row() + min(t, n_rows() - 1)) * p.x_row_bytes; }
void store(uint t, uint m, float value) {
  Floats(float_row(p.y, first_row() + t, p.m)).v[m] = p.bias != 0 ? value + Floats(p.bias).v[m] : value;
}

// LINEAR for a row of x: y[t][m] = dot(w[m], x[t]) + bias[m]; linear.glsl says in which order.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kLinearWidth) in;
PUSH(Linear);
#include "linear.glsl"

uint64_t matrix() { return p.w; }
uint64_t row_of_x() { return p.x + uint64_t(gl_WorkGroupID.x) * p.x_row_bytes; }
void store(uint m, float value) {
  Floats(float_row(p.y, gl_WorkGroupID.x, p.m)).v[m] = p.bias != 0 ? value + Floats(p.bias).v[m] : value;
}

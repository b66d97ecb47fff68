// LINEAR for one row of x of groups of 256: linear_row.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
PUSH(Linear);
#include "linear_row.glsl"

uint64_t matrix() { return p.w; }
uint64_t row_of_x() { return p.x + uint64_t(gl_WorkGroupID.x) * p.x_row_bytes; }
void store(uint m, float value) {
  Floats(float_row(p.y, gl_WorkGroupID.x, p.m)).v[m] = p.bias != 0 ? value + Floats(p.bias).v[m] : value;
}

// MOE_LINEAR of rows of x of groups of 256, as moe_linear.comp says: linear_row.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
PUSH(MoeLinear);
#include "linear_row.glsl"

uint64_t matrix() { return p.w + uint64_t(Words(p.ids).v[gl_WorkGroupID.x]) * p.matrix_bytes; }
uint n_rows() { return 1; }
uint64_t row_of_x(uint t) { return p.x + uint64_t(gl_WorkGroupID.x / p.choices) * p.x_row_bytes; }
void store(uint t, uint m, float value) { Floats(float_row(p.y, gl_WorkGroupID.x, p.m)).v[m] = value; }

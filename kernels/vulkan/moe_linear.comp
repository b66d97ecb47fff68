// MOE_LINEAR: y[c] = LINEAR(x[c / choices], w[ids[c]]) for each choice c of an expert; linear.glsl says in which order.
// MOE_GATE_TOPK gives ids within the stack.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kLinearWidth) in;
PUSH(MoeLinear);
#include "linear.glsl"

uint64_t matrix() { return p.w + uint64_t(Words(p.ids).v[gl_WorkGroupID.x]) * p.matrix_bytes; }
uint64_t row_of_x() { return p.x + uint64_t(gl_WorkGroupID.x / p.choices) * p.x_row_bytes; }
void store(uint m, float value) { Floats(float_row(p.y, gl_WorkGroupID.x, p.m)).v[m] = value; }

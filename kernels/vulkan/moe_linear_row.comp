// Computes MOE_LINEAR of x in groups of 256 (linear_row.glsl, moe_linear_rows.glsl).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
PUSH(MoeLinear);
#include "linear_row.glsl"
#include "moe_linear_rows.glsl"

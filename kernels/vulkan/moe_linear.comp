// Computes MOE_LINEAR of floats, or of x in blocks of 32 (linear.glsl, moe_linear_rows.glsl).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kLinearWidth) in;
PUSH(MoeLinear);
#include "linear.glsl"
#include "moe_linear_rows.glsl"

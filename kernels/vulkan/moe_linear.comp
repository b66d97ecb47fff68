// MOE_LINEAR: linear.glsl says in which order.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kLinearWidth) in;
PUSH(MoeLinear);
#include "linear.glsl"
#include "moe_linear_rows.glsl"

// LINEAR for a row of x: linear.glsl says in which order.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kLinearWidth) in;
PUSH(Linear);
#include "linear.glsl"
#include "linear_rows.glsl"

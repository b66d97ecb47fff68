// Computes LINEAR of floats, or of x in blocks of 32, one row of x per workgroup. linear.glsl has the formula and the
// order of sums.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kLinearWidth) in;
PUSH(Linear);
#include "linear.glsl"
#include "linear_rows.glsl"

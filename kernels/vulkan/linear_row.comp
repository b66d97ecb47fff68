// Computes LINEAR for one row of x or a few, in groups of 256 (linear_row.glsl).
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
PUSH(Linear);
#include "linear_row.glsl"
#include "linear_rows.glsl"

// LINEAR for few rows of x by matrices whose elements invocations make themselves, which tests compare on any device:
// linear_matrix_few.glsl.
#version 460
#define ZRT_MATRICES_BY_HAND
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kMatrixWidth) in;
PUSH(Linear);
#include "linear_matrix_few.glsl"

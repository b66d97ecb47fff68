// Computes what linear_matrix.comp computes, but the invocations compute the elements of the matrices themselves
// (matrices.glsl). Tests run it on devices without cooperative matrices.
#version 460
#define ZRT_MATRICES_BY_HAND
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kMatrixWidth) in;
PUSH(Linear);
#include "linear_matrix.glsl"

// Computes what flash_attn_integer_matrix.comp computes, but the invocations compute the elements of the matrices
// themselves (matrices.glsl). Tests run it on devices without cooperative matrices.
#version 460
#define ZRT_MATRICES_BY_HAND
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kAttendMatrixWidth) in;
PUSH(FlashAttn);
#include "flash_attn_integer_matrix.glsl"

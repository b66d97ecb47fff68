// FLASH_ATTN of prompts over cells of integers by matrices whose elements invocations make themselves, which tests
// compare on any device: flash_attn_integer_matrix.glsl.
#version 460
#define ZRT_MATRICES_BY_HAND
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kAttendMatrixWidth) in;
PUSH(FlashAttn);
#include "flash_attn_integer_matrix.glsl"

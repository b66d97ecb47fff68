// Computes FLASH_ATTN of prompts over caches of 16-bit integers with the device's cooperative matrices
// (flash_attn_integer_matrix.glsl).
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "exact_math.glsl"
layout(local_size_x = kAttendMatrixWidth) in;
PUSH(FlashAttn);
#include "flash_attn_integer_matrix.glsl"

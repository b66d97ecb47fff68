// Computes LINEAR for many rows of x, in groups of 256, with the device's cooperative matrices (linear_matrix.glsl).
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kMatrixWidth) in;
PUSH(Linear);
#include "linear_matrix.glsl"

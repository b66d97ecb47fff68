// Matrices of int8 as the kernels of LINEAR use them: y = 257 a b, a of 16 rows of 32 and b of 16 columns of 32
// bytes, b once from the workgroup's memory and once by address; y column by column. cpp/vulkan/self_test.cpp holds
// it to integers. Grid: (1, 1).
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#include "common.glsl"
#include "dots.glsl"
layout(local_size_x = 32) in;
PUSH(SelfTest);
shared uint tile[256];
#include "matrices.glsl"

void main() {
  uint id = gl_LocalInvocationID.x;
  for (uint i = id; i < 128; i += 32) {
    tile[i] = Words(p.a).v[i];
    tile[128 + i] = Words(p.b).v[i];
  }
  barrier();
  MatrixA a = load_a(0, 8);
  MatrixC c = plus(times_256(multiply_add(a, load_b(128, 8), zero_matrix())),
                   multiply_add(a, load_b_from(p.b, 8), zero_matrix()));
  barrier();
  store_c(0, c, 16);
  barrier();
  for (uint i = id; i < 256; i += 32) Words(p.y).v[i] = tile[i];
}

// Multiplies matrices of int8 in the way in which the kernels of LINEAR do, for the self-test
// (cpp/vulkan/self_test.cpp): y = (256 + (r - 5) + 3 t) * (row r of a times column t of b). a has 16 rows of 32 bytes,
// b has 16 columns of 32 bytes. y is written twice, column by column: once by storing the matrix, and once element by
// element at the places that a second matrix gives. Grid: (1, 1).
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
#include "common.glsl"
#include "dots.glsl"
layout(local_size_x = 32) in;
PUSH(SelfTest);
// Rows lie kPitch words apart, as in the kernels, in the middle of an array that has other numbers everywhere else.
const uint kPitch = 44, kPlane = 16 * kPitch;
shared uvec4 tile[(3 * kPlane + 3) / 4];
#include "matrices.glsl"

void main() {
  uint id = gl_LocalInvocationID.x, a_at = kPlane + 8, b_at = 2 * kPlane + 16;
  for (uint i = id; i < 3 * kPlane; i += 32) WORD(i) = 0x5A5A5A5Au;
  barrier();
  for (uint i = id; i < 128; i += 32) {
    uint at = i / 8 * kPitch + i % 8;
    WORD(a_at + at) = Words(p.a).v[i];
    WORD(b_at + at) = Words(p.b).v[i];
  }
  barrier();
  MatrixC product = multiply_add(load_a(a_at, kPitch), load_b(b_at, kPitch), zero_matrix());
  barrier();
  for (uint i = id; i < 256; i += 32) WORD(i) = i;
  if (id < 16) WORD(256 + id) = id - 5;
  if (id < 16) WORD(272 + id) = 3 * id;
  barrier();
  MatrixC of_rows = times_each(product, load_c(256, 0)), of_columns = times_each(product, load_same_rows(272));
  MatrixC c = plus(times_256(product), plus(of_rows, of_columns)), places = load_c(0, 16);
#define WRITE(n) Ints(p.y).v[256 + element(places, n)] = element(c, n);
  WRITE(0) WRITE(1) WRITE(2) WRITE(3) WRITE(4) WRITE(5) WRITE(6) WRITE(7)
  store_c(kPlane, c, 16);
  barrier();
  for (uint i = id; i < 256; i += 32) Words(p.y).v[i] = WORD(kPlane + i);
}

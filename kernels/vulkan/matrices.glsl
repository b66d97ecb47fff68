// Cooperative matrices of a subgroup of 32 invocations: c += a b, where a is 16 x 32 and b is 32 x 16 of int8, and c is
// 16 x 16 of int32. The invocations of the subgroup hold the matrix together. The including kernel has the array
// `tile`, a workgroup's memory; places and strides in it are in words. Matrices c are stored column by column. With a
// stride of 0 all columns of a loaded c are the same; load_same_rows() makes all its rows the same.
// Which elements of c an invocation holds depends on the device, but they are the same for all c: element(c, n) for n
// below 8.
// glslc of Debian 12 has no cooperative matrices (VK_KHR_cooperative_matrix), but can emit any instruction by its
// number. It cannot name a type within a type, so the type of the elements is left out here and added when the module
// is loaded (cpp/vulkan/device/matrices.h).
// With ZRT_MATRICES_BY_HAND each invocation computes 8 elements of c itself. So the logic of the kernels can be tested
// on devices without cooperative matrices.
// Kernels give each matrix a name of its own and pass matrices by value. NVIDIA's driver keeps arrays of matrices in
// memory, and computes wrong numbers for some matrices that a function changes in place.
#extension GL_KHR_shader_subgroup_basic : require
// The memory for one matrix of sums. Its columns have four words more than they need, so that neighbouring columns lie
// in different banks.
const uint kSumPitch = 20, kSums = 16 * kSumPitch;
#define WORD(at) tile[(at) / 4][(at) % 4]
#ifdef ZRT_MATRICES_BY_HAND
#define UNROLLED [[dont_unroll]]  // because a driver that compiles for a processor would take minutes
struct MatrixA {
  uint at, stride;
};
struct MatrixB {
  uint at, stride;
};
struct MatrixC {
  int v[8];
};
MatrixA load_a(uint at, uint stride) { return MatrixA(at, stride); }
MatrixB load_b(uint at, uint stride) { return MatrixB(at, stride); }
MatrixC zero_matrix() {
  MatrixC c;
  for (uint i = 0; i < 8; ++i) c.v[i] = 0;
  return c;
}
uvec2 element_of(uint i) {
  uint e = gl_LocalInvocationID.x % 32 + 32 * i;
  return uvec2(e % 16, e / 16);
}
MatrixC multiply_add(MatrixA a, MatrixB b, MatrixC c) {
  for (uint i = 0; i < 8; ++i) {
    uvec2 e = element_of(i);
    for (uint k = 0; k < 8; ++k)
      c.v[i] += dot4(WORD(a.at + e.x * a.stride + k), WORD(b.at + e.y * b.stride + k));
  }
  return c;
}
MatrixC times_256(MatrixC c) {
  for (uint i = 0; i < 8; ++i) c.v[i] *= 256;
  return c;
}
MatrixC plus(MatrixC a, MatrixC b) {
  for (uint i = 0; i < 8; ++i) a.v[i] += b.v[i];
  return a;
}
MatrixC times_each(MatrixC a, MatrixC b) {
  for (uint i = 0; i < 8; ++i) a.v[i] *= b.v[i];
  return a;
}
int element(MatrixC c, uint n) { return c.v[n]; }
MatrixC load_c(uint at, uint stride) {
  MatrixC c;
  for (uint i = 0; i < 8; ++i) c.v[i] = int(WORD(at + element_of(i).y * stride + element_of(i).x));
  return c;
}
MatrixC load_same_rows(uint at) {
  MatrixC c;
  for (uint i = 0; i < 8; ++i) c.v[i] = int(WORD(at + element_of(i).y));
  return c;
}
void store_c(uint at, MatrixC c, uint stride) {
  for (uint i = 0; i < 8; ++i) WORD(at + element_of(i).y * stride + element_of(i).x) = uint(c.v[i]);
}
void subgroup_barrier() { barrier(); }
#else
#define UNROLLED [[unroll]]
#extension GL_EXT_spirv_intrinsics : require
#define MATRIX(rows, columns, use) \
  spirv_type(extensions = ["SPV_KHR_cooperative_matrix"], capabilities = [6022, 39], id = 4456, 3, rows, columns, use)
#define MatrixA MATRIX(16, 32, 0)
#define MatrixB MATRIX(32, 16, 1)
#define MatrixC MATRIX(16, 16, 2)
// The operands of loads and stores of a workgroup's memory: loads see what others wrote (16), stores are seen by others
// (8), the memory is not private to the invocation (32), and the scope is the workgroup (2).
spirv_instruction(id = 4457) MatrixA load_rows(spirv_by_reference uvec4 from, int row_major, uint stride,
                                               spirv_literal int operands, int scope);
spirv_instruction(id = 4457) MatrixB load_columns(spirv_by_reference uvec4 from, int column_major, uint stride,
                                                  spirv_literal int operands, int scope);
spirv_instruction(id = 4457) MatrixC load_sums(spirv_by_reference uvec4 from, int is_column_major, uint stride,
                                               spirv_literal int operands, int scope);
spirv_instruction(id = 4458) void store_columns(spirv_by_reference uvec4 to, MatrixC c, int column_major, uint stride,
                                                spirv_literal int operands, int scope);
// signs = 15: all matrices are signed.
spirv_instruction(id = 4459) MatrixC multiply_add_signed(MatrixA a, MatrixB b, MatrixC c, spirv_literal int signs);
spirv_instruction(id = 80) MatrixC filled_with(int value);
spirv_instruction(id = 143) MatrixC times(MatrixC c, int factor);
spirv_instruction(id = 128) MatrixC plus(MatrixC a, MatrixC b);
spirv_instruction(id = 132) MatrixC times_each(MatrixC a, MatrixC b);
spirv_instruction(id = 81) int element(MatrixC c, spirv_literal int n);
#define load_a(at, stride) load_rows(tile[(at) / 4], 0, (stride) / 4, 48, 2)
#define load_b(at, stride) load_columns(tile[(at) / 4], 1, (stride) / 4, 48, 2)
#define load_c(at, stride) load_sums(tile[(at) / 4], 1, (stride) / 4, 48, 2)
#define load_same_rows(at) load_sums(tile[(at) / 4], 0, 0, 48, 2)
#define zero_matrix() filled_with(0)
#define multiply_add(a, b, c) multiply_add_signed(a, b, c, 15)
#define times_256(c) times(c, 256)
#define store_c(at, c, stride) store_columns(tile[(at) / 4], c, 1, (stride) / 4, 40, 2)
// Waits for the subgroup alone. GLSL's memoryBarrierShared() would be a barrier of the whole device.
void subgroup_barrier() {
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared,
                 gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
}
#endif

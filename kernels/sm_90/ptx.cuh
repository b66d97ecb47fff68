// What C++ has no word for: each function is an instruction or two of PTX. A tool that runs the kernels elsewhere
// replaces this file alone (tests_cpp/cuda_sim).
#pragma once

#include <stdint.h>

// Memory of the workgroup whose size the launch gives: `type name[]`. All such names of a kernel are one address.
#define ZRT_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

namespace zinc_rt::cuda {

// Programmatic dependent launch: what a kernel reads that another writes, it reads after this. Every thread calls it
// first, also one that has nothing to do: the end of a kernel stands for the end of all before it.
__device__ __forceinline__ void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// The next kernel may be set up while this one runs.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// f16_to_f32 of kernels/common/half.h in one instruction: the same bits but for what a NaN carries.
__device__ __forceinline__ float widen_f16(uint16_t half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
}

// Of both halves of a word, the lower one first.
__device__ __forceinline__ float2 widen_f16_pair(uint32_t pair) {
  float2 value;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
      : "=f"(value.x), "=f"(value.y)
      : "r"(pair));
  return value;
}

// 16 bytes of global memory to shared memory, both aligned to 16, on their way until wait_for_copies.
__device__ __forceinline__ void copy_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from));
}
// The same, or zeros: then nothing is read.
__device__ __forceinline__ void copy_16_or_zeros(void* to, const void* from, bool is_copy) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
      "l"(from), "r"(is_copy ? 16 : 0));
}
// The same of 4 bytes.
__device__ __forceinline__ void copy_4(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from));
}
// For the copies of this thread.
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}
// The copies of this thread since the last end of a batch are one, also where there were none; then all batches but the
// last kLeft are waited for.
__device__ __forceinline__ void end_copy_batch() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void wait_for_copy_batches() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// c += A B of a warp, m16n8k32: signed or unsigned A, signed B.
template <bool kSigned>
__device__ __forceinline__ void mma32(int (&c)[4], const uint32_t (&a)[4], uint2 b) {
  if constexpr (kSigned)
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
  else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}
// The same of 16 values of k. a0, a1 and b are the first or the last registers of mma32's.
template <bool kSigned>
__device__ __forceinline__ void mma16(int (&c)[4], uint32_t a0, uint32_t a1, uint32_t b) {
  if constexpr (kSigned)
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(b));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(b));
}
// c += A B of a warp, m16n8k16 of f16 values, sums in f32.
__device__ __forceinline__ void mma16_f16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Four matrices of 8 by 8 f16 values of shared memory, whose rows lanes 0 to 7, 8 to 15, ... point to, aligned to 16: a
// lane gets values lane % 4 * 2 and the next of row lane / 4 of each.
__device__ __forceinline__ void load_matrices(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}
// The same of the transposed matrices.
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

// Two floats to the halves of a word, the first to the lower one.
__device__ __forceinline__ uint32_t f16_pair(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
// 2^x and 1 / x by the hardware's tables, a few units in the last place off. For arithmetic `fast` alone.
__device__ __forceinline__ float approx_exp2(float x) {
  float value;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}
__device__ __forceinline__ float approx_rcp(float x) {
  float value;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(x));
  return value;
}

}  // namespace zinc_rt::cuda

// The language of these kernels: HIP C++ as clang itself knows it, without AMD's headers; what is shared with the host,
// and what is done between the lanes of a wave. Waves have 32 lanes.
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))

// Functions of these headers are for host and device.
#pragma clang force_cuda_host_device begin
#include <stdint.h>
#include <string.h>

#include "kernels/common/act_q8.h"
#include "kernels/common/digits.h"
#include "kernels/common/exact_math.h"
#include "kernels/common/fold.h"
#include "kernels/common/half.h"
#include "kernels/common/kv_integer.h"
#include "kernels/common/operands.h"
#include "kernels/common/philox.h"
#include "kernels/common/push.h"
#include "kernels/common/quant_blocks.h"
#include "kernels/common/sample_params.h"
#include "kernels/rdna/dtypes.h"
#include "kernels/rdna/op_args.h"
#include "kernels/rdna/product_args.h"
#pragma clang force_cuda_host_device end

#define ZRT_MEMBER __device__ __forceinline__  // of an object
#define ZRT_DEVICE static ZRT_MEMBER

// The kernel of an op, by workgroups of `threads`.
#define ZRT_KERNEL(name, threads)                                                              \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads))) void name( \
      const zinc_rt::rdna::OpArgs args)

namespace zinc_rt::rdna {

constexpr uint32_t kWave = 32;

ZRT_DEVICE uint32_t thread() {
  return __builtin_amdgcn_workitem_id_x();
}
ZRT_DEVICE uint32_t group(int axis) {
  if (axis == 0) return __builtin_amdgcn_workgroup_id_x();
  return axis == 1 ? __builtin_amdgcn_workgroup_id_y() : __builtin_amdgcn_workgroup_id_z();
}

// Global memory: a plain pointer could be of any kind, which takes slower instructions.
template <class T>
ZRT_DEVICE T* at_address(uint64_t address) {
  return (T*)(__attribute__((address_space(1))) T*)address;
}
template <class T>
ZRT_DEVICE T* buffer(const OpArgs& args, int i) {
  return at_address<T>(args.buffers[i]);
}
template <class T>
ZRT_DEVICE T* scratch(const OpArgs& args) {
  return at_address<T>(args.scratch);
}
template <class T>
ZRT_DEVICE T constants(const OpArgs& args) {
  static_assert(sizeof(T) <= sizeof(args.push), "push constants of an op");
  T value;
  memcpy(&value, args.push, sizeof(value));
  return value;
}
// A dimension: a number, or that of the step.
ZRT_DEVICE uint32_t dim(const OpArgs& args, int i) {
  const uint32_t symbol = args.symbols[i];
  if (symbol == kSymbolicTokens) return args.n_tokens;
  return symbol == kSymbolicOutputs ? args.n_outputs : symbol;
}

// All waves of the workgroup come here before any goes on; what they wrote to LDS is seen.
ZRT_DEVICE void workgroup_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

ZRT_DEVICE uint32_t from_lane(uint32_t value, uint32_t lane) {
  return (uint32_t)__builtin_amdgcn_ds_bpermute((int)(lane * 4), (int)value);
}
ZRT_DEVICE float from_lane(float value, uint32_t lane) {
  return f32_from_bits(from_lane(f32_bits(value), lane));
}
// A product of numbers of 24 bits with a sign, which an instruction makes at the rate of all others.
ZRT_DEVICE int product24(int a, int b) {
  return ((int)((uint32_t)a << 8) >> 8) * ((int)((uint32_t)b << 8) >> 8);
}

// c + a b of such numbers, as one instruction: the compiler would add two products at once, which takes three.
ZRT_DEVICE int add_product24(int a, int b, int c) {
  int sum;
  asm("v_mad_i32_i24 %0, %1, %2, %3" : "=v"(sum) : "v"(a), "v"(b), "v"(c));
  return sum;
}

// The largest of the wave's numbers, the least, for all lanes.
ZRT_DEVICE uint32_t largest_of_wave(uint32_t value) {
  for (uint32_t other = 16; other > 0; other /= 2) {
    const uint32_t there = from_lane(value, (thread() % kWave) ^ other);
    value = there > value ? there : value;
  }
  return value;
}
ZRT_DEVICE uint32_t least_of_wave(uint32_t value) {
  return ~largest_of_wave(~value);
}
// Rule 4 of docs/arithmetic.md: the 16 sums of a half of the wave, folded, for all lanes of the half.
ZRT_DEVICE float fold_half(float sum) {
  for (uint32_t other = 8; other > 0; other /= 2) sum = sum + from_lane(sum, (thread() % kWave) ^ other);
  return sum;
}

ZRT_DEVICE float quiet_nan() {
  return f32_from_bits(0x7FC00000u);
}

}  // namespace zinc_rt::rdna

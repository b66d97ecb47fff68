// What every kernel of this folder includes. The kernels are written in HIP C++ as clang itself understands it, without
// AMD's headers. This file defines the qualifiers, includes the headers that are shared with the host, and has
// functions for kernel arguments and for the lanes of a wave.
// Terms: 32 threads are a wave, and a thread's place in its wave is its lane. A workgroup is one wave or several, which
// share a fast memory, LDS. A launch starts a grid of workgroups along up to three axes.
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))

// The functions of the headers that follow are compiled for host and device.
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
#include "kernels/common/router.h"
#include "kernels/common/sample_params.h"
#include "kernels/common/sink.h"
#include "kernels/rdna/dtypes.h"
#include "kernels/rdna/op_args.h"
#include "kernels/rdna/product_args.h"
#pragma clang force_cuda_host_device end

#define ZRT_MEMBER __device__ __forceinline__  // for member functions
#define ZRT_DEVICE static ZRT_MEMBER

// Defines the kernel `name`, whose workgroups have `threads` threads. Its arguments are `args`.
#define ZRT_KERNEL(name, threads)                                                              \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads))) void name( \
      const zinc_rt::rdna::OpArgs args)

namespace zinc_rt::rdna {

constexpr uint32_t kWave = 32;

// thread() returns the thread's number in its workgroup; group() returns the workgroup's number along an axis of the
// grid.
ZRT_DEVICE uint32_t thread() {
  return __builtin_amdgcn_workitem_id_x();
}
ZRT_DEVICE uint32_t group(int axis) {
  if (axis == 0) return __builtin_amdgcn_workgroup_id_x();
  return axis == 1 ? __builtin_amdgcn_workgroup_id_y() : __builtin_amdgcn_workgroup_id_z();
}

// Returns a pointer that the compiler knows to be one to global memory. A plain pointer might also be one to LDS, and
// its accesses take slower instructions.
template <class T>
ZRT_DEVICE T* at_address(uint64_t address) {
  return (T*)(__attribute__((address_space(1))) T*)address;
}
// Return parts of a kernel's arguments (op_args.h): the buffer with number i, the scratch memory, the push constants.
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
// Returns symbol i of the arguments. If it stands for the step's number of tokens or of rows with logits, that number
// is returned.
ZRT_DEVICE uint32_t dim(const OpArgs& args, int i) {
  const uint32_t symbol = args.symbols[i];
  if (symbol == kSymbolicTokens) return args.n_tokens;
  return symbol == kSymbolicOutputs ? args.n_outputs : symbol;
}

// Waits until all waves of the workgroup have arrived. Afterwards each of them sees what the others wrote to LDS and to
// global memory before.
ZRT_DEVICE void workgroup_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// Returns the `value` of another lane of the wave. REQUIRES: that lane executes the call, too.
ZRT_DEVICE uint32_t from_lane(uint32_t value, uint32_t lane) {
  return (uint32_t)__builtin_amdgcn_ds_bpermute((int)(lane * 4), (int)value);
}
ZRT_DEVICE float from_lane(float value, uint32_t lane) {
  return f32_from_bits(from_lane(f32_bits(value), lane));
}
// Returns a * b for signed numbers of 24 bits. Their product is one instruction at full rate; a product of 32-bit
// numbers is slower.
ZRT_DEVICE int product24(int a, int b) {
  return ((int)((uint32_t)a << 8) >> 8) * ((int)((uint32_t)b << 8) >> 8);
}

// Returns c + a * b for signed 24-bit numbers a and b, by one instruction. It is written in assembly because the
// compiler combines two such sums into three instructions.
ZRT_DEVICE int add_product24(int a, int b, int c) {
  int sum;
  asm("v_mad_i32_i24 %0, %1, %2, %3" : "=v"(sum) : "v"(a), "v"(b), "v"(c));
  return sum;
}

// Return the largest and the least of the wave's numbers, to all lanes.
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
// Returns the sum of 16 numbers, one per lane of a half wave, to all lanes of that half. The order is that of
// kernels/common/fold.h (rule 4 of docs/arithmetic.md).
ZRT_DEVICE float fold_half(float sum) {
  for (uint32_t other = 8; other > 0; other /= 2) sum = sum + from_lane(sum, (thread() % kWave) ^ other);
  return sum;
}

ZRT_DEVICE float quiet_nan() {
  return f32_from_bits(0x7FC00000u);
}

// Returns what GLU makes of a value of gate and one of up. act: push::Activation.
ZRT_DEVICE float glu(uint32_t act, float gate, float up) {
  if (act == push::kSwigluOai) return exact::swiglu_oai(gate, up);
  return (act == push::kGeluTanh ? exact::gelu_tanh(gate) : exact::silu(gate)) * up;
}

}  // namespace zinc_rt::rdna

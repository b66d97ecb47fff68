// Operations that C++ cannot express: each function is one or two instructions of PTX. All PTX is in this file, so that
// the simulator (tests_cpp/cuda_sim) can run the kernels on a CPU by replacing this file alone.
#pragma once

#include <stdint.h>

#include "kernels/cuda/args.h"

// Declares `type name[]`, the shared memory of the workgroup whose size the launch sets. If a kernel uses the macro
// several times, all names have the same address.
#define ZRT_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

namespace zinc_rt::cuda {

// Programmatic dependent launch: waits until all kernels before this one have ended and their writes are visible. A
// kernel must not read what other kernels write before this call; data that never changes, such as weights, may be read
// earlier. At least one thread of every grid must call it, because later kernels conclude from the end of this kernel
// that all kernels before it have ended, too.
__device__ __forceinline__ void wait_for_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Allows the next kernel to be set up and started while this one runs.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Returns a word whose byte i is byte (selector >> 4 * i) % 8 of the eight bytes of a and b. The top bit of each of the
// selector's 4-bit numbers must be 0. __byte_perm would clear it, which costs an instruction.
__device__ __forceinline__ uint32_t select_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(selector));
  return bytes;
}

// Requests a line of 128 bytes of global memory that no kernel writes to be brought to the L2 cache. Nothing waits for
// it.
__device__ __forceinline__ void prefetch_line(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

// Load 16 bytes (2 bytes) of global memory that no kernel writes and that will not be read again soon, without keeping
// them in the L1 cache. The compiler keeps the order of these calls, also relative to wait_for_inputs().
__device__ __forceinline__ uint4 stream_16(const void* at) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}
__device__ __forceinline__ uint16_t stream_2(const void* at) {
  uint16_t v;
  asm volatile("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(v) : "l"(at));
  return v;
}

// Does what f16_to_f32 of kernels/common/half.h does, in one instruction. Only the payload of a NaN may differ.
__device__ __forceinline__ float widen_f16(uint16_t half) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
}

// Converts both halves of a word, the lower half first.
__device__ __forceinline__ float2 widen_f16_pair(uint32_t pair) {
  float2 value;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
      : "=f"(value.x), "=f"(value.y)
      : "r"(pair));
  return value;
}

// Returns byte i of a word, sign-extended to 32 bits.
__device__ __forceinline__ uint32_t signed_byte(uint32_t word, uint32_t i) {
  uint32_t value;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(value) : "r"(word), "r"((8 + i) * 0x1110 + i));
  return value;
}

// Returns an address in shared memory in the form that instructions take.
__device__ __forceinline__ uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

// Starts a copy of 16 bytes from global to shared memory; both addresses are multiples of 16. The data may be used
// after wait_for_copies() or wait_for_copy_batches().
__device__ __forceinline__ void copy_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}
// Starts a copy of 16 bytes like copy_16(), or writes 16 zero bytes and reads nothing if is_copy is false.
__device__ __forceinline__ void copy_16_or_zeros(void* to, const void* from, bool is_copy) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(is_copy ? 16 : 0));
}
// Starts a copy of 4 bytes.
__device__ __forceinline__ void copy_4(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from));
}
// Waits for all copies that this thread has started.
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}
// end_copy_batch() makes the copies that this thread has started since the last call one batch, which may be empty.
// wait_for_copy_batches() waits for all of the thread's batches but the latest kLeft.
__device__ __forceinline__ void end_copy_batch() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void wait_for_copy_batches() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// The warp computes c += A B, m16n8k32. A is signed or unsigned bytes, B is signed bytes; B may be unsigned if A is
// signed.
template <bool kSigned, bool kSignedB = true>
__device__ __forceinline__ void mma32(int (&c)[4], const uint32_t (&a)[4], uint2 b) {
  static_assert(kSigned || kSignedB);
  if constexpr (!kSignedB)
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
  else if constexpr (kSigned)
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
  else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}
// The warp computes c += A B, m16n8k16. a0, a1 and b are the first (or the last) registers that mma32 would take.
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
// The warp computes c += A B, m16n8k16, of f16 values with sums in f32.
__device__ __forceinline__ void mma16_f16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Loads four matrices of 8 x 8 f16 values from shared memory. Lane l passes the address of row l % 8 of matrix l / 8, a
// multiple of 16. m[i] gets two values of matrix i: those at row lane / 4, columns lane % 4 * 2 and lane % 4 * 2 + 1.
__device__ __forceinline__ void load_matrices(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}
// Loads matrices like load_matrices(), each transposed.
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}

// Returns the larger of two floats, or NaN if either is NaN.
__device__ __forceinline__ float max_or_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}
// Rounds two floats to f16 and returns them as a word, `low` in its lower half.
__device__ __forceinline__ uint32_t f16_pair(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
// Return 2^x (1 / x) as the hardware approximates it, with an error of a few units in the last place. Only arithmetic
// `fast` may use them.
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

// Rounds two floats to bf16 and returns them as a word, `low` in its lower half.
__device__ __forceinline__ uint32_t bf16_pair(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
// Returns a * b + c for two pairs of bf16 numbers.
__device__ __forceinline__ uint32_t fma_bf16_pair(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t pair;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(a), "r"(b), "r"(c));
  return pair;
}

// The rest of this file exists only in machine code for sm_90a (Hopper): barriers in shared memory that count threads
// and bytes, bulk copies that report to them, and products of a warpgroup (wgmma). Kernels that need these have an
// empty body on other GPUs, where the planner never chooses them.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ZRT_HAS_WGMMA 1

// Initializes a barrier. Each of its phases ends when `count` arrivals and all expected bytes have come.
__device__ __forceinline__ void barrier_init(uint64_t* barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}
// Makes initialized barriers visible to bulk copies. Call it before the __syncthreads() that follows their
// initialization.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
}
// Counts one arrival of this thread at the barrier.
__device__ __forceinline__ void barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
// Arrives at the barrier, and makes its current phase also wait for `bytes` bytes of bulk copies.
__device__ __forceinline__ void barrier_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
// Waits until the phase with that parity has ended. The first phase has parity 0. Waiting for parity 1 before it has
// ended returns at once.
__device__ __forceinline__ void barrier_wait(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra ended;\n"
      "bra again;\n"
      "ended:\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}
// Starts a bulk copy of `bytes` bytes from global to shared memory. Both addresses and `bytes` are multiples of 16. The
// barrier counts the bytes.
__device__ __forceinline__ void bulk_copy(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}
// Starts a copy of a box of a tensor to shared memory. The tensor map describes the tensor and the size of a box
// (TensorMap); the box begins at index (x, y, z). Elements outside the tensor become zeros. `to` is a multiple of
// 1,024. The barrier counts the bytes of a whole box.
__device__ __forceinline__ void tensor_copy(void* to, const TensorMap& map, uint32_t x, uint32_t y, uint32_t z,
                                            uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
      "[%5];" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier))
      : "memory");
}
// Sets the number of registers of each thread of the calling warpgroup: give_registers() lowers it, take_registers()
// raises it. All threads of the warpgroup call it.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Returns the descriptor of a wgmma operand in shared memory: rows of 128 bytes (64 bf16 values) with the swizzle of
// 128 bytes (piece p of 16 bytes at place p ^ row % 8), as wgmma_args.h lays out x. Adding 2 to the descriptor moves it
// by 32 bytes, which are 16 bf16 values.
__device__ __forceinline__ uint64_t wgmma_operand(const void* rows) {
  return uint64_t{1} << 62 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 16 | (shared_address(rows) & 0x3FFFF) >> 4;
}
// Must come before the products if this thread has written their registers.
__device__ __forceinline__ void wgmma_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// wgmma_end_batch() makes the products since the last call one batch. wgmma_wait_for_batches() waits for all batches
// but the latest kLeft.
__device__ __forceinline__ void wgmma_end_batch() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void wgmma_wait_for_batches() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
// wgmma(): the warpgroup computes d += A B (adds true) or d = A B (false), m64nNk16 of bf16. Warp w has rows 16 w to 16
// w + 15 of A and d. Lane l of a warp holds:
// - of A: registers 0 and 2 are of row l / 4, registers 1 and 3 of row l / 4 + 8. Registers 0 and 1 hold values l % 4 *
//   2 and the next one; registers 2 and 3 hold those 8 further
// - of d, for each 8 columns: columns l % 4 * 2 and the next one of row l / 4, then the same of row l / 4 + 8
// The macros below write the operands of d: ZRT_NAMES_* are their names in the text, ZRT_SUMS_* the operands
// themselves.
#define ZRT_NAMES_4 "%0, %1, %2, %3"
#define ZRT_NAMES_8 ZRT_NAMES_4 ", %4, %5, %6, %7"
#define ZRT_NAMES_16 ZRT_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define ZRT_NAMES_32 ZRT_NAMES_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ZRT_NAMES_64                                                                                            \
  ZRT_NAMES_32                                                                                                  \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, " \
  "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define ZRT_NAMES_128                                                                                                \
  ZRT_NAMES_64                                                                                                       \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, " \
  "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, " \
  "%107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, "     \
  "%125, %126, %127"
#define ZRT_SUMS_4(kind, i) kind(d[i]), kind(d[i + 1]), kind(d[i + 2]), kind(d[i + 3])
#define ZRT_SUMS_8(kind, i) ZRT_SUMS_4(kind, i), ZRT_SUMS_4(kind, i + 4)
#define ZRT_SUMS_16(kind, i) ZRT_SUMS_8(kind, i), ZRT_SUMS_8(kind, i + 8)
#define ZRT_SUMS_32(kind) ZRT_SUMS_16(kind, 0), ZRT_SUMS_16(kind, 16)
#define ZRT_SUMS_64(kind) ZRT_SUMS_32(kind), ZRT_SUMS_16(kind, 32), ZRT_SUMS_16(kind, 48)
#define ZRT_SUMS_128(kind) \
  ZRT_SUMS_64(kind), ZRT_SUMS_16(kind, 64), ZRT_SUMS_16(kind, 80), ZRT_SUMS_16(kind, 96), ZRT_SUMS_16(kind, 112)
// Writes one wgmma instruction. shape: shape and types. names: the names of d's operands. read: the other operands.
// adds: the name of the last operand, which says whether d is added to.
#define ZRT_WGMMA(shape, names, read, adds) \
  "{ .reg .pred adds; setp.ne.b32 adds, " adds ", 0; wgmma.mma_async.sync.aligned." shape " {" names "}, " read "; }"
__device__ __forceinline__ void wgmma(float (&d)[64], const uint32_t (&a)[4], uint64_t b, bool adds) {
  asm volatile(ZRT_WGMMA("m64n128k16.f32.bf16.bf16", ZRT_NAMES_64, "{%64, %65, %66, %67}, %68, adds, 1, 1, 0", "%69")
               : ZRT_SUMS_64("+f")
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(adds)));
}
__device__ __forceinline__ void wgmma(float (&d)[32], const uint32_t (&a)[4], uint64_t b, bool adds) {
  asm volatile(ZRT_WGMMA("m64n64k16.f32.bf16.bf16", ZRT_NAMES_32, "{%32, %33, %34, %35}, %36, adds, 1, 1, 0", "%37")
               : ZRT_SUMS_32("+f")
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(adds)));
}
// wgmma_shared(): like wgmma(), with A in shared memory as well. Its 64 rows have the layout of those of B.
__device__ __forceinline__ void wgmma_shared(float (&d)[64], uint64_t a, uint64_t b, bool adds) {
  asm volatile(ZRT_WGMMA("m64n128k16.f32.bf16.bf16", ZRT_NAMES_64, "%64, %65, adds, 1, 1, 0, 0", "%66")
               : ZRT_SUMS_64("+f")
               : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}
__device__ __forceinline__ void wgmma_shared(float (&d)[32], uint64_t a, uint64_t b, bool adds) {
  asm volatile(ZRT_WGMMA("m64n64k16.f32.bf16.bf16", ZRT_NAMES_32, "%32, %33, adds, 1, 1, 0, 0", "%34")
               : ZRT_SUMS_32("+f")
               : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}
// wgmma_bytes(): the warpgroup computes d += A B (adds true) or d = A B (false), m64nNk32 of bytes. A is signed
// (kSigned) or unsigned, B signed. Of A, a lane has four values from l % 4 * 4 on in registers 0 and 1, and those 16
// further in registers 2 and 3. The macro's last arguments (...) are the operands of d.
#define ZRT_WGMMA_BYTES(shape, names, read, adds_name, ...)                                          \
  if constexpr (kSigned)                                                                             \
    asm volatile(ZRT_WGMMA(shape ".s32.s8.s8", names, read, adds_name)                               \
                 : __VA_ARGS__                                                                       \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(adds))); \
  else                                                                                               \
    asm volatile(ZRT_WGMMA(shape ".s32.u8.s8", names, read, adds_name)                               \
                 : __VA_ARGS__                                                                       \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(adds)))
template <bool kSigned>
__device__ __forceinline__ void wgmma_bytes(int (&d)[128], const uint32_t (&a)[4], uint64_t b, bool adds) {
  ZRT_WGMMA_BYTES("m64n256k32", ZRT_NAMES_128, "{%128, %129, %130, %131}, %132, adds", "%133", ZRT_SUMS_128("+r"));
}
template <bool kSigned>
__device__ __forceinline__ void wgmma_bytes(int (&d)[64], const uint32_t (&a)[4], uint64_t b, bool adds) {
  ZRT_WGMMA_BYTES("m64n128k32", ZRT_NAMES_64, "{%64, %65, %66, %67}, %68, adds", "%69", ZRT_SUMS_64("+r"));
}
template <bool kSigned>
__device__ __forceinline__ void wgmma_bytes(int (&d)[32], const uint32_t (&a)[4], uint64_t b, bool adds) {
  ZRT_WGMMA_BYTES("m64n64k32", ZRT_NAMES_32, "{%32, %33, %34, %35}, %36, adds", "%37", ZRT_SUMS_32("+r"));
}
template <bool kSigned>
__device__ __forceinline__ void wgmma_bytes(int (&d)[16], const uint32_t (&a)[4], uint64_t b, bool adds) {
  ZRT_WGMMA_BYTES("m64n32k32", ZRT_NAMES_16, "{%16, %17, %18, %19}, %20, adds", "%21", ZRT_SUMS_16("+r", 0));
}
template <bool kSigned>
__device__ __forceinline__ void wgmma_bytes(int (&d)[8], const uint32_t (&a)[4], uint64_t b, bool adds) {
  ZRT_WGMMA_BYTES("m64n16k32", ZRT_NAMES_8, "{%8, %9, %10, %11}, %12, adds", "%13", ZRT_SUMS_8("+r", 0));
}
template <bool kSigned>
__device__ __forceinline__ void wgmma_bytes(int (&d)[4], const uint32_t (&a)[4], uint64_t b, bool adds) {
  ZRT_WGMMA_BYTES("m64n8k32", ZRT_NAMES_4, "{%4, %5, %6, %7}, %8, adds", "%9", ZRT_SUMS_4("+r", 0));
}
#undef ZRT_NAMES_4
#undef ZRT_NAMES_8
#undef ZRT_NAMES_16
#undef ZRT_NAMES_32
#undef ZRT_NAMES_64
#undef ZRT_NAMES_128
#undef ZRT_SUMS_4
#undef ZRT_SUMS_8
#undef ZRT_SUMS_16
#undef ZRT_SUMS_32
#undef ZRT_SUMS_64
#undef ZRT_SUMS_128
#undef ZRT_WGMMA_BYTES
#undef ZRT_WGMMA
#endif

}  // namespace zinc_rt::cuda

// What C++ has no word for: each function is an instruction or two of PTX. A tool that runs the kernels elsewhere
// replaces this file alone (tests_cpp/cuda_sim).
#pragma once

#include <stdint.h>

#include "kernels/cuda/args.h"

// Memory of the workgroup whose size the launch gives: `type name[]`. All such names of a kernel are one address.
#define ZRT_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

namespace zinc_rt::cuda {

// Programmatic dependent launch: waits until all kernels before this one have ended and their writes are visible. A
// kernel reads what others write only behind it; what never changes may be asked for before. Some thread of the grid
// must call it, since a later kernel takes the end of this one for the end of all before it.
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

// Byte i is byte (selector >> 4 i) % 8 of the eight of a and b. The highest bits of the selector's numbers must be 0:
// __byte_perm clears them, which costs an instruction.
__device__ __forceinline__ uint32_t select_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(selector));
  return bytes;
}

// A line of 128 bytes of global memory, which nobody writes, on its way to the L2. Nothing waits for it.
__device__ __forceinline__ void prefetch_line(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

// 16 bytes and 2 bytes of global memory that nobody writes and nobody reads again soon. Calls keep their order, also
// with the wait for inputs.
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

// Byte i of a word, a number with a sign, as one of 32 bits.
__device__ __forceinline__ uint32_t signed_byte(uint32_t word, uint32_t i) {
  uint32_t value;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(value) : "r"(word), "r"((8 + i) * 0x1110 + i));
  return value;
}

// An address of shared memory as instructions want it.
__device__ __forceinline__ uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

// 16 bytes of global memory to shared memory, both aligned to 16, on their way until wait_for_copies.
__device__ __forceinline__ void copy_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}
// The same, or zeros: then nothing is read.
__device__ __forceinline__ void copy_16_or_zeros(void* to, const void* from, bool is_copy) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(is_copy ? 16 : 0));
}
// The same of 4 bytes.
__device__ __forceinline__ void copy_4(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from));
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

// c += A B of a warp, m16n8k32: signed or unsigned A, signed B, or with an unsigned one signed A.
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
               : "r"(shared_address(row))
               : "memory");
}
// The same of the transposed matrices.
__device__ __forceinline__ void load_matrices_transposed(uint32_t (&m)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(shared_address(row))
               : "memory");
}

// The larger of two floats, or NaN where one is NaN.
__device__ __forceinline__ float max_or_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
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

// The lower and the upper number of a word as bf16.
__device__ __forceinline__ uint32_t bf16_pair(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
// a b + c of pairs of bf16.
__device__ __forceinline__ uint32_t fma_bf16_pair(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t pair;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(pair) : "r"(a), "r"(b), "r"(c));
  return pair;
}

// What only machine code for sm_90a has: barriers in shared memory that count threads and bytes, copies that they wait
// for, and products of a warpgroup. A kernel of these is empty elsewhere.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ZRT_HAS_WGMMA 1

// A barrier's phase ends when `count` arrivals and all expected bytes have come.
__device__ __forceinline__ void barrier_init(uint64_t* barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}
// Makes barriers known to copies, before the threads of the workgroup meet.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
// The same, after which the phase wants so many bytes of bulk copies besides.
__device__ __forceinline__ void barrier_expect(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}
// Until the phase of that parity has ended; the phase before the first counts as ended, with parity 1.
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
// Bytes, a multiple of 16, both ends aligned to 16; the barrier counts them.
__device__ __forceinline__ void bulk_copy(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(barrier))
               : "memory");
}
// A box of a tensor as its map says (args.h), from index (x, y, z) on; what lies outside the tensor comes as zeros.
// `to` is aligned to 1,024; the barrier counts the bytes of a whole box.
__device__ __forceinline__ void tensor_copy(void* to, const TensorMap& map, uint32_t x, uint32_t y, uint32_t z,
                                            uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
      "[%5];" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier))
      : "memory");
}
// Registers of each thread of a warpgroup from here on.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Rows of 64 values in shared memory, as args.h has those of x: the operand B of a product; 16 values further is 2
// more.
__device__ __forceinline__ uint64_t wgmma_operand(const void* rows) {
  return uint64_t{1} << 62 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 16 | (shared_address(rows) & 0x3FFFF) >> 4;
}
// What this thread has written to registers comes before products.
__device__ __forceinline__ void wgmma_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
// The products since the last end of a batch are one; then all batches but the last kLeft are waited for.
__device__ __forceinline__ void wgmma_end_batch() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void wgmma_wait_for_batches() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
// d += A B of a warpgroup, or d = A B, m64nNk16 of bf16. A warp has 16 rows of A: a lane rows l / 4 (registers 0 and 2)
// and 8 more (1 and 3), values l % 4 * 2 and the next, in registers 2 and 3 8 further. Of d it has for each 8 columns l
// % 4 * 2 and the next of its first row, then of its second.
// The operands of d: their names in the text, and themselves.
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
// shape and types; the names of d, of what the product reads, and of `adds`, which is the last operand.
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
// The same with A in shared memory too, its 64 rows like those of B.
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
// The same, m64nNk32 of bytes, unsigned or signed ones of A and signed ones of B: of A a lane has four values from
// l % 4 * 4 on, in registers 2 and 3 16 further. ...: the sums.
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

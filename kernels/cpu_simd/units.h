// Declares the functions that exist once per instruction set, such as linear_rows_avx2(). A unit is the file that
// defines one of them and is compiled for that instruction set. cpp/ring/cpu/kernel_sets.cpp composes the kernel sets
// from these functions.
// Thread rule: pure functions. A unit's functions may be called only if its has_<isa>() returns true.
#pragma once

#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu_simd {

// Returns whether the processor has AVX2, FMA and F16C, and the system saves their registers.
bool has_avx2();
// Returns whether has_avx2() holds, and the processor has the dot product of bytes on 256 bits.
bool has_avx_vnni();
// Returns whether the processor has AVX-512 F, BW, VL, DQ and VNNI.
bool has_avx512_vnni();
// Returns whether has_avx512_vnni() holds, and the processor has products of bf16.
bool has_avx512_bf16();
// Returns whether the processor has AVX-512 VNNI and AMX's products of bytes, and the system lets this process use the
// tile registers. Each call tries the instructions in a child process.
bool has_amx_int8();
// Returns whether the processor has AVX-512 BF16, VBMI and AMX's products of bf16, and the system lets this process use
// the tile registers. Each call tries the instructions in a child process.
bool has_amx_bf16();
// Return whether a 64-bit ARM processor has vectors (has_neon() is always true there), the dot product of bytes
// (has_neon_dotprod()), or the dot product and the matrix product of bytes (has_neon_i8mm()).
bool has_neon();
bool has_neon_dotprod();
bool has_neon_i8mm();
// Returns true: a WebAssembly module with vectors is not loaded where they are missing.
bool has_wasm128();

// Each linear_rows_*() implements KernelSet::linear_rows: it multiplies rows [begin, end) of args.w by all rows of
// args.x. If the reference is as fast, it returns false and does nothing. The reference is as fast for float
// activations, for which float_linear_*() exist, and for matrices without panels with fewer than 3 rows of x, unless
// their blocks are decoded (kernels/cpu/quant/decoded.h).
bool linear_rows_avx2(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_avx_vnni(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_avx512_vnni(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_amx_int8(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
// Is used in arithmetic `fast`. Multiplies the rows of x that round_x_amx_bf16 has rounded. Other rows are computed as
// in linear_rows_amx_int8.
bool linear_rows_amx_bf16(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_neon(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_neon_dotprod(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_neon_i8mm(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_wasm128(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);

// Each attend_*() implements KernelSet::attend. The AVX-512 version needs a processor with has_avx512_vnni().
void attend_avx2(const cpu::AttendTile& tile);
void attend_avx_vnni(const cpu::AttendTile& tile);
void attend_avx512(const cpu::AttendTile& tile);
void attend_neon(const cpu::AttendTile& tile);
void attend_wasm128(const cpu::AttendTile& tile);

// Each float_linear_*() implements RowKernels::float_linear.
void float_linear_avx2(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
void float_linear_avx512(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
void float_linear_neon(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
void float_linear_wasm128(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
// The next three functions are used in arithmetic `fast`. They implement RowKernels::float_linear, rounds_x and
// round_x, for bf16 weights and for f16 weights with many rows of x. float_linear_avx512 computes everything else.
void float_linear_avx512_bf16(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool rounds_x_avx512_bf16(DType w, DType x, std::uint32_t n);
void round_x_avx512_bf16(const void* x, DType x_dtype, void* y, std::uint32_t k);
// The next three functions are used in arithmetic `fast`. They implement RowKernels::float_linear, rounds_x and round_x
// with AMX, for many rows of x that were rounded before. The AVX-512 functions above compute everything else.
void float_linear_amx_bf16(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool rounds_x_amx_bf16(DType w, DType x, std::uint32_t n);
void round_x_amx_bf16(const void* x, DType x_dtype, void* y, std::uint32_t k);

// Run this many rounds of the multiply-adds of LINEAR's tiles, in registers only. Each returns the number of products
// of bytes.
std::uint64_t int8_products_avx2(std::uint64_t rounds);
std::uint64_t int8_products_avx_vnni(std::uint64_t rounds);
std::uint64_t int8_products_avx512_vnni(std::uint64_t rounds);

// The tables to which KernelSet::rows points.
extern const cpu::RowKernels kRowsAvx2, kRowsAvx512, kRowsNeon, kRowsWasm128;
extern const cpu::RowKernels kRowsAvx512Bf16, kRowsAmxBf16;  // used only in arithmetic `fast`

}  // namespace zinc_rt::cpu_simd

// What the units of each instruction set offer; cpp/ring/cpu/kernel_sets.cpp composes the kernel sets of them.
// Thread rule: pure functions. A unit's functions may be called only where its has_<isa>() is true.
#pragma once

#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu_simd {

// Whether there are AVX2, FMA and F16C, and the system saves their registers.
bool has_avx2();
// Whether there are these and the dot product of bytes on 256 bits.
bool has_avx_vnni();
// Whether there are AVX-512 F, BW, VL, DQ and VNNI.
bool has_avx512_vnni();
// Whether there are these and the products of bf16.
bool has_avx512_bf16();
// Whether there are AVX-512 VNNI and AMX's products of bytes, and the system lets this process use the tile registers.
// Each call tries the instructions in another process.
bool has_amx_int8();
// The same for AVX-512 BF16, VBMI and AMX's products of bf16.
bool has_amx_bf16();
// On 64-bit ARM: vectors, which every processor has; the dot product of bytes; that and the matrix product of bytes.
bool has_neon();
bool has_neon_dotprod();
bool has_neon_i8mm();

// KernelSet::linear_rows: rows [begin, end) of args.w times all rows of args.x. They return false, having done nothing,
// where the reference is as fast: for float activations (see float_linear), and for plain matrices with fewer than 3
// rows of x.
bool linear_rows_avx2(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_avx_vnni(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_avx512_vnni(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_amx_int8(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
// For arithmetic `fast`: rows of x that round_x_amx_bf16 made; others are computed as by linear_rows_amx_int8.
bool linear_rows_amx_bf16(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_neon(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_neon_dotprod(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool linear_rows_neon_i8mm(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);

// KernelSet::attend. The AVX-512 version is for the processors of avx512_vnni.
void attend_avx2(const cpu::AttendTile& tile);
void attend_avx_vnni(const cpu::AttendTile& tile);
void attend_avx512(const cpu::AttendTile& tile);
void attend_neon(const cpu::AttendTile& tile);

// RowKernels::float_linear.
void float_linear_avx2(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
void float_linear_avx512(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
void float_linear_neon(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
// RowKernels::float_linear, rounds_x and round_x of arithmetic `fast`, for bf16 weights and for f16 weights with many
// rows of x. Everything else is computed by float_linear_avx512.
void float_linear_avx512_bf16(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool rounds_x_avx512_bf16(DType w, DType x, std::uint32_t n);
void round_x_avx512_bf16(const void* x, DType x_dtype, void* y, std::uint32_t k);
// The same for products by AMX, for many rows of x that were rounded beforehand; others as above.
void float_linear_amx_bf16(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end);
bool rounds_x_amx_bf16(DType w, DType x, std::uint32_t n);
void round_x_amx_bf16(const void* x, DType x_dtype, void* y, std::uint32_t k);

// So many rounds of the multiply-adds that LINEAR's tiles are made of, on registers alone: the products of bytes made.
std::uint64_t int8_products_avx2(std::uint64_t rounds);
std::uint64_t int8_products_avx_vnni(std::uint64_t rounds);
std::uint64_t int8_products_avx512_vnni(std::uint64_t rounds);

// KernelSet::rows.
extern const cpu::RowKernels kRowsAvx2, kRowsAvx512, kRowsNeon;
extern const cpu::RowKernels kRowsAvx512Bf16, kRowsAmxBf16;  // for arithmetic `fast`

}  // namespace zinc_rt::cpu_simd

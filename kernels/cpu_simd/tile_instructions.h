// Wraps the instructions of AMX. No other file names these instructions. tests_cpp/amx_sim has a header of the same
// path that simulates them on any processor. A thread must configure its tiles before it uses them. It should release
// its tiles before it waits, because the operating system saves tiles that are in use.
#pragma once

#include <cpuid.h>

#include <cstdint>

#include "base/platform/processor_access.h"
#include "kernels/cpu_simd/simd.h"
#include "kernels/cpu_simd/tile_config.h"

namespace zinc_rt::cpu_simd {
namespace {

// Returns whether the processor has tiles and these products, and the system lets this process use the tile registers.
// A hypervisor may still refuse the instructions.
bool has_tiles(TileProducts products) {
  constexpr unsigned kTiles = 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (d >> kTiles & d >> static_cast<unsigned>(products) & 1) != 0 && allow_tile_registers();
}

// The following functions are inline assembly, because GCC 12's intrinsics do not tell the compiler that a load reads
// memory.
ZRT_SIMD void configure_tiles(const TileConfig& config) {
  asm volatile("ldtilecfg %0" : : "m"(config) : "memory");
}
ZRT_SIMD void release_tiles() {
  asm volatile("tilerelease" : : : "memory");
}
template <int kTile>
ZRT_SIMD void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
// Load and store a tile, whose rows in memory are `pitch` bytes apart.
template <int kTile>
ZRT_SIMD void load_tile(const void* from, std::uint64_t pitch) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(from), "r"(pitch) : "memory");
}
template <int kTile>
ZRT_SIMD void store_tile(void* to, std::uint64_t pitch) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(kTile), "r"(to), "r"(pitch) : "memory");
}
// Computes C += A B for signed bytes, with 16 x 16 sums of 32 bits and at most 64 values of k, added as integers. A row
// of A belongs to a row of C, and a row of B to a word of 4 bytes of k.
template <int kC, int kA, int kB>
ZRT_SIMD void add_tile_products() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}
// Computes C += A B for pairs of bf16, with at most 32 values of k, added as floats. Subnormal numbers count as zeros.
template <int kC, int kA, int kB>
ZRT_SIMD void add_tile_products_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

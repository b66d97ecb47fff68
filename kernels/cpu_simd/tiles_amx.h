// The tile registers of AMX and the product of bytes on them: C [16 rows of x][16 rows of W] += A [16][k] B [k][16],
// k at most 64, in 32 bits. B lies as words of 4 values of k, a row of W each, which is a row panel's order. A thread's
// tiles must be configured before, and should be released before it waits: the kernel saves what is in use.
#pragma once

#include <cstdint>

#include "kernels/cpu_simd/simd.h"

namespace zinc_rt::cpu_simd {
namespace {

// LDTILECFG's operand.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  constexpr void set(int tile, int n_rows, int n_bytes) {
    rows[tile] = static_cast<std::uint8_t>(n_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(n_bytes);
  }
};
static_assert(sizeof(TileConfig) == 64, "as the processor reads it");

// Written out, since the intrinsics of GCC 12 do not tell the compiler that a load reads memory.
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
// Rows lie `pitch` bytes apart.
template <int kTile>
ZRT_SIMD void load_tile(const void* from, std::uint64_t pitch) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(from), "r"(pitch) : "memory");
}
template <int kTile>
ZRT_SIMD void store_tile(void* to, std::uint64_t pitch) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(kTile), "r"(to), "r"(pitch) : "memory");
}
// C += A B, of signed bytes.
template <int kC, int kA, int kB>
ZRT_SIMD void add_tile_products() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kC), "i"(kA), "i"(kB));
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

// Defines the types that both versions of tile_instructions.h use: the version beside this file, and the simulated
// version in tests_cpp/amx_sim.
#pragma once

#include <cstdint>

namespace zinc_rt::cpu_simd {
namespace {

// TileConfig is the operand of the instruction LDTILECFG, which sets the size of each tile register.
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

// TileProducts are the kinds of products that AMX may have. The numbers are their bits of edx of CPUID leaf 7.
enum class TileProducts : unsigned { kBf16 = 22, kBytes = 25 };

}  // namespace
}  // namespace zinc_rt::cpu_simd

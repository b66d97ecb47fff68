// The types that both versions of tile_instructions.h take: the true one and that of the tests.
#pragma once

#include <cstdint>

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

// Bits of edx of the processor's leaf 7.
enum class TileProducts : unsigned { kBf16 = 22, kBytes = 25 };

}  // namespace
}  // namespace zinc_rt::cpu_simd

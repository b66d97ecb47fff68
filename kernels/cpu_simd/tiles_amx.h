// How the units of AMX use the tile registers: C [16 rows of x][16 rows of W] += A [16 rows of x][k] B [k][16 rows of
// W], where B lies as words of 4 bytes of k, a row of W each, which is a row panel's order.
#pragma once

#include "kernels/cpu_simd/tile_instructions.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kTileRows = 16;  // of x, a tile
constexpr std::uint64_t kVectorPitch = 64;

// Tiles 0 to 3 hold sums, 4 and 5 rows of x, 6 and 7 values of W: all of them whole.
constexpr TileConfig whole_tiles() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.set(i, kTileRows, 64);
  return config;
}
constexpr TileConfig kWholeTiles = whole_tiles();

// n rows of x in tiles, n >= kTileRows.
struct RowTiles {
  std::uint32_t n;
  ZRT_MEMBER std::uint32_t count() const { return (n + kTileRows - 1) / kTileRows; }
  // The last tile begins so that it ends with row n; its first rows are also the tile's before.
  ZRT_MEMBER std::uint32_t first_of(std::uint32_t tile) const {
    return n - tile * kTileRows < kTileRows ? n - kTileRows : tile * kTileRows;
  }
};

// The rows of a sweep over what is left of x, at most `most` of them: it is not cut so that fewer than a tile's remain.
ZRT_SIMD std::uint32_t rows_of_sweep(std::uint32_t left, std::uint32_t most) {
  return left <= most ? left : left < most + kTileRows ? most / 2 : most;
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

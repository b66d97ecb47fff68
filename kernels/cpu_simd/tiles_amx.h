// Wraps the tile registers of AMX for the units that compute products: C [16 rows of x][16 rows of W] += A [16 rows of
// x][k] B [k][16 rows of W]. B consists of words of 4 bytes of k, one word per row of W. A row panel
// (kernels/cpu/quant/panels.h) has the same order of words.
#pragma once

#include "kernels/cpu_simd/linear_source.h"
#include "kernels/cpu_simd/tile_instructions.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kTileRows = 16;  // number of rows of x in a tile
constexpr std::uint64_t kVectorPitch = 64;

// Returns the configuration of the tiles. Tiles 0 to 3 hold sums, 4 and 5 rows of x, 6 and 7 values of W. All have the
// full size.
constexpr TileConfig whole_tiles() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) config.set(i, kTileRows, 64);
  return config;
}
constexpr TileConfig kWholeTiles = whole_tiles();

// Splits n rows of x into tiles, where n is at least kTileRows.
struct RowTiles {
  std::uint32_t n;
  ZRT_MEMBER std::uint32_t count() const { return (n + kTileRows - 1) / kTileRows; }
  // Returns the first row of a tile. The last tile ends with the last row, so its first rows may also be the last rows
  // of the previous tile.
  ZRT_MEMBER std::uint32_t first_of(std::uint32_t tile) const {
    return n - tile * kTileRows < kTileRows ? n - kTileRows : tile * kTileRows;
  }
};

// Configures the tiles. Splits the rows of x into sweeps of at most kRows, and the panels of rows [begin, end) of W
// into groups of at most kPanels. Calls fn(first row of x, number of rows, panels, number of panels) for each
// combination.
template <std::uint32_t kRows, std::uint32_t kPanels, class Fn>
void for_sweeps(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end, Fn&& fn) {
  configure_tiles(kWholeTiles);
  for (std::uint32_t first = 0; first < a.n;) {
    // A sweep is shortened if fewer rows than a tile would otherwise remain.
    const std::uint32_t left = a.n - first, n = left <= kRows ? left : left < kRows + kTileRows ? kRows / 2 : kRows;
    for_panels<kPanels>(a, begin, end,
                        [&](const PanelRows* panels, std::uint32_t n_panels) { fn(first, n, panels, n_panels); });
    first += n;
  }
  release_tiles();
}

// Tries one product of a tile of ones by a tile of minus ones, where product() adds tile 4 times tile 6 to tile 0.
// Returns whether the result is right. If the system or a hypervisor refuses the instructions, the process dies.
template <class Sum, class Value, class Product>
bool multiplies_ones(Value one, Value minus_one, Product&& product) {
  constexpr std::uint32_t kValues = kVectorPitch / sizeof(Value);
  alignas(64) Value ones[kTileRows][kValues], minus_ones[kTileRows][kValues];
  alignas(64) Sum sums[kTileRows][16];
  for (std::uint32_t i = 0; i < kTileRows; ++i)
    for (std::uint32_t j = 0; j < kValues; ++j) ones[i][j] = one, minus_ones[i][j] = minus_one;
  configure_tiles(kWholeTiles);
  zero_tile<0>();
  load_tile<4>(ones, kVectorPitch);
  load_tile<6>(minus_ones, kVectorPitch);
  product();
  store_tile<0>(sums, kVectorPitch);
  release_tiles();
  for (const auto& row : sums)
    for (const Sum sum : row)
      if (sum != -static_cast<Sum>(kValues)) return false;
  return true;
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

// The header of this name for any processor: the tile registers are memory of a thread, and each instruction does what
// Intel's manual (volume 2, and chapter "Intel AMX" of volume 1) writes in its operation. What the processor would
// refuse ends the program.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu_simd/simd.h"
#include "kernels/cpu_simd/tile_config.h"

namespace zinc_rt::cpu_simd {
namespace {

struct SimTile {
  int rows = 0, bytes = 0;  // a row; 0: not configured
  alignas(64) std::uint8_t at[16][64] = {};

  template <class T>
  T get(int row, int i) const {
    T value;
    std::memcpy(&value, at[row] + i * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  void set(int row, int i, T value) {
    std::memcpy(at[row] + i * sizeof(T), &value, sizeof(T));
  }
};
thread_local SimTile sim_tiles[8];

SimTile& sim_tile(int i) {
  if (sim_tiles[i].rows == 0) std::abort();
  return sim_tiles[i];
}

bool has_tiles(TileProducts) {
  return true;
}

void release_tiles() {
  for (SimTile& tile : sim_tiles) tile = {};
}
void configure_tiles(const TileConfig& config) {
  release_tiles();
  if (config.palette != 1 || config.start_row != 0) std::abort();
  for (int i = 0; i < 8; ++i) {
    if (config.rows[i] > 16 || config.row_bytes[i] > 64 || (config.rows[i] == 0) != (config.row_bytes[i] == 0))
      std::abort();
    sim_tiles[i].rows = config.rows[i];
    sim_tiles[i].bytes = config.row_bytes[i];
  }
}
template <int kTile>
void zero_tile() {
  std::memset(sim_tile(kTile).at, 0, sizeof(SimTile::at));
}
template <int kTile>
void load_tile(const void* from, std::uint64_t pitch) {
  SimTile& tile = sim_tile(kTile);
  zero_tile<kTile>();
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(tile.at[row], static_cast<const std::byte*>(from) + row * pitch, tile.bytes);
}
template <int kTile>
void store_tile(void* to, std::uint64_t pitch) {
  const SimTile& tile = sim_tile(kTile);
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(static_cast<std::byte*>(to) + row * pitch, tile.at[row], tile.bytes);
}

inline void sim_check(const SimTile& c, const SimTile& a, const SimTile& b) {
  if (&c == &a || &c == &b || &a == &b) std::abort();
  if (a.rows != c.rows || b.bytes != c.bytes || a.bytes != 4 * b.rows) std::abort();
}

// TDPBSSD
template <int kC, int kA, int kB>
void add_tile_products() {
  SimTile &c = sim_tile(kC), &a = sim_tile(kA), &b = sim_tile(kB);
  sim_check(c, a, b);
  for (int m = 0; m < c.rows; ++m)
    for (int k = 0; k < a.bytes / 4; ++k)
      for (int n = 0; n < c.bytes / 4; ++n) {
        auto sum = c.get<std::uint32_t>(m, n);  // the sum wraps around
        for (int i = 0; i < 4; ++i)
          sum += static_cast<std::uint32_t>(a.get<std::int8_t>(m, 4 * k + i) * b.get<std::int8_t>(k, 4 * n + i));
        c.set(m, n, sum);
      }
}

// Without subnormal numbers, in or out.
inline float sim_flushed(float x) {
  return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}
inline float sim_widened(std::uint16_t bf16) {
  return sim_flushed(__builtin_bit_cast(float, static_cast<std::uint32_t>(bf16) << 16));
}
// TDPBF16PS: first and second values of the pairs are summed by themselves, from zero.
template <int kC, int kA, int kB>
void add_tile_products_bf16() {
  SimTile &c = sim_tile(kC), &a = sim_tile(kA), &b = sim_tile(kB);
  sim_check(c, a, b);
  for (int m = 0; m < c.rows; ++m) {
    float sums[32] = {};
    for (int k = 0; k < a.bytes / 4; ++k) {
      const float x[2] = {sim_widened(a.get<std::uint16_t>(m, 2 * k)), sim_widened(a.get<std::uint16_t>(m, 2 * k + 1))};
      for (int i = 0; i < c.bytes / 2; ++i)
        sums[i] = sim_flushed(__builtin_fmaf(x[i % 2], sim_widened(b.get<std::uint16_t>(k, i)), sums[i]));
    }
    for (int n = 0; n < c.bytes / 4; ++n) {
      const float pair = sim_flushed(sums[2 * n] + sums[2 * n + 1]);
      c.set(m, n, sim_flushed(sim_flushed(c.get<float>(m, n)) + pair));
    }
  }
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

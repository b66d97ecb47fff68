// LINEAR on quantized weights with the tile registers of AMX, for kFewestRows rows of x or more; fewer take the dot
// products of AVX-512. Products and integer sums are those of the reference in another order, which is exact; float
// operations are done by AVX-512 in the reference's order, a lane a row of W (docs/arithmetic.md, rule 3).
//
// 32-blocks: a tile product has the values of one block, since each block has scales of its own.
// K-quants: code * scale is a whole number of at most 13 bits. It is cut into 64 high + low, two bytes, so that two
// tile products hold a group's whole sum: no block's sum is scaled on its own.
#include <cpuid.h>

#include "base/processors.h"
#include "kernels/cpu_simd/dots_avx512.h"
// The vectors come first.
#include "kernels/cpu_simd/linear_source.h"
#include "kernels/cpu_simd/tiles_amx.h"
#include "kernels/cpu_simd/units.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kTileRows = 16;           // of x, a tile
constexpr std::uint32_t kFewestRows = kTileRows;  // the last tile may overlap the one before
constexpr std::uint32_t kSweep = 256;             // rows of x that meet a group before it is unpacked again
constexpr std::uint32_t kPanels = 4;              // that the numbers of a group's activations are made for once
constexpr std::uint64_t kVectorPitch = 64;

using TileSums = std::int32_t[kTileRows][16];

// A group, made ready: signed bytes of words, and what the epilogue multiplies with.
template <class Format>
struct Unpacked {
  using F = Format;
  static constexpr int kScales = static_cast<int>(kGroupValues) / F::kSub;
  static constexpr int kFloats = F::kIsK ? 1 : 8;
  static constexpr int kFactors = F::kIsK && F::kHasMin ? kScales / 2 : 0;
  alignas(64) std::int32_t low[kGroupValues / 4][16];  // or all of a value, of 32-blocks
  alignas(64) std::int32_t high[F::kIsK ? kGroupValues / 4 : 1][16];
  alignas(64) std::int32_t factors[kFactors + 1][16];
  alignas(64) float ds[kFloats][16], ms[kFloats][16];
  int n_blocks;

  void fill(const Group& group) {
    n_blocks = group.n_blocks;
    for (int s = 0; s < n_blocks; ++s) {
      if constexpr (F::kIsK)
        fill_scaled(group, s);
      else
        F::each_word(group, s, [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA {
          store(low[8 * s + w], F::kOffset == 0 ? codes : add_bytes(codes, every_byte(256 - F::kOffset)));
        });
      if (F::kIsK && s > 0) continue;
      store(ds[F::kIsK ? 0 : s], F::d(group, s));
      if constexpr (F::kHasMin) store(ms[F::kIsK ? 0 : s], F::m(group, s));
    }
    if constexpr (kFactors > 0)
      for (int i = 0; i < kFactors; ++i)
        store(factors[i], (F::min(group, 2 * i) & splat(0xFFFF)) | shift_left(F::min(group, 2 * i + 1), 16));
  }

 private:
  void fill_scaled(const Group& group, int s) {
    constexpr int kParts = 32 / F::kSub;
    Ints scales[kParts];
    for (int i = 0; i < kParts; ++i) {
      const Ints sc = F::sc(group, kParts * s + i);
      scales[i] = (sc & splat(0xFFFF)) | shift_left(sc, 16);
    }
    F::each_word(group, s, [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA {
      const Ints values = F::kOffset == 0 ? codes : add_bytes(codes, every_byte(256 - F::kOffset));
      const Ints scale = scales[kParts == 1 ? 0 : w / 4];
      // Values 0 and 2, then 1 and 3 of each word, as 16 bits.
      const Ints even = multiply_16(shift_right_signed_16(shift_left_16(values, 8), 8), scale);
      const Ints odd = multiply_16(shift_right_signed_16(values, 8), scale);
      const Ints bits = splat(0x003F003F), byte = splat(0x00FF00FF);
      store(low[8 * s + w], (even & bits) | shift_left_16(odd & bits, 8));
      store(high[8 * s + w], (shift_right_signed_16(even, 6) & byte) | shift_left_16(shift_right_signed_16(odd, 6), 8));
    });
  }
  ZRT_SIMD Ints shift_left_16(const Ints& a, unsigned bits) { return {_mm512_slli_epi16(a.v, bits)}; }
  ZRT_SIMD Ints shift_right_signed_16(const Ints& a, unsigned bits) { return {_mm512_srai_epi16(a.v, bits)}; }
  ZRT_SIMD Ints multiply_16(const Ints& a, const Ints& b) { return {_mm512_mullo_epi16(a.v, b.v)}; }
};

// The rows of x that meet a group: n, from x on, pitch bytes apart. acc: 16 floats a row.
struct Rows {
  const std::byte* x;
  std::uint64_t pitch;
  std::uint32_t n;
  const Numbers* numbers;
  float (*acc)[16];

  // Tile i begins with a row so that it ends within n.
  std::uint32_t first_of(std::uint32_t tile) const {
    return n - tile * kTileRows < kTileRows ? n - kTileRows : tile * kTileRows;
  }
  std::uint32_t n_tiles() const { return (n + kTileRows - 1) / kTileRows; }
  // Row j of a tile, unless the tile before has it.
  bool is_new(std::uint32_t tile, std::uint32_t j) const { return first_of(tile) + j >= tile * kTileRows; }
};

// Tiles 0 to 3 hold sums, 4 and 5 rows of x, 6 and 7 values of W.
template <class F>
constexpr TileConfig config_of() {
  TileConfig config;
  constexpr int kValues = F::kIsK ? 64 : 32;
  for (int i = 0; i < 4; ++i) config.set(i, kTileRows, 64);
  for (int i = 4; i < 6; ++i) config.set(i, kTileRows, kValues);
  for (int i = 6; i < 8; ++i) config.set(i, kValues / 4, 64);
  return config;
}

// ---- 32-blocks ----

// Sums of each block of a group, of a tile of rows of x.
using BlockSums = TileSums[8];

template <class F>
ZRT_SIMD void finish_small(const Unpacked<F>& group, const Rows& rows, std::uint32_t row, std::uint32_t j,
                           const BlockSums& sums, const Floats* d, const Floats* m) {
  const auto* x = reinterpret_cast<const ActBlockQ8A32*>(rows.x + row * rows.pitch);
  Floats v = splat(0.0f);
  repeat<8>([&](auto s) ZRT_INLINE_LAMBDA {
    if (s >= group.n_blocks) return;
    const Floats d_x = splat(x[s].d);
    v = fma(to_floats(load_ints(sums[s][j])) * d[s], d_x, v);
    if constexpr (F::kHasMin) v = fma(float_of(rows.numbers[row].of[s]) * m[s], d_x, v);
  });
  store(rows.acc[row], load(rows.acc[row]) + v);
}

template <class F>
void sweep_small(const Unpacked<F>& group, const Rows& rows) {
  alignas(64) BlockSums sums[2];
  Floats d[8], m[8];
  for (int s = 0; s < 8; ++s) {
    d[s] = s < group.n_blocks ? load(group.ds[s]) : splat(0.0f);
    m[s] = F::kHasMin && s < group.n_blocks ? load(group.ms[s]) : splat(0.0f);
  }
  // While the tiles' products of some rows are made, AVX-512 works on those of the rows before.
  for (std::uint32_t tile = 0; tile <= rows.n_tiles(); ++tile) {
    const bool has_products = tile < rows.n_tiles(), has_sums = tile > 0;
    const std::byte* x = rows.x + (has_products ? rows.first_of(tile) * rows.pitch : 0);
    const std::uint32_t before = has_sums ? rows.first_of(tile - 1) : 0;
    repeat<8>([&](auto s) ZRT_INLINE_LAMBDA {
      const bool is_made = has_products && s < group.n_blocks;
      if (is_made) {
        zero_tile<s % 4>();
        load_tile<4 + s % 2>(x + s * sizeof(ActBlockQ8A32) + offsetof(ActBlockQ8A32, qs), rows.pitch);
        load_tile<6 + s % 2>(group.low[8 * s], kVectorPitch);
        add_tile_products<s % 4, 4 + s % 2, 6 + s % 2>();
      }
      if (has_sums)
        for (std::uint32_t j = 2 * s; j < 2 * s + 2; ++j)
          if (rows.is_new(tile - 1, j)) finish_small(group, rows, before + j, j, sums[(tile - 1) % 2], d, m);
      if (is_made) store_tile<s % 4>(sums[tile % 2][s], kVectorPitch);
    });
  }
}

// ---- K-quants ----

// High and low sums of a group, of a tile of rows of x.
struct GroupSums {
  TileSums high, low;
};

template <class F>
ZRT_SIMD void finish_super(const Unpacked<F>& group, const Rows& rows, std::uint32_t row, std::uint32_t j,
                           const GroupSums& sums, const Floats& d, [[maybe_unused]] const Floats& m) {
  const auto* x = reinterpret_cast<const ActBlockQ8A256*>(rows.x + row * rows.pitch);
  const Ints isum = shift_left(load_ints(sums.high[j]), 6) + load_ints(sums.low[j]);
  Floats v;
  if constexpr (F::kHasMin) {
    Ints msum = splat(0);
    repeat<Unpacked<F>::kFactors>([&](auto i) ZRT_INLINE_LAMBDA {
      msum = add_dot_pairs(msum, load_ints(group.factors[i]), splat(rows.numbers[row].of[i]));
    });
    v = fma(to_floats(isum), d, to_floats(msum) * m);
  } else {
    v = to_floats(isum) * d;
  }
  store(rows.acc[row], fma(v, splat(x->d), load(rows.acc[row])));
}

template <class F>
void sweep_super(const Unpacked<F>& group, const Rows& rows) {
  alignas(64) GroupSums sums[2][2];
  const Floats d = load(group.ds[0]), m = F::kHasMin ? load(group.ms[0]) : splat(0.0f);
  // Two tiles of rows at once share the loads of W; AVX-512 works on the two before.
  for (std::uint32_t tile = 0; tile < rows.n_tiles() + 2; tile += 2) {
    const int n_products = tile >= rows.n_tiles() ? 0 : tile + 1 == rows.n_tiles() ? 1 : 2;
    const std::byte *x0 = rows.x, *x1 = rows.x;
    if (n_products > 0) {
      x0 += rows.first_of(tile) * rows.pitch;
      zero_tile<0>();
      zero_tile<1>();
    }
    if (n_products > 1) {
      x1 += rows.first_of(tile + 1) * rows.pitch;
      zero_tile<2>();
      zero_tile<3>();
    }
    repeat<4>([&](auto part) ZRT_INLINE_LAMBDA {
      constexpr std::uint64_t kAt = offsetof(ActBlockQ8A256, qs) + 64 * part;
      if (n_products > 0) {
        load_tile<4>(x0 + kAt, rows.pitch);
        load_tile<6>(group.high[16 * part], kVectorPitch);
        add_tile_products<0, 4, 6>();
        load_tile<7>(group.low[16 * part], kVectorPitch);
        add_tile_products<1, 4, 7>();
      }
      if (n_products > 1) {
        load_tile<5>(x1 + kAt, rows.pitch);
        add_tile_products<2, 5, 6>();
        add_tile_products<3, 5, 7>();
      }
      if (tile == 0) return;
      for (std::uint32_t i = 8 * part; i < 8 * part + 8; ++i) {
        const std::uint32_t of = tile - 2 + i / kTileRows, j = i % kTileRows;
        if (of >= rows.n_tiles() || !rows.is_new(of, j)) continue;
        finish_super(group, rows, rows.first_of(of) + j, j, sums[tile / 2 % 2][i / kTileRows], d, m);
      }
    });
    GroupSums* to = sums[(tile / 2 + 1) % 2];
    if (n_products > 0) {
      store_tile<0>(to[0].high, kVectorPitch);
      store_tile<1>(to[0].low, kVectorPitch);
    }
    if (n_products > 1) {
      store_tile<2>(to[1].high, kVectorPitch);
      store_tile<3>(to[1].low, kVectorPitch);
    }
  }
}

// ---- all ----

// At most kSweep rows of x on at most kPanels panels.
template <class F>
void run_panels(const cpu::LinearArgs& a, Groups& groups, std::uint32_t first, std::uint32_t n, const PanelRows* panels,
                std::uint32_t n_panels) {
  const std::uint64_t x_group = row_bytes(a.x_dtype, kGroupValues);
  const std::uint32_t n_groups = (a.k + kGroupValues - 1) / kGroupValues;
  const auto* x = static_cast<const std::byte*>(a.x) + first * a.x_pitch;
  alignas(64) float acc[kPanels][kSweep][16];
  Numbers numbers[kSweep];
  Unpacked<F> group;
  for (std::uint32_t p = 0; p < n_panels; ++p)
    for (std::uint32_t t = 0; t < n; ++t) store(acc[p][t], splat(0.0f));
  for (std::uint32_t g = 0; g < n_groups; ++g)
    for (std::uint32_t p = 0; p < n_panels; ++p) {
      group.fill(groups.at(panels[p], g));
      if constexpr (F::kHasMin)
        for (std::uint32_t t = 0; p == 0 && t < n; ++t)
          prepare<F>(reinterpret_cast<const ActOf<F>*>(x + t * a.x_pitch + g * x_group), group.n_blocks, numbers[t]);
      const Rows rows{x + g * x_group, a.x_pitch, n, numbers, acc[p]};
      if constexpr (F::kIsK)
        sweep_super(group, rows);
      else
        sweep_small(group, rows);
    }
  for (std::uint32_t p = 0; p < n_panels; ++p)
    for (std::uint32_t t = 0; t < n; ++t)
      store_rows(a, first + t, panels[p].first, panels[p].begin, panels[p].end, acc[p][t]);
}

template <class F>
bool run(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end) {
  Groups groups(a);
  static constexpr TileConfig kConfig = config_of<F>();
  configure_tiles(kConfig);
  for (std::uint32_t first = 0; first < a.n;) {
    // What is left is not cut so that fewer than a tile's rows remain.
    const std::uint32_t left = a.n - first;
    const std::uint32_t n = left <= kSweep ? left : left < kSweep + kFewestRows ? kSweep / 2 : kSweep;
    for_panels<kPanels>(a, begin, end, [&](const PanelRows* panels, std::uint32_t n_panels) {
      run_panels<F>(a, groups, first, n, panels, n_panels);
    });
    first += n;
  }
  release_tiles();
  return true;
}

}  // namespace

namespace {

// One product: 16 rows of 64 ones by -1 are -64 each.
bool multiplies_tiles() {
  static constexpr TileConfig kConfig = config_of<Q4K>();
  alignas(64) std::int8_t ones[kTileRows][64], minus_ones[kTileRows][64];
  alignas(64) TileSums sums;
  for (std::uint32_t i = 0; i < kTileRows; ++i)
    for (int j = 0; j < 64; ++j) ones[i][j] = 1, minus_ones[i][j] = -1;
  configure_tiles(kConfig);
  zero_tile<0>();
  load_tile<4>(ones, kVectorPitch);
  load_tile<6>(minus_ones, kVectorPitch);
  add_tile_products<0, 4, 6>();
  store_tile<0>(sums, kVectorPitch);
  release_tiles();
  for (const auto& row : sums)
    for (const std::int32_t sum : row)
      if (sum != -64) return false;
  return true;
}

bool find_amx_int8() {
  unsigned a = 0, b = 0, c = 0, d = 0;  // leaf 7: bits 24 and 25 of edx are AMX's tiles and its products of bytes
  if (!has_avx512_vnni() || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d >> 24 & 3) != 3) return false;
  return allow_tile_registers() && survives(multiplies_tiles);
}

}  // namespace

bool has_amx_int8() {
  static const bool kHas = find_amx_int8();
  return kHas;
}

bool linear_rows_amx_int8(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  if (args.n < kFewestRows || args.x_dtype == DType::kF32) return linear_rows_avx512_vnni(args, begin, end);
  return with_format(args.w_dtype, [&](auto format) { return run<decltype(format)>(args, begin, end); });
}

}  // namespace zinc_rt::cpu_simd

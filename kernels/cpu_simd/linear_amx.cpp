// LINEAR of K-quants and of fixed16 with the tile registers of AMX, for kFewestRows rows of x or more. Everything else is
// computed by the dot products of AVX-512. Integer sums are exact, so their order does not matter; float operations are done by
// AVX-512 in the reference's order, with a row of W in each lane (docs/arithmetic.md, rule 3).
//
// code * scale of a K-quant is an integer of at most 13 bits. It is split into two bytes, 64 * high + low, so that two
// tile products give the whole sum of a group and no sub-block's sum has to be scaled on its own.
#include "base/platform/processor_access.h"
#include "kernels/cpu_simd/dots_avx512.h"
// The dots header comes first, because the files after it use its names.
#include "kernels/cpu_simd/fixed_group.h"
#include "kernels/cpu_simd/linear_source.h"
#include "kernels/cpu_simd/tiles_amx.h"
#include "kernels/cpu_simd/units.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kFewestRows = 32;  // with fewer rows, preparing a group costs more than AMX gains
// Rows of x that are multiplied by a group before it must be prepared again.
constexpr std::uint32_t kSweep = 256;
constexpr std::uint32_t kPanels = 4;  // panels that share one contiguous copy of the rows of x

using TileSums = std::int32_t[kTileRows][16];

// A prepared group: words of signed bytes, and the factors by which the sums are multiplied.
template <class Format>
struct Unpacked {
  using F = Format;
  static constexpr int kScales = static_cast<int>(kGroupValues) / F::kSub;
  static constexpr int kFactors = F::kHasMin ? kScales / 2 : 0;
  alignas(64) std::int32_t low[kGroupValues / 4][16], high[kGroupValues / 4][16];
  alignas(64) std::int32_t factors[kFactors + 1][16];
  Floats d, m;

  void fill(const Group& group) {
    for (int s = 0; s < 8; ++s) fill_words(group, s);
    d = F::d(group, 0);
    if constexpr (F::kHasMin) m = F::m(group, 0);
    if constexpr (kFactors > 0)
      for (int i = 0; i < kFactors; ++i)
        store(factors[i], (F::min(group, 2 * i) & splat(0xFFFF)) | shift_left(F::min(group, 2 * i + 1), 16));
  }

 private:
  void fill_words(const Group& group, int s) {
    constexpr int kParts = 32 / F::kSub;
    Ints scales[kParts];
    for (int i = 0; i < kParts; ++i) {
      const Ints sc = F::sc(group, kParts * s + i);
      scales[i] = (sc & splat(0xFFFF)) | shift_left(sc, 16);
    }
    F::each_word(group, s, [&](auto w, const Ints& codes) ZRT_INLINE_LAMBDA {
      const Ints values = F::kOffset == 0 ? codes : add_bytes(codes, every_byte(256 - F::kOffset));
      const Ints scale = scales[kParts == 1 ? 0 : w / 4];
      // Extracts values 0 and 2, then 1 and 3 of each word, as 16 bits.
      const Ints even = multiply_16(shift_right_signed_16(shift_left_16(values, 8), 8), scale);
      const Ints odd = multiply_16(shift_right_signed_16(values, 8), scale);
      const Ints bits = splat(0x003F003F), byte = splat(0x00FF00FF);
      store(low[8 * s + w], (even & bits) | shift_left_16(odd & bits, 8));
      store(high[8 * s + w], (shift_right_signed_16(even, 6) & byte) | shift_left_16(shift_right_signed_16(odd, 6), 8));
    });
  }
  ZRT_SIMD Ints multiply_16(const Ints& a, const Ints& b) { return {_mm512_mullo_epi16(a.v, b.v)}; }
};

// A contiguous copy of the group's part of n rows of x, made once for all panels. In place, rows are a pitch apart, and
// their tiles would be fetched from the L2 cache again and again.
template <class F>
struct Rows : RowTiles {
  alignas(64) std::int8_t qs[kSweep][kGroupValues];
  float ds[kSweep];
  Numbers numbers[kSweep];

  void fill(const std::byte* x, std::uint64_t pitch) {
    for (std::uint32_t t = 0; t < n; ++t) {
      const auto* block = reinterpret_cast<const ActBlockQ8A256*>(x + t * pitch);
      std::memcpy(qs[t], block->qs, sizeof(qs[t]));
      ds[t] = block->d;
      if constexpr (F::kHasMin) prepare<F>(block, 8, numbers[t]);
    }
  }
};

// The high and low sums of a group for a tile of rows of x.
struct GroupSums {
  TileSums high, low;
};

template <class F>
ZRT_SIMD void finish(const Unpacked<F>& group, const Rows<F>& rows, std::uint32_t row, const GroupSums& sums,
                     std::uint32_t j, float* acc) {
  const Ints isum = shift_left(load_ints(sums.high[j]), 6) + load_ints(sums.low[j]);
  Floats v;
  if constexpr (F::kHasMin) {
    Ints msum = splat(0);
    repeat<Unpacked<F>::kFactors>([&](auto i) ZRT_INLINE_LAMBDA {
      msum = add_dot_pairs(msum, load_ints(group.factors[i]), splat(rows.numbers[row].of[i]));
    });
    v = fma(to_floats(isum), group.d, to_floats(msum) * group.m);
  } else {
    v = to_floats(isum) * group.d;
  }
  store(acc, fma(v, splat(rows.ds[row]), load(acc)));
}

// Starts the products of a tile of rows. Meanwhile AVX-512 processes the sums of the previous tile. kC: the first of
// two tile registers for sums.
template <class F, int kC>
ZRT_SIMD void step(const Unpacked<F>& group, const Rows<F>& rows, std::uint32_t tile, GroupSums* sums,
                   float (*acc)[16]) {
  const bool is_made = tile < rows.count();
  const std::int8_t* x = rows.qs[is_made ? rows.first_of(tile) : 0];
  const std::uint32_t first = tile > 0 ? rows.first_of(tile - 1) : 0;
  const std::uint32_t known = tile > 0 ? (tile - 1) * kTileRows - first : kTileRows;
  if (is_made) {
    zero_tile<kC>();
    zero_tile<kC + 1>();
  }
  repeat<4>([&](auto part) ZRT_INLINE_LAMBDA {
    if (is_made) {
      load_tile<4 + part % 2>(x + 64 * part, kGroupValues);
      load_tile<6>(group.high[16 * part], kVectorPitch);
      add_tile_products<kC, 4 + part % 2, 6>();
      load_tile<7>(group.low[16 * part], kVectorPitch);
      add_tile_products<kC + 1, 4 + part % 2, 7>();
    }
    for (std::uint32_t j = 4 * part; j < 4 * part + 4; ++j)
      if (j >= known) finish(group, rows, first + j, sums[(tile + 1) % 2], j, acc[first + j]);
  });
  if (is_made) {
    store_tile<kC>(sums[tile % 2].high, kVectorPitch);
    store_tile<kC + 1>(sums[tile % 2].low, kVectorPitch);
  }
}

template <class F>
void sweep(const Unpacked<F>& group, const Rows<F>& rows, float (*acc)[16]) {
  alignas(64) GroupSums sums[2];
  for (std::uint32_t tile = 0; tile <= rows.count(); tile += 2) {
    step<F, 0>(group, rows, tile, sums, acc);
    if (tile + 1 <= rows.count()) step<F, 2>(group, rows, tile + 1, sums, acc);
  }
}

// Multiplies all rows of x by rows [begin, end) of W. RowsOfGroup copies the part of the rows of x that belongs to a
// group. multiply(group, rows, acc) adds the products of that group of one panel to 16 sums per row.
template <class RowsOfGroup, class Multiply>
void multiply_groups(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end, Multiply&& multiply) {
  Groups groups(a);
  const std::uint64_t x_group = row_bytes(a.x_dtype, kGroupValues);
  for_sweeps<kSweep, kPanels>(
      a, begin, end, [&](std::uint32_t first, std::uint32_t n, const PanelRows* panels, std::uint32_t n_panels) {
        const auto* x = static_cast<const std::byte*>(a.x) + first * a.x_pitch;
        alignas(64) float acc[kPanels][kSweep][16];
        RowsOfGroup rows;
        rows.n = n;
        for (std::uint32_t p = 0; p < n_panels; ++p)
          for (std::uint32_t t = 0; t < n; ++t) store(acc[p][t], splat(0.0f));
        for (std::uint32_t g = 0; g < a.k / kGroupValues; ++g) {
          rows.fill(x + g * x_group, a.x_pitch);
          for (std::uint32_t p = 0; p < n_panels; ++p) multiply(groups.at(panels[p], g), rows, acc[p]);
        }
        for (std::uint32_t t = 0; t < n; ++t)
          for (std::uint32_t p = 0; p < n_panels; ++p)
            store_rows(a, first + t, panels[p].first, panels[p].begin, panels[p].end, acc[p][t]);
      });
}

template <class F>
bool run(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end) {
  Unpacked<F> unpacked;
  multiply_groups<Rows<F>>(a, begin, end, [&](const Group& group, const Rows<F>& rows, float(*acc)[16]) {
    unpacked.fill(group);
    sweep(unpacked, rows, acc);
  });
  return true;
}

// FIXED16: both planes of digits of W are stored in panels as tiles need them, and are multiplied by both planes of x.
struct DigitRows : RowTiles {
  alignas(64) std::int8_t high[kSweep][kGroupValues], low[kSweep][kGroupValues];
  float ds[kSweep];

  void fill(const std::byte* x, std::uint64_t pitch) {
    for (std::uint32_t t = 0; t < n; ++t) {
      const auto* block = reinterpret_cast<const ActBlockQ16A256*>(x + t * pitch);
      std::memcpy(high[t], block->high, sizeof(high[t]));
      std::memcpy(low[t], block->low, sizeof(low[t]));
      ds[t] = block->d;
    }
  }
};
// Sums of products of digits. The first word of a name is W's digit, the second x's.
struct DigitSums {
  TileSums high_high, low_high, high_low, low_low;
};

void sweep_digits(const Group& group, const DigitRows& rows, float (*acc)[16]) {
  const FixedGroup w{group.at};
  const Floats d = w.d();
  alignas(64) DigitSums sums;
  for (std::uint32_t tile = 0; tile < rows.count(); ++tile) {
    const std::uint32_t first = rows.first_of(tile);
    zero_tile<0>();
    zero_tile<1>();
    zero_tile<2>();
    zero_tile<3>();
    for (std::uint32_t k = 0; k < kGroupValues; k += 64) {
      load_tile<4>(rows.high[first] + k, kGroupValues);
      load_tile<6>(w.high_word(k / 4), kVectorPitch);
      add_tile_products<0, 4, 6>();
      load_tile<7>(w.low_word(k / 4), kVectorPitch);
      add_tile_products<1, 4, 7>();
      load_tile<5>(rows.low[first] + k, kGroupValues);
      add_tile_products<2, 5, 6>();
      add_tile_products<3, 5, 7>();
    }
    store_tile<0>(sums.high_high, kVectorPitch);
    store_tile<1>(sums.low_high, kVectorPitch);
    store_tile<2>(sums.high_low, kVectorPitch);
    store_tile<3>(sums.low_low, kVectorPitch);
    // If this is the last tile, it also has rows of the previous tile. These are skipped.
    for (std::uint32_t j = tile * kTileRows - first; j < kTileRows; ++j) {
      const Ints high = shift_left(load_ints(sums.high_high[j]), 8) + load_ints(sums.low_high[j]);
      const Ints low = shift_left(load_ints(sums.high_low[j]), 8) + load_ints(sums.low_low[j]);
      add_fixed_group(high, low, d, rows.ds[first + j], acc[first + j]);
    }
  }
}

bool multiplies_tiles() {
  return multiplies_ones<std::int32_t>(std::int8_t{1}, std::int8_t{-1},
                                       []() ZRT_INLINE_LAMBDA { add_tile_products<0, 4, 6>(); });
}

}  // namespace

bool has_amx_int8() {
  return has_avx512_vnni() && has_tiles(TileProducts::kBytes) && survives(multiplies_tiles);
}

bool linear_rows_amx_int8(const cpu::LinearArgs& args, std::uint32_t begin, std::uint32_t end) {
  if (args.n >= kFewestRows && args.x_dtype == DType::kQ16A256) {
    multiply_groups<DigitRows>(args, begin, end, sweep_digits);
    return true;
  }
  if (args.n < kFewestRows || args.x_dtype != DType::kQ8A256) return linear_rows_avx512_vnni(args, begin, end);
  return with_format(args.w_dtype, [&](auto format) {
    using F = decltype(format);
    if constexpr (F::kIsK)
      return run<F>(args, begin, end);
    else
      return false;
  });
}

}  // namespace zinc_rt::cpu_simd

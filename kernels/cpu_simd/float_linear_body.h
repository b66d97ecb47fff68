// Computes LINEAR on float weights and float activations on 16 lanes. Each instruction set has a .cpp file that
// includes this file after its lanes header. The order of sums is that of kernels/cpu/quant/{f32,f16,bf16}.cpp. Eight
// weight rows are multiplied by up to three rows of x, a group of 256 values of k at a time, so that each load serves
// several sums. Eight sums are folded at once. Lanes past the end of k add +0 * -0, which does not change them.
#pragma once

#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kGroup = 256;
constexpr std::uint32_t kTileRows = 8;  // number of rows of W in a tile
constexpr std::uint32_t kTileX = 3;     // number of rows of x in a tile, limited by the registers
// With at most this many rows of x, f32 weights are read in place, without a copy.
constexpr std::uint32_t kDirect = 12;
constexpr std::uint32_t kTokens = 64;  // how many rows of x are multiplied by a group before the next one is read

struct WeightF32 {
  static constexpr std::uint32_t kBytes = 4;
  ZRT_SIMD Part load(const std::byte* p) { return load_part(reinterpret_cast<const float*>(p)); }
};
struct WeightF16 {
  static constexpr std::uint32_t kBytes = 2;
  ZRT_SIMD Part load(const std::byte* p) { return load_part_f16(p); }
};
struct WeightBF16 {
  static constexpr std::uint32_t kBytes = 2;
  ZRT_SIMD Part load(const std::byte* p) { return load_part_bf16(p); }
};

// Describes a part of kTileRows rows of W, with n <= 256 values of k each.
struct WeightGroup {
  const std::byte* row[kTileRows];
  std::uint32_t n;
};
struct XGroup {
  const std::byte* first;
  std::uint64_t pitch;  // bytes between the starts of two rows
};
ZRT_SIMD const float* row_of(const XGroup& x, std::uint64_t r) {
  return reinterpret_cast<const float*>(x.first + r * x.pitch);
}

// Computes y[r][j] = y[r][j] + v, where v is the dot of weight row j and row r of x over the group. w.n is a multiple
// of 16. The function is not inlined, so that all registers are available for its sums.
template <class W, int kX>
__attribute__((noinline)) void add_dots(const WeightGroup& w, XGroup x, float (*y)[kTileRows]) {
  // number of pairs of weight rows j and j + 4 that are multiplied at once
  constexpr int kPairs = columns_of(2 * kX, kSums);
  const std::uint64_t n = w.n;
  const float* from[kX];
  for (int r = 0; r < kX; ++r) from[r] = row_of(x, static_cast<std::uint64_t>(r));
  Pair pairs[kX][4];
  for (int first = 0; first < 4; first += kPairs) {
    const std::byte* row[2 * kPairs];
    for (int i = 0; i < kPairs; ++i) {
      row[2 * i] = w.row[first + i];
      row[2 * i + 1] = w.row[first + i + 4];
    }
    Floats sum[kX][2 * kPairs];
    for (int r = 0; r < kX; ++r)
      for (int i = 0; i < 2 * kPairs; ++i) sum[r][i] = splat(0.0f);
    for (std::uint64_t k = 0; k < n; k += kLanes)
      for (int p = 0; p < kParts; ++p) {
        const std::uint64_t at = k + static_cast<std::uint64_t>(p * kPartLanes);
        Part weight[2 * kPairs];
        for (int i = 0; i < 2 * kPairs; ++i) weight[i] = W::load(row[i] + at * W::kBytes);
        for (int r = 0; r < kX; ++r) {
          const Part v = hold(load_part(from[r] + at));
          for (int i = 0; i < 2 * kPairs; ++i) part(sum[r][i], p) = fma_part(weight[i], v, part(sum[r][i], p));
        }
      }
    for (int r = 0; r < kX; ++r)
      for (int i = 0; i < kPairs; ++i) pairs[r][first + i] = fold_pair(sum[r][2 * i], sum[r][2 * i + 1]);
  }
  for (int r = 0; r < kX; ++r) add_folds(pairs[r], y[r]);
}

// Calls add_dots() for n rows of x, where n is 1 to kTileX.
template <class W>
ZRT_SIMD void add_tile(const WeightGroup& w, XGroup x, std::uint32_t n, float (*y)[kTileRows]) {
  switch (n) {
    case 1: return add_dots<W, 1>(w, x, y);
    case 2: return add_dots<W, 2>(w, x, y);
    default: return add_dots<W, 3>(w, x, y);
  }
}

// Holds a copy of a group as floats, padded to a multiple of 16 values, with contiguous rows. Without it, f32 rows at
// distances of a power of two bytes would map to few sets of the cache. So the copy saves time if many rows of x use
// it. 16-bit weights are copied only to pad them, because they are converted as fast as they can be read.
struct WideGroup {
  alignas(64) float w[kTileRows][kGroup];
  alignas(64) float x[kTileX][kGroup];
};
template <class W>
ZRT_SIMD WeightGroup widen(const WeightGroup& from, WideGroup& to) {
  WeightGroup wide;
  wide.n = (from.n + kLanes - 1) / kLanes * kLanes;
  for (std::uint32_t j = 0; j < kTileRows; ++j) {
    wide.row[j] = reinterpret_cast<const std::byte*>(to.w[j]);
    std::uint32_t k = 0;
    for (; k + kPartLanes <= from.n; k += kPartLanes) store_part(to.w[j] + k, W::load(from.row[j] + k * W::kBytes));
    for (; k < wide.n; k += kPartLanes) {
      std::byte last[kPartLanes * W::kBytes] = {};
      if (k < from.n) std::memcpy(last, from.row[j] + k * W::kBytes, (from.n - k) * W::kBytes);
      store_part(to.w[j] + k, W::load(last));
    }
  }
  return wide;
}
ZRT_SIMD XGroup fill_up(const XGroup& from, std::uint32_t rows, std::uint32_t n, WideGroup& to) {
  for (std::uint32_t r = 0; r < rows; ++r) {
    std::memcpy(to.x[r], row_of(from, r), n * sizeof(float));
    for (std::uint32_t k = n; k < kGroup; ++k) to.x[r][k] = -0.0f;
  }
  return {reinterpret_cast<const std::byte*>(to.x), sizeof(to.x[0])};
}

// Adds to y the products of n <= kTokens rows of x with the weights of the group. f32 weights of many rows, and groups
// whose length is not a multiple of kLanes, are copied to a WideGroup first.
template <class W>
ZRT_SIMD void add_group(const WeightGroup& w, XGroup x, std::uint32_t n, float (*y)[kTileRows]) {
  const bool is_full = w.n % kLanes == 0;
  const bool is_direct = is_full && (W::kBytes < 4 || n <= kDirect);
  WideGroup scratch;
  const WeightGroup wide = is_direct ? w : widen<W>(w, scratch);
  for (std::uint32_t t = 0; t < n; t += kTileX, x.first += kTileX * x.pitch) {
    const std::uint32_t rows = n - t < kTileX ? n - t : kTileX;
    if (is_direct)
      add_tile<W>(w, x, rows, y + t);
    else
      add_tile<WeightF32>(wide, is_full ? x : fill_up(x, rows, w.n, scratch), rows, y + t);
  }
}

// Computes rows [m, m + n_rows) of W times all rows of x, where n_rows <= 8. If n_rows < 8, the last row is used again
// for the missing rows.
template <class W>
void row_tile(const cpu::LinearArgs& a, std::uint32_t m, std::uint32_t n_rows) {
  const auto* w = static_cast<const std::byte*>(a.w);
  const auto* x = static_cast<const std::byte*>(a.x);
  const std::uint64_t w_pitch = std::uint64_t{a.k} * W::kBytes;
  for (std::uint32_t first = 0; first < a.n; first += kTokens) {
    const std::uint32_t n = a.n - first < kTokens ? a.n - first : kTokens;
    float y[kTokens][kTileRows] = {};
    for (std::uint32_t k = 0; k < a.k; k += kGroup) {
      WeightGroup group;
      group.n = a.k - k < kGroup ? a.k - k : kGroup;
      for (std::uint32_t j = 0; j < kTileRows; ++j)
        group.row[j] = w + (m + (j < n_rows ? j : n_rows - 1)) * w_pitch + std::uint64_t{k} * W::kBytes;
      add_group<W>(group, {x + first * a.x_pitch + std::uint64_t{k} * sizeof(float), a.x_pitch}, n, y);
    }
    for (std::uint32_t t = 0; t < n; ++t)
      for (std::uint32_t j = 0; j < n_rows; ++j)
        a.y[(first + t) * a.y_pitch + m + j] = a.bias != nullptr ? y[t][j] + a.bias[m + j] : y[t][j];
  }
}

template <class W>
void all_rows(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t m = begin; m < end; m += kTileRows) row_tile<W>(a, m, end - m < kTileRows ? end - m : kTileRows);
}

// Implements RowKernels::float_linear.
void float_linear(const cpu::LinearArgs& a, std::uint32_t begin, std::uint32_t end) {
  switch (a.w_dtype) {
    case DType::kF16: return all_rows<WeightF16>(a, begin, end);
    case DType::kBF16: return all_rows<WeightBF16>(a, begin, end);
    default: return all_rows<WeightF32>(a, begin, end);
  }
}

}  // namespace
}  // namespace zinc_rt::cpu_simd

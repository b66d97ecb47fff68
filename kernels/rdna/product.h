// Products y = x W^T of few columns (kernels/cpu/linear.cpp): LINEAR, LM_HEAD, and what experts and fused ops multiply.
// Grid: rows of W of all parts, in tiles of few_rows; columns, in passes of kColumns.
// kLanes lanes have a row of W, each with every kLanes-th group of 256 values, so that the integer sums of a group need
// no other lane, and a group's codes are read once for all columns of the pass. The groups' values are added in their
// order (docs/arithmetic.md, rules 3 and 4): every lane of a row does so, with those of the others.
#pragma once

#include "kernels/rdna/columns.h"
#include "kernels/rdna/formats.h"

namespace zinc_rt::rdna {

constexpr uint32_t kGroupValues = 256;

// What a group adds to the sum: acc = fma(v, s, acc).
struct GroupValue {
  float v, s;
};

// dot_group: n values of a row of w from `first` on, times those of rows of x in each form that these may have.
// x in q8a32: blocks of 32, ascending.
template <class F, uint32_t kColumns>
ZRT_DEVICE void dot_group(const uint8_t* row, const ActBlockQ8A32* const (&x_rows)[kColumns], uint32_t first,
                          uint32_t n, GroupValue (&value)[kColumns]) {
  const auto* w = (const typename F::Block*)row + first / 32;
  for (uint32_t c = 0; c < kColumns; ++c) value[c] = {0.0f, 1.0f};
#pragma unroll 2
  for (uint32_t b = 0; b < n / 32; ++b) {
    int isum[kColumns] = {};
#pragma unroll
    for (uint32_t i = 0; i < 32; i += 4) {
      const uint32_t codes = F::codes4(w[b], i);
#pragma unroll
      for (uint32_t c = 0; c < kColumns; ++c)
        isum[c] = __builtin_amdgcn_sudot4(true, (int)codes, true, (int)word(x_rows[c][first / 32 + b].qs + i), isum[c],
                                          false);
    }
    const float d = F::d(w[b]);
#pragma unroll
    for (uint32_t c = 0; c < kColumns; ++c) {
      const ActBlockQ8A32& x = x_rows[c][first / 32 + b];
      value[c].v = __builtin_fmaf((float)isum[c] * d, x.d, value[c].v);
      if constexpr (F::kMin) value[c].v = __builtin_fmaf((float)x.sum * F::m(w[b]), x.d, value[c].v);
    }
  }
}

// x in q8a256, a block a group.
template <class F, uint32_t kColumns>
ZRT_DEVICE void dot_group(const uint8_t* row, const ActBlockQ8A256* const (&x_rows)[kColumns], uint32_t first, uint32_t,
                          GroupValue (&value)[kColumns]) {
  const auto& w = ((const typename F::Block*)row)[first / 256];
  int isum[kColumns] = {}, msum[kColumns] = {};
#pragma unroll
  for (uint32_t j = 0; j < 256 / F::kSub; ++j) {
    int sum[kColumns] = {};
#pragma unroll
    for (uint32_t i = 0; i < F::kSub; i += 4) {
      const uint32_t codes = F::codes4(w, j * F::kSub + i);
#pragma unroll
      for (uint32_t c = 0; c < kColumns; ++c)
        sum[c] = __builtin_amdgcn_sudot4(true, (int)codes, true, (int)word(x_rows[c][first / 256].qs + j * F::kSub + i),
                                         sum[c], false);
    }
#pragma unroll
    for (uint32_t c = 0; c < kColumns; ++c) {
      const ActBlockQ8A256& x = x_rows[c][first / 256];
      isum[c] += product24(F::sc(w, j), sum[c]);
      if constexpr (F::kMin)
        msum[c] += product24(F::minimum(w, j), F::kSub == 16 ? x.sums[j] : x.sums[2 * j] + x.sums[2 * j + 1]);
    }
  }
#pragma unroll
  for (uint32_t c = 0; c < kColumns; ++c) {
    const float d = x_rows[c][first / 256].d;
    if constexpr (F::kMin)
      value[c] = {__builtin_fmaf((float)isum[c], F::d(w), (float)msum[c] * -F::m(w)), d};
    else
      value[c] = {(float)isum[c] * F::d(w), d};
  }
}

// x in q16a256, a block a group: the codes of w times the high digits of x, and times the low ones.
template <class F, uint32_t kColumns>
ZRT_DEVICE void dot_group(const uint8_t* row, const ActBlockQ16A256* const (&x_rows)[kColumns], uint32_t first,
                          uint32_t, GroupValue (&value)[kColumns]) {
  const auto& w = ((const typename F::Block*)row)[first / 256];
  int sums[kColumns][4] = {};  // high digits of w and x, high and low, low and high, low ones
#pragma unroll 8
  for (uint32_t i = 0; i < 256; i += 4) {
    const int w_high = (int)word(w.high + i), w_low = (int)word(w.low + i);
#pragma unroll
    for (uint32_t c = 0; c < kColumns; ++c) {
      const ActBlockQ16A256& x = x_rows[c][first / 256];
      const int x_high = (int)word(x.high + i), x_low = (int)word(x.low + i);
      sums[c][0] = __builtin_amdgcn_sudot4(true, w_high, true, x_high, sums[c][0], false);
      sums[c][1] = __builtin_amdgcn_sudot4(true, w_high, true, x_low, sums[c][1], false);
      sums[c][2] = __builtin_amdgcn_sudot4(true, w_low, true, x_high, sums[c][2], false);
      sums[c][3] = __builtin_amdgcn_sudot4(true, w_low, true, x_low, sums[c][3], false);
    }
  }
#pragma unroll
  for (uint32_t c = 0; c < kColumns; ++c) {
    const auto a = (float)(256 * sums[c][0] + sums[c][2]), b = (float)(256 * sums[c][1] + sums[c][3]);
    value[c] = {__builtin_fmaf(a, 256.0f, b) * F::d(w), x_rows[c][first / 256].d};
  }
}

// x in f32: 16 partial sums by k mod 16, folded. Rows of quantized weights are widened.
template <class F, uint32_t kColumns>
ZRT_DEVICE void dot_group(const uint8_t* row, const float* const (&x_rows)[kColumns], uint32_t first, uint32_t n,
                          GroupValue (&value)[kColumns]) {
  float lane[kColumns][16] = {};
  uint32_t i = 0;
  for (; i + 16 <= n; i += 16) {
#pragma unroll
    for (uint32_t l = 0; l < 16; l += 4) {
      float w[4];
      widen4<F>(row, first + i + l, w);
#pragma unroll
      for (uint32_t c = 0; c < kColumns; ++c)
#pragma unroll
        for (uint32_t k = 0; k < 4; ++k)
          lane[c][l + k] = __builtin_fmaf(w[k], x_rows[c][first + i + l + k], lane[c][l + k]);
    }
  }
  if constexpr (F::kBlock == 1) {  // others have whole blocks
    const auto* w = (const typename F::Block*)row + first;
#pragma unroll
    for (uint32_t l = 0; l < 16; ++l)
      if (i + l < n) {
#pragma unroll
        for (uint32_t c = 0; c < kColumns; ++c)
          lane[c][l] = __builtin_fmaf(F::value(w[i + l]), x_rows[c][first + i + l], lane[c][l]);
      }
  }
#pragma unroll
  for (uint32_t c = 0; c < kColumns; ++c) {
#pragma unroll
    for (uint32_t width = 8; width > 0; width /= 2)
#pragma unroll
      for (uint32_t l = 0; l < width; ++l) lane[c][l] = lane[c][l] + lane[c][l + width];
    value[c] = {lane[c][0], 1.0f};
  }
}

// The value of lane kLane of each kLanes.
template <uint32_t kLanes, uint32_t kLane>
ZRT_DEVICE float of_lane(float value) {
  static_assert(kLanes == 4 || kLanes == 8);
  const auto bits = (int)f32_bits(value);
  if constexpr (kLanes == 4) return f32_from_bits((uint32_t)__builtin_amdgcn_mov_dpp(bits, kLane * 0x55, 15, 15, true));
  return f32_from_bits((uint32_t)__builtin_amdgcn_mov_dpp8((unsigned)bits, kLane * 0x249249));  // three bits a lane
}
// acc of groups [g, n_groups) by the lanes' values, in order, from lane kLane on.
template <uint32_t kLanes, uint32_t kColumns, uint32_t kLane = 0>
ZRT_DEVICE void add_groups(const GroupValue (&value)[kColumns], uint32_t n, float (&acc)[kColumns]) {
  if (kLane >= n) return;
#pragma unroll
  for (uint32_t c = 0; c < kColumns; ++c)
    acc[c] = __builtin_fmaf(of_lane<kLanes, kLane>(value[c].v), of_lane<kLanes, kLane>(value[c].s), acc[c]);
  if constexpr (kLane + 1 < kLanes) add_groups<kLanes, kColumns, kLane + 1>(value, n, acc);
}

template <class F, class X, uint32_t kLanes, uint32_t kColumns>
ZRT_DEVICE void multiply_few(const ProductArgs& args) {
  const Columns columns = columns_of<kColumns>(args, group(1));
  if (columns.n == 0) return;
  const ProductPart part = part_of(args, group(0));
  const uint32_t lane = thread(), row = (group(0) - part.first_tile) * few_rows(kLanes) + lane / kLanes,
                 mine = lane % kLanes, n_groups = (args.k + kGroupValues - 1) / kGroupValues;
  if (columns.expert >= args.n_experts && args.choices != 0) {
    for (uint32_t c = 0; c < columns.n; ++c)
      if (mine == 0 && row < part.rows) put(args, part, row, columns.y_row(c), quiet_nan());
    return;
  }
  // Lanes beyond the matrix compute its last row, those beyond the row its last group, columns beyond the last that one;
  // none is used.
  const uint8_t* w = at_address<const uint8_t>(part.w) + columns.expert * part.expert_bytes +
                     (uint64_t)(row < part.rows ? row : part.rows - 1) * row_bytes_of<F>(args.k);
  const X* x[kColumns];
#pragma unroll
  for (uint32_t c = 0; c < kColumns; ++c)
    x[c] = at_address<const X>(args.x) +
           (uint64_t)columns.x_row(c < columns.n ? c : columns.n - 1) * (args.k / (sizeof(X) == 4 ? 1 : F::kBlock));
  float acc[kColumns] = {};
  for (uint32_t g = 0; g < n_groups; g += kLanes) {
    const uint32_t at = g + mine < n_groups ? g + mine : n_groups - 1, first = at * kGroupValues,
                   n = args.k - first < kGroupValues ? args.k - first : kGroupValues;
    GroupValue value[kColumns];
    dot_group<F, kColumns>(w, x, first, n, value);
    add_groups<kLanes, kColumns>(value, n_groups - g, acc);
  }
  if (mine != 0 || row >= part.rows) return;
#pragma unroll
  for (uint32_t c = 0; c < kColumns; ++c)
    if (c < columns.n) put(args, part, row, columns.y_row(c), acc[c]);
}

}  // namespace zinc_rt::rdna

// By how many lanes and columns: cpp/ring/amd/plan_products.cpp chooses.
#define ZRT_PRODUCT(name, F, X, lanes, columns)                                                                        \
  extern "C" __attribute__((global,                                                                                    \
                            amdgpu_flat_work_group_size(zinc_rt::rdna::kFewThreads, zinc_rt::rdna::kFewThreads))) void \
  name(const zinc_rt::rdna::ProductArgs args) {                                                                        \
    zinc_rt::rdna::multiply_few<zinc_rt::rdna::F, X, lanes, columns>(args);                                            \
  }
#define ZRT_PRODUCTS(format, F)                                     \
  ZRT_PRODUCT(product_##format##_4x1, F, zinc_rt::rdna::F::X, 4, 1) \
  ZRT_PRODUCT(product_##format##_4x4, F, zinc_rt::rdna::F::X, 4, 4) \
  ZRT_PRODUCT(product_##format##_8x1, F, zinc_rt::rdna::F::X, 8, 1) \
  ZRT_PRODUCT(product_##format##_8x4, F, zinc_rt::rdna::F::X, 8, 4)
#define ZRT_QUANTIZED_PRODUCTS(format, F) \
  ZRT_PRODUCTS(format, F)                 \
  ZRT_PRODUCT(product_##format##_f32, F, float, 4, 1)

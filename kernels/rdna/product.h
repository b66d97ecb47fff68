// Computes products y = x W^T of few columns, which are rows of x: LINEAR, LM_HEAD, and the products of experts and of
// fused ops (product_args.h has the terms). kernels/cpu/linear.cpp defines them.
// Grid: (tiles of few_rows(kLanes) rows of W, of all parts; passes of kColumns columns). kLanes neighbouring lanes, 4
// or 8, compute one row of W: each lane takes every kLanes-th group of 256 values of k. So a lane needs no other one
// for the integer sums of its groups, and decodes each group's weights once for all columns of the pass. Afterwards
// every lane of the row adds the values of all groups in ascending order (docs/arithmetic.md, rules 3 and 4), and reads
// those of the other lanes for that.
#pragma once

#include "kernels/rdna/columns.h"
#include "kernels/rdna/formats.h"

namespace zinc_rt::rdna {

constexpr uint32_t kGroupValues = 256;

// What one group adds to the sum of a row: acc = fma(v, s, acc).
struct GroupValue {
  float v, s;
};

// Each function dot_group() computes the values of one group: n weights of `row` from index `first` on, times each row
// of x. There is one for each type of x. This one is for q8a32; its blocks of 32 are added in ascending order.
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

// For x in q8a256. A group is one block of W and of x.
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

// For x in q16a256. A group is one block of W and of x. A and B are the sums of the weights' codes times the high and
// the low digits of x; v = fma(A, 256, B) * d.
template <class F, uint32_t kColumns>
ZRT_DEVICE void dot_group(const uint8_t* row, const ActBlockQ16A256* const (&x_rows)[kColumns], uint32_t first,
                          uint32_t, GroupValue (&value)[kColumns]) {
  const auto& w = ((const typename F::Block*)row)[first / 256];
  // Sums of products of digits: high of w times high of x, high times low, low times high, low times low.
  int sums[kColumns][4] = {};
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

// For x in f32: the float dot of rule 4, in 16 partial sums by k mod 16, folded. Quantized weights are converted to
// float first.
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
  if constexpr (F::kBlock == 1) {  // rows of other formats have only whole blocks
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

// Returns the `value` of lane kLane among the kLanes lanes that compute a row.
template <uint32_t kLanes, uint32_t kLane>
ZRT_DEVICE float of_lane(float value) {
  static_assert(kLanes == 4 || kLanes == 8);
  const auto bits = (int)f32_bits(value);
  if constexpr (kLanes == 4) return f32_from_bits((uint32_t)__builtin_amdgcn_mov_dpp(bits, kLane * 0x55, 15, 15, true));
  return f32_from_bits((uint32_t)__builtin_amdgcn_mov_dpp8((unsigned)bits, kLane * 0x249249));  // three bits per lane
}
// Each of the kLanes lanes of a row has the value of one group; the groups are consecutive. Adds the values of lane
// kLane and of the lanes after it to acc, in the order of the lanes. n: how many groups of the row are left, counted
// from the group of lane 0. Lanes that have no group of their own (from lane n on) are skipped.
template <uint32_t kLanes, uint32_t kColumns, uint32_t kLane = 0>
ZRT_DEVICE void add_groups(const GroupValue (&value)[kColumns], uint32_t n, float (&acc)[kColumns]) {
  if (kLane >= n) return;
#pragma unroll
  for (uint32_t c = 0; c < kColumns; ++c)
    acc[c] = __builtin_fmaf(of_lane<kLanes, kLane>(value[c].v), of_lane<kLanes, kLane>(value[c].s), acc[c]);
  if constexpr (kLane + 1 < kLanes) add_groups<kLanes, kColumns, kLane + 1>(value, n, acc);
}

// Computes a product. F is the weights' format, X the type of x.
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
  // Every lane must take part when the lanes exchange values. So lanes past the last row of W compute the last row,
  // lanes past the last group compute the last group, and columns past the last one repeat it. Nothing of that is used.
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

// Define the kernels of a format: by lanes per row of W and by columns per pass. cpp/ring/amd/plan_products.cpp chooses
// between them.
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

// LINEAR and LM_HEAD: y[t][m] = dot(w[m], x[t]) + bias[m] (kernels/cpu/linear.cpp).
// Grid: rows of W in tiles of 8, then tokens. A wave has a tile: four lanes a row, each with every fourth group of 256
// values, so that the integer sums of a group need no other lane. The groups' values are added in their order
// (docs/arithmetic.md, rules 3 and 4): every lane of a row does so, with those of the other three.
#pragma once

#include "kernels/rdna/formats.h"

namespace zinc_rt::rdna {

constexpr uint32_t kGroupValues = 256, kLanesARow = 4, kTileRows = 8;

// What a group adds to the sum: acc = fma(v, s, acc).
struct GroupValue {
  float v, s;
};

// dot_group: n values of a row of w from `first` on, times those of a row of x in each form that it may have.
// x in q8a32: blocks of 32, ascending.
template <class F>
ZRT_DEVICE GroupValue dot_group(const uint8_t* row, const ActBlockQ8A32* x_row, uint32_t first, uint32_t n) {
  const auto* w = (const typename F::Block*)row + first / 32;
  const auto* x = x_row + first / 32;
  float v = 0.0f;
  for (uint32_t b = 0; b < n / 32; ++b) {
    int isum = 0;
#pragma unroll
    for (uint32_t i = 0; i < 32; i += 4)
      isum = __builtin_amdgcn_sudot4(true, (int)F::codes4(w[b], i), true, (int)word(x[b].qs + i), isum, false);
    v = __builtin_fmaf((float)isum * F::d(w[b]), x[b].d, v);
    if constexpr (F::kMin) v = __builtin_fmaf((float)x[b].sum * F::m(w[b]), x[b].d, v);
  }
  return {v, 1.0f};
}

// x in q8a256, a block a group.
template <class F>
ZRT_DEVICE GroupValue dot_group(const uint8_t* row, const ActBlockQ8A256* x_row, uint32_t first, uint32_t) {
  const auto& w = ((const typename F::Block*)row)[first / 256];
  const auto& x = x_row[first / 256];
  int isum = 0, msum = 0;
#pragma unroll
  for (uint32_t j = 0; j < 256 / F::kSub; ++j) {
    int sum = 0;
#pragma unroll
    for (uint32_t i = 0; i < F::kSub; i += 4)
      sum = __builtin_amdgcn_sudot4(true, (int)F::codes4(w, j * F::kSub + i), true, (int)word(x.qs + j * F::kSub + i),
                                    sum, false);
    isum += F::sc(w, j) * sum;
    if constexpr (F::kMin) msum += F::minimum(w, j) * (F::kSub == 16 ? x.sums[j] : x.sums[2 * j] + x.sums[2 * j + 1]);
  }
  if constexpr (F::kMin) return {__builtin_fmaf((float)isum, F::d(w), (float)msum * -F::m(w)), x.d};
  return {(float)isum * F::d(w), x.d};
}

// x in q16a256, a block a group: the codes of w times the high digits of x, and times the low ones.
template <class F>
ZRT_DEVICE GroupValue dot_group(const uint8_t* row, const ActBlockQ16A256* x_row, uint32_t first, uint32_t) {
  const auto& w = ((const typename F::Block*)row)[first / 256];
  const auto& x = x_row[first / 256];
  int high_high = 0, high_low = 0, low_high = 0, low_low = 0;  // of w, of x
#pragma unroll 8
  for (uint32_t i = 0; i < 256; i += 4) {
    const int w_high = (int)word(w.high + i), w_low = (int)word(w.low + i);
    const int x_high = (int)word(x.high + i), x_low = (int)word(x.low + i);
    high_high = __builtin_amdgcn_sudot4(true, w_high, true, x_high, high_high, false);
    high_low = __builtin_amdgcn_sudot4(true, w_high, true, x_low, high_low, false);
    low_high = __builtin_amdgcn_sudot4(true, w_low, true, x_high, low_high, false);
    low_low = __builtin_amdgcn_sudot4(true, w_low, true, x_low, low_low, false);
  }
  const auto a = (float)(256 * high_high + low_high), b = (float)(256 * high_low + low_low);
  return {__builtin_fmaf(a, 256.0f, b) * F::d(w), x.d};
}

// x in f32: 16 partial sums by k mod 16, folded. Rows of quantized weights are widened.
template <class F>
ZRT_DEVICE GroupValue dot_group(const uint8_t* row, const float* x_row, uint32_t first, uint32_t n) {
  const float* x = x_row + first;
  float lane[16] = {};
  uint32_t i = 0;
  for (; i + 16 <= n; i += 16) {
#pragma unroll
    for (int l = 0; l < 16; l += 4) {
      float w[4];
      widen4<F>(row, first + i + l, w);
      for (int k = 0; k < 4; ++k) lane[l + k] = __builtin_fmaf(w[k], x[i + l + k], lane[l + k]);
    }
  }
  if constexpr (F::kBlock == 1) {  // others have whole blocks
    const auto* w = (const typename F::Block*)row + first;
#pragma unroll
    for (int l = 0; l < 16; ++l)
      if (i + l < n) lane[l] = __builtin_fmaf(F::value(w[i + l]), x[i + l], lane[l]);
  }
#pragma unroll
  for (int width = 8; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] = lane[l] + lane[l + width];
  return {lane[0], 1.0f};
}

struct Product {
  const uint8_t *w, *x;
  const float* bias;  // null: absent
  float* y;
  uint32_t k, m;
  bool is_quantized;  // x
};

template <class F>
ZRT_DEVICE void multiply(const Product& p) {
  const uint32_t lane = thread(), row = group(0) * kTileRows + lane / kLanesARow, part = lane % kLanesARow,
                 t = group(1), n_groups = (p.k + kGroupValues - 1) / kGroupValues;
  // Lanes beyond the matrix compute its last row, those beyond the row its last group; neither is used.
  const uint8_t* w = p.w + (uint64_t)(row < p.m ? row : p.m - 1) * row_bytes_of<F>(p.k);
  uint64_t x_bytes = (uint64_t)p.k * sizeof(float);
  if (p.is_quantized) x_bytes = (uint64_t)(p.k / F::kBlock) * sizeof(typename F::X);
  const uint8_t* x = p.x + t * x_bytes;
  float acc = 0.0f;
  for (uint32_t g = 0; g < n_groups; g += kLanesARow) {
    const uint32_t mine = g + part < n_groups ? g + part : n_groups - 1, first = mine * kGroupValues,
                   n = p.k - first < kGroupValues ? p.k - first : kGroupValues;
    GroupValue value;
    if constexpr (F::kBlock > 1)
      value = p.is_quantized ? dot_group<F>(w, (const typename F::X*)x, first, n)
                             : dot_group<F>(w, (const float*)x, first, n);
    else
      value = dot_group<F>(w, (const float*)x, first, n);
    acc = __builtin_fmaf(of_quad<0>(value.v), of_quad<0>(value.s), acc);
    if (g + 1 < n_groups) acc = __builtin_fmaf(of_quad<1>(value.v), of_quad<1>(value.s), acc);
    if (g + 2 < n_groups) acc = __builtin_fmaf(of_quad<2>(value.v), of_quad<2>(value.s), acc);
    if (g + 3 < n_groups) acc = __builtin_fmaf(of_quad<3>(value.v), of_quad<3>(value.s), acc);
  }
  if (part == 0 && row < p.m) p.y[(uint64_t)t * p.m + row] = p.bias != nullptr ? acc + p.bias[row] : acc;
}

constexpr int kSymbolColumns = 0, kSymbolRows = 1, kSymbolType = 2;

template <class F>
ZRT_DEVICE void linear(const OpArgs& args, const float* bias, float* y) {
  using Operand = operand::Linear;
  static_assert(operand::is_same_place(Operand::x, operand::LmHead::x) &&
                operand::is_same_place(Operand::w, operand::LmHead::w));
  multiply<F>({buffer<const uint8_t>(args, Operand::w), buffer<const uint8_t>(args, Operand::x), bias, y,
               dim(args, kSymbolColumns), dim(args, kSymbolRows), args.symbols[kSymbolType] != kF32});
}

}  // namespace zinc_rt::rdna

#define ZRT_LINEAR(name, F)                                                                   \
  ZRT_KERNEL(linear_##name, 32) {                                                             \
    using namespace zinc_rt;                                                                  \
    rdna::linear<rdna::F>(args, rdna::buffer<const float>(args, operand::Linear::bias),       \
                          rdna::buffer<float>(args, operand::Linear::y));                     \
  }                                                                                           \
  ZRT_KERNEL(lm_head_##name, 32) {                                                            \
    using namespace zinc_rt;                                                                  \
    rdna::linear<rdna::F>(args, nullptr, rdna::buffer<float>(args, operand::LmHead::logits)); \
  }

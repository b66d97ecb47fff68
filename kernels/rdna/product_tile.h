// Computes products y = x W^T of many columns, which are rows of x, by WMMA (matrix.h). The bits are those of
// product.h; product_args.h has the terms.
// Grid: (tiles of rows of W, of all parts; passes of 16 kTiles columns). Each wave computes 16 rows of W times the
// pass's columns. For each group of 256 values of k, the workgroup copies the columns' values to LDS; then each wave
// multiplies them by its rows of W, which it reads from global memory.
#pragma once

#include "kernels/rdna/columns.h"
#include "kernels/rdna/formats.h"
#include "kernels/rdna/matrix.h"

namespace zinc_rt::rdna {

// An argument of __builtin_amdgcn_sched_barrier(): the compiler may move loads from global memory across it, and
// nothing else.
constexpr int kLoadsMayPass = 0x20;

struct Words4 {
  uint32_t word[4];
};
// Copies 16 bytes. `to` is a multiple of 16, `from` need not be aligned.
ZRT_DEVICE void copy16(void* to, const void* from) {
  Words4 words;
  memcpy(&words, from, sizeof(words));
  *(Words4*)__builtin_assume_aligned(to, 16) = words;
}
// Return the values of one WMMA step that a lane passes (matrix.h). step_bytes() takes them from words in LDS,
// step_codes() from a block of weights, from value `first` on.
ZRT_DEVICE StepBytes step_bytes(const uint32_t* words) {
  StepBytes bytes;
#pragma unroll
  for (uint32_t i = 0; i < kOwnWords; ++i) bytes[i] = (int)words[i];
  return bytes;
}
template <class F>
ZRT_DEVICE StepBytes step_codes(const typename F::Block& w, uint32_t first) {
  StepBytes bytes;
#pragma unroll
  for (uint32_t i = 0; i < kOwnWords; ++i) bytes[i] = (int)F::codes4(w, first + 4 * i);
  return bytes;
}

// The structs below hold one group of 256 values of 16 kTiles columns in LDS, one struct for each type of x. Columns
// have some words more than they need. So when 16 lanes read the same word of 16 columns, they use different banks.
//   load(x, row_blocks, row, first, n)   copies the columns' n values from index `first` on, by all threads. row(c) is
//                                        the row of x of column c; rows have row_blocks blocks
//   multiply<F>(row, first, n, acc)      adds the products of these n values with a row of W to acc[tile][r], by a
//                                        whole wave
// This one is for x in q8a32.
template <uint32_t kTiles, uint32_t kThreads>
struct TileOfBlocks32 {
  static constexpr uint32_t kColumns = 16 * kTiles;
  alignas(16) uint32_t codes[kColumns][68];
  float d[8][kColumns], sum[8][kColumns];

  template <class Row>
  ZRT_MEMBER void load(const ActBlockQ8A32* x, uint64_t row_blocks, const Row& row, uint32_t first, uint32_t n) {
    const uint32_t n_blocks = n / 32;
    for (uint32_t i = thread(); i < kColumns * 8; i += kThreads) {
      const uint32_t column = i / 8, b = i % 8;
      if (b >= n_blocks) continue;
      const ActBlockQ8A32& block = x[row(column) * row_blocks + first / 32 + b];
      copy16(&codes[column][8 * b], block.qs);
      copy16(&codes[column][8 * b + 4], block.qs + 16);
      d[b][column] = block.d;
      sum[b][column] = (float)block.sum;
    }
  }
  template <class F>
  ZRT_MEMBER void multiply(const typename F::Block* row, uint32_t first, uint32_t n, float (&acc)[kTiles][8]) const {
    const uint32_t lane = thread() % 16;
    float v[kTiles][8] = {};
    for (uint32_t b = 0; b < n / 32; ++b) {
      const auto& w = row[first / 32 + b];
      StepBytes steps[2];
#pragma unroll
      for (uint32_t s = 0; s < 2; ++s) steps[s] = step_codes<F>(w, first_of_step<32>(s));
      const float factor = F::d(w);
#pragma unroll
      for (uint32_t tile = 0; tile < kTiles; ++tile) {
        Sums sums = {};
#pragma unroll
        for (uint32_t s = 0; s < 2; ++s)
          sums = multiply_step<true>(step_bytes(&codes[tile * 16 + lane][8 * b + first_of_step<32>(s) / 4]), steps[s],
                                     sums);
#pragma unroll
        for (uint32_t r = 0; r < 8; ++r) {
          const uint32_t column = tile * 16 + row_of_sum(r);
          v[tile][r] = __builtin_fmaf((float)sums[r] * factor, d[b][column], v[tile][r]);
          if constexpr (F::kMin) v[tile][r] = __builtin_fmaf(sum[b][column] * F::m(w), d[b][column], v[tile][r]);
        }
      }
    }
#pragma unroll
    for (uint32_t tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (uint32_t r = 0; r < 8; ++r) acc[tile][r] = acc[tile][r] + v[tile][r];
  }
};

// For x in q8a256. After the codes of a column come the low and the high bytes of its 16 sums of 16 codes. One more
// WMMA step multiplies the low bytes by the minimums of W, and another one the high bytes.
template <uint32_t kTiles, uint32_t kThreads>
struct TileOfBlocks256 {
  static constexpr uint32_t kColumns = 16 * kTiles, kLowSums = 64, kHighSums = 68;
  alignas(16) uint32_t codes[kColumns][76];
  float d[kColumns];

  template <class Row>
  ZRT_MEMBER void load(const ActBlockQ8A256* x, uint64_t row_blocks, const Row& row, uint32_t first, uint32_t) {
    for (uint32_t i = thread(); i < kColumns * 16; i += kThreads)
      copy16(&codes[i / 16][i % 16 * 4], x[row(i / 16) * row_blocks + first / 256].qs + i % 16 * 16);
    for (uint32_t i = thread(); i < kColumns * 4; i += kThreads) {
      const uint32_t column = i / 4, at = i % 4;
      const ActBlockQ8A256& block = x[row(column) * row_blocks + first / 256];
      const uint32_t two = word(block.sums + 4 * at), next = word(block.sums + 4 * at + 2);
      codes[column][kLowSums + at] = __builtin_amdgcn_perm(next, two, 0x06040200u);
      codes[column][kHighSums + at] = __builtin_amdgcn_perm(next, two, 0x07050301u);
      if (at == 0) d[column] = block.d;
    }
  }
  template <class F>
  ZRT_MEMBER void multiply(const typename F::Block* row, uint32_t first, uint32_t, float (&acc)[kTiles][8]) const {
    constexpr uint32_t kSteps = F::kSub / 16;
    const uint32_t lane = thread() % 16;
    const auto& w = row[first / 256];
    int isum[kTiles][8] = {};
#pragma unroll 2
    for (uint32_t j = 0; j < 256 / F::kSub; ++j) {
      StepBytes steps[kSteps];
#pragma unroll
      for (uint32_t s = 0; s < kSteps; ++s) steps[s] = step_codes<F>(w, j * F::kSub + first_of_step<F::kSub>(s));
      const int scale = F::sc(w, j);
#pragma unroll
      for (uint32_t tile = 0; tile < kTiles; ++tile) {
        Sums sums = {};
#pragma unroll
        for (uint32_t s = 0; s < kSteps; ++s)
          sums = multiply_step<true>(
              step_bytes(&codes[tile * 16 + lane][j * F::kSub / 4 + first_of_step<F::kSub>(s) / 4]), steps[s], sums);
#pragma unroll
        for (uint32_t r = 0; r < 8; ++r) isum[tile][r] = add_product24(sums[r], scale, isum[tile][r]);
      }
      // Without this fence the compiler loads the codes of all sub-blocks first, which takes more registers than there
      // are. Loads of W may still go ahead.
      __builtin_amdgcn_sched_barrier(kLoadsMayPass);
    }
    StepBytes minimums = {};
    if constexpr (F::kMin) {
#pragma unroll
      for (uint32_t i = 0; i < kOwnWords; ++i) minimums[i] = (int)F::minimums4(w, first_of_step<16>(0) + 4 * i);
    }
    const float factor = F::d(w);
#pragma unroll
    for (uint32_t tile = 0; tile < kTiles; ++tile) {
      Sums low = {}, high = {};
      float minimum = 0.0f;
      if constexpr (F::kMin) {
        const uint32_t* of_column = codes[tile * 16 + lane] + first_of_step<16>(0) / 4;
        low = multiply_step<false>(step_bytes(of_column + kLowSums), minimums, low);
        high = multiply_step<true>(step_bytes(of_column + kHighSums), minimums, high);
        minimum = F::m(w);
      }
#pragma unroll
      for (uint32_t r = 0; r < 8; ++r) {
        float v;
        if constexpr (F::kMin)
          v = __builtin_fmaf((float)isum[tile][r], factor, (float)(high[r] * 256 + low[r]) * -minimum);
        else
          v = (float)isum[tile][r] * factor;
        acc[tile][r] = __builtin_fmaf(v, d[tile * 16 + row_of_sum(r)], acc[tile][r]);
      }
      __builtin_amdgcn_sched_barrier(kLoadsMayPass);
    }
  }
};

// For x in q16a256. A column is its 256 high digits, then its 256 low ones.
template <uint32_t kTiles, uint32_t kThreads>
struct TileOfDigits {
  static constexpr uint32_t kColumns = 16 * kTiles, kLow = 64;
  alignas(16) uint32_t codes[kColumns][132];
  float d[kColumns];

  template <class Row>
  ZRT_MEMBER void load(const ActBlockQ16A256* x, uint64_t row_blocks, const Row& row, uint32_t first, uint32_t) {
    for (uint32_t i = thread(); i < kColumns * 32; i += kThreads)
      copy16(&codes[i / 32][i % 32 * 4], x[row(i / 32) * row_blocks + first / 256].high + i % 32 * 16);
    for (uint32_t i = thread(); i < kColumns; i += kThreads) d[i] = x[row(i) * row_blocks + first / 256].d;
  }
  // Adds the products of `digits`, the high or the low digits of a block of W, with the high and with the low digits of
  // x.
  ZRT_MEMBER void add_digits(const int8_t* digits, Sums (&high)[kTiles], Sums (&low)[kTiles]) const {
    const uint32_t lane = thread() % 16;
#pragma unroll 2
    for (uint32_t run = 0; run < 256; run += 32)
#pragma unroll
      for (uint32_t s = 0; s < 2; ++s) {
        const uint32_t at = run + first_of_step<32>(s);
        StepBytes w;
#pragma unroll
        for (uint32_t i = 0; i < kOwnWords; ++i) w[i] = (int)word(digits + at + 4 * i);
#pragma unroll
        for (uint32_t tile = 0; tile < kTiles; ++tile) {
          const uint32_t* of_column = codes[tile * 16 + lane] + at / 4;
          high[tile] = multiply_step<true>(step_bytes(of_column), w, high[tile]);
          low[tile] = multiply_step<true>(step_bytes(of_column + kLow), w, low[tile]);
        }
      }
  }
  template <class F>
  ZRT_MEMBER void multiply(const typename F::Block* row, uint32_t first, uint32_t, float (&acc)[kTiles][8]) const {
    const auto& w = row[first / 256];
    Sums high[kTiles] = {}, low[kTiles] = {};
    add_digits(w.high, high, low);
#pragma unroll
    for (uint32_t tile = 0; tile < kTiles; ++tile) high[tile] = high[tile] * 256, low[tile] = low[tile] * 256;
    add_digits(w.low, high, low);
    const float factor = F::d(w);
#pragma unroll
    for (uint32_t tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (uint32_t r = 0; r < 8; ++r)
        acc[tile][r] = __builtin_fmaf(__builtin_fmaf((float)high[tile][r], 256.0f, (float)low[tile][r]) * factor,
                                      d[tile * 16 + row_of_sum(r)], acc[tile][r]);
  }
};

template <class X, uint32_t kTiles, uint32_t kThreads>
struct TileOf;
template <uint32_t kTiles, uint32_t kThreads>
struct TileOf<ActBlockQ8A32, kTiles, kThreads> : TileOfBlocks32<kTiles, kThreads> {};
template <uint32_t kTiles, uint32_t kThreads>
struct TileOf<ActBlockQ8A256, kTiles, kThreads> : TileOfBlocks256<kTiles, kThreads> {};
template <uint32_t kTiles, uint32_t kThreads>
struct TileOf<ActBlockQ16A256, kTiles, kThreads> : TileOfDigits<kTiles, kThreads> {};

// Computes a product with weights of the format F.
template <class F, uint32_t kTiles, uint32_t kThreads>
ZRT_DEVICE void multiply_tile(const ProductArgs& args, TileOf<typename F::X, kTiles, kThreads>& tile) {
  constexpr uint32_t kGroupValues = 256;
  const Columns columns = columns_of<16 * kTiles>(args, group(1));
  if (columns.n == 0) return;
  const ProductPart part = part_of(args, group(0));
  const uint32_t row = (group(0) - part.first_tile) * (kThreads / 2) + thread() / kWave * 16 + thread() % 16;
  float acc[kTiles][8] = {};
  if (columns.expert < args.n_experts || args.choices == 0) {
    // Rows of W past the last one repeat it, and so do columns past the last one. Their results are not stored.
    const auto* w =
        (const typename F::Block*)(at_address<const uint8_t>(part.w) + columns.expert * part.expert_bytes +
                                   (uint64_t)(row < part.rows ? row : part.rows - 1) * row_bytes_of<F>(args.k));
    const auto* x = at_address<const typename F::X>(args.x);
    const auto x_row = [&](uint32_t c) { return (uint64_t)columns.x_row(c < columns.n ? c : columns.n - 1); };
    for (uint32_t first = 0; first < args.k; first += kGroupValues) {
      const uint32_t n = args.k - first < kGroupValues ? args.k - first : kGroupValues;
      workgroup_barrier();
      tile.load(x, args.k / F::kBlock, x_row, first, n);
      workgroup_barrier();
      tile.template multiply<F>(w, first, n, acc);
    }
  } else {
#pragma unroll
    for (uint32_t t = 0; t < kTiles; ++t)
#pragma unroll
      for (uint32_t r = 0; r < 8; ++r) acc[t][r] = quiet_nan();
  }
  if (row >= part.rows) return;
#pragma unroll
  for (uint32_t t = 0; t < kTiles; ++t)
#pragma unroll
    for (uint32_t r = 0; r < 8; ++r) {
      const uint32_t column = t * 16 + row_of_sum(r);
      if (column < columns.n) put(args, part, row, columns.y_row(column), acc[t][r]);
    }
}

}  // namespace zinc_rt::rdna

// Define the kernels of a format: _tile1 for few columns and _tile4 for many.
#define ZRT_TILE(name, F, shape)                                                                             \
  extern "C" __attribute__((                                                                                 \
      global, amdgpu_flat_work_group_size(zinc_rt::rdna::shape.threads, zinc_rt::rdna::shape.threads))) void \
  name(const zinc_rt::rdna::ProductArgs args) {                                                              \
    using namespace zinc_rt::rdna;                                                                           \
    __shared__ TileOf<F::X, shape.tiles, shape.threads> tile;                                                \
    multiply_tile<F, shape.tiles, shape.threads>(args, tile);                                                \
  }
#define ZRT_TILES(format, F)                        \
  ZRT_TILE(product_##format##_tile1, F, kSmallTile) \
  ZRT_TILE(product_##format##_tile4, F, kLargeTile)

// Columns: the class by which linear.cuh multiplies a group of 256 values of k of a tile of 16 rows of W, in shared
// memory, by up to 32 rows of x. The result is the group sum v of each row and column; linear.cuh adds these up in
// order.
#pragma once

#include "kernels/cuda/linear_job.cuh"

namespace zinc_rt::cuda {

constexpr int kColumnPitch = 20;  // Floats from a column of v to the next. With 20, a store has no bank conflicts.

// The scales and sums of a block of 32 values, for two rows of x. The sums are floats, which represent them exactly.
struct alignas(16) TwoBlocks {
  float d[2], sum[2];
};

// Columns multiplies up to 8 kN rows of x (columns). A lane loads the operands B of its columns: column lane / 4 of
// each column tile of 8.
// All x of a group is loaded at once, so that a group waits once for the L2 cache and not once per step. If there are
// registers for it (kAhead), ask() loads x while the group before is added up; else values() loads it.
// kHoldsRows: the addresses of the rows are kept in registers, and not computed again for each group.
template <Format F, int kN, bool kHoldsRows = false>
struct Columns {
  using T = Traits<F>;
  static constexpr bool kSigned = T::kP8 != 0 || T::kTable != 0,
                        kBlockSums = T::kBlock == 32 && (T::kOffset != 0 || T::kMin != 0),
                        kAhead = kN == 1 || T::kBlock == 32;
  // kT: tiles of W of a block. kColumnTiles and kColumns: column tiles and columns of x.
  static constexpr int kT = 1, kColumnTiles = kN, kColumns = 8 * kN;
  static constexpr bool kIsFloat = false;  // whether x is floats that run() quantizes
  static constexpr uint32_t kUnits = 1;    // units of a group that warps take in turn
  // The addresses of a row of x; with blocks of 256, `sums` points to the lane's four sums.
  struct Row {
    const int8_t* qs;
    const uint8_t* sums;
    const float* d;
  };
  ActRows x;
  uint32_t k, lane, row[kN];
  Row own[kN];  // only if kHoldsRows
  // What ask() has loaded for a group: operands B; with blocks of 256 the lane's sums and the scale; with blocks of 32
  // the sums and scales of steps lane % 4 * 2 and the next.
  uint2 asked_b[kN][8], asked_sums[kN];
  float asked_d[kN], asked_block_d[kN][2];
  int asked_block_sums[kN][2];

  // Sets the rows of x to multiply by. row_at(c): the row of x that is column c.
  template <class RowAt>
  __device__ __forceinline__ void set_rows(const RowAt& row_at) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      row[n] = row_at(n * 8 + lane / 4);
      if constexpr (kHoldsRows) own[n] = at_of(row[n]);
    }
  }

  // Loads x of group g, if it is loaded ahead (kAhead). n_steps: steps of 32 values that the group has.
  __device__ __forceinline__ void ask(uint32_t g, uint32_t n_steps) {
    if constexpr (kAhead) load(g, n_steps);
  }

  // Computes the sums v of a group. v[n][2 * r + c] is that of column n * 8 + lane % 4 * 2 + c and row lane / 4 + 8 *
  // r. scratch: shared memory of this warp (column_scratch_bytes), which formats with blocks of 32 use.
  __device__ __forceinline__ void values(const Group<F>& group, uint32_t g, float* scratch, float (&v)[kN][4]) {
    if constexpr (!kAhead) load(g, group.n_steps);
    if constexpr (T::kBlock == 32)
      blocks(group, reinterpret_cast<TwoBlocks*>(scratch), v);
    else
      supers(group, v);
  }

  // Stores the sums v of a group in shared memory; with blocks of 256 also the scale of x, by which v is multiplied
  // when it is added.
  __device__ __forceinline__ void run(const Group<F> (&groups)[1], uint32_t g, float* to) {
    static_assert(column_scratch_bytes(kN) <= kColumns * kColumnPitch * sizeof(float), "v's place");
    float v[kN][4];
    values(groups[0], g, to, v);
    if constexpr (T::kBlock == 32) __syncwarp();
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) to[(n * 8 + lane % 4 * 2 + i % 2) * kColumnPitch + lane / 4 + i / 2 * 8] = v[n][i];
      if (T::kBlock == 256 && lane % 4 == 0) to[(n * 8 + lane / 4) * kColumnPitch + 16] = asked_d[n];
    }
  }

 private:
  // Returns the lane's addresses of a row of x.
  __device__ __forceinline__ Row at_of(uint32_t row) const {
    const uint64_t first = static_cast<uint64_t>(row) * k;
    return {x.qs + first + lane % 4 * 8,
            static_cast<const uint8_t*>(x.sums) + first / 8 + (T::kBlock == 256 ? lane % 4 * 8 : 0),
            x.d + first / T::kBlock};
  }

  // Loads x of group g.
  __device__ __forceinline__ void load(uint32_t g, uint32_t n_steps) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const Row from = kHoldsRows ? own[n] : at_of(row[n]);
#pragma unroll
      for (int s = 0; s < 8; ++s)
        if (T::kBlock == 256 || s < n_steps)
          asked_b[n][s] = *reinterpret_cast<const uint2*>(from.qs + g * 256 + s * 32);
      if constexpr (T::kBlock == 256) {
        asked_d[n] = from.d[g];
        if constexpr (kHasSums<F>) asked_sums[n] = *reinterpret_cast<const uint2*>(from.sums + g * 32);
      } else {
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i) {
          const uint32_t s = lane % 4 * 2 + i;
          if (s >= n_steps) continue;
          asked_block_d[n][i] = from.d[g * 8 + s];
          if constexpr (kBlockSums) asked_block_sums[n][i] = reinterpret_cast<const int32_t*>(from.sums)[g * 8 + s];
        }
      }
    }
  }

  // All 8 steps are computed, also if the group is shorter, so that no step depends on a condition.
  __device__ __forceinline__ void blocks(const Group<F>& group, TwoBlocks* scratch, float (&v)[kN][4]) const {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        TwoBlocks& to = scratch[n * 32 + (lane % 4 * 2 + i) * 4 + lane / 8];
        to.d[lane / 4 % 2] = asked_block_d[n][i];
        if constexpr (kBlockSums) to.sum[lane / 4 % 2] = static_cast<float>(asked_block_sums[n][i]);
      }
#pragma unroll
      for (int c = 0; c < 4; ++c) v[n][c] = 0.0f;
    }
    __syncwarp();
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      uint32_t a[4];
      operand<F>(group.step(s), a);
      const uint32_t scales[2] = {group.scale(0, s), group.scale(1, s)};
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        const TwoBlocks& from = scratch[n * 32 + s * 4 + lane % 4];
        TwoBlocks x_blocks;
        if constexpr (kBlockSums) {
          x_blocks = from;
        } else {
          const float2 d = *reinterpret_cast<const float2*>(from.d);
          x_blocks = {{d.x, d.y}, {0.0f, 0.0f}};
        }
        int c[4] = {};
        mma32<kSigned>(c, a, asked_b[n][s]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint32_t scale = scales[i / 2];
          float isum = static_cast<float>(c[i]);
          if constexpr (T::kOffset != 0) isum = __fmaf_rn(x_blocks.sum[i % 2], -T::kOffset, isum);  // exact
          float sum = __fmaf_rn(isum * block_scale<F>(scale), x_blocks.d[i % 2], v[n][i]);
          if constexpr (T::kMin != 0) sum = __fmaf_rn(x_blocks.sum[i % 2] * block_min(scale), x_blocks.d[i % 2], sum);
          if (s < group.n_steps) v[n][i] = sum;
        }
      }
    }
  }

  // Computes the sums v of a group of a 256-value format.
  __device__ __forceinline__ void supers(const Group<F>& group, float (&v)[kN][4]) const {
    const KScales scales[2] = {group.scales(0), group.scales(1)};
    int isum[kN][4] = {};
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      uint32_t a[4];
      operand<F>(group.step(s), a);
#pragma unroll
      for (int n = 0; n < kN; ++n) add_step<F, kSigned>(isum[n], a, asked_b[n][s], scales, s);
    }
    uint32_t m[2] = {};
    if constexpr (kHasSums<F>) m[0] = sums_operand<F>(scales[0], lane), m[1] = sums_operand<F>(scales[1], lane);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      int c[4] = {};
      if constexpr (kHasSums<F>) add_sums(c, m, asked_sums[n]);
#pragma unroll
      for (int i = 0; i < 4; ++i) v[n][i] = super_value<F>(scales[i / 2], isum[n][i], c[i]);
    }
  }
};

}  // namespace zinc_rt::cuda

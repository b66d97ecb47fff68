// v of a group of 256 of k, for tiles of 16 rows of W in shared memory and a few rows of x. linear.cuh adds these up in
// order.
#pragma once

#include "kernels/cuda/linear_job.cuh"

namespace zinc_rt::cuda {

constexpr int kColumnPitch = 20;  // floats from a column of v to the next: no bank twice in a store

// Of a block of 32 of two rows of x; sums as floats, which have them exactly.
struct alignas(16) TwoBlocks {
  float d[2], sum[2];
};

// x of a launch, and what v of a group is, for up to 8 kN rows of x. A lane knows where the rows of x begin that it
// reads: those of the columns that it has in the B operands of an mma. All x of a group is asked for at once, so that a
// group waits for the L2 once and not once a step. It is asked for by `ask` while the group before is added up, where
// there are registers for that (kAhead), else when the group is there. kHoldsRows: where rows begin is kept in
// registers, not computed for each group.
template <Format F, int kN, bool kHoldsRows = false>
struct Columns {
  using T = Traits<F>;
  static constexpr bool kSigned = T::kP8 != 0 || T::kTable != 0,
                        kBlockSums = T::kBlock == 32 && (T::kOffset != 0 || T::kMin != 0),
                        kAhead = kN == 1 || T::kBlock == 32;
  static constexpr int kT = 1, kColumnTiles = kN, kColumns = 8 * kN;  // tiles of a block; tiles of columns, columns
  static constexpr bool kIsFloat = false;                             // of x, before run()
  static constexpr uint32_t kUnits = 1;                               // of a group
  // Where x of a row begins; of blocks of 256 its sums from the lane's four on.
  struct Row {
    const int8_t* qs;
    const uint8_t* sums;
    const float* d;
  };
  ActRows x;
  uint32_t k, lane, row[kN];
  Row own[kN];  // if kHoldsRows
  // The B operands of a group; of blocks of 256 their sums and scale, of blocks of 32 those of steps lane % 4 * 2 and
  // the next.
  uint2 asked_b[kN][8], asked_sums[kN];
  float asked_d[kN], asked_block_d[kN][2];
  int asked_block_sums[kN][2];

  template <class RowAt>
  __device__ __forceinline__ void set_rows(const RowAt& row_at) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      row[n] = row_at(n * 8 + lane / 4);
      if constexpr (kHoldsRows) own[n] = at_of(row[n]);
    }
  }

  __device__ __forceinline__ void ask(uint32_t g, uint32_t n_steps) {
    if constexpr (kAhead) load(g, n_steps);
  }

  // v of a group: for each column tile the values of columns lane % 4 * 2 and the next, of row lane / 4 and of the row
  // 8 further. scratch: for blocks of 32, shared memory of the warp's own, column_scratch_bytes.
  __device__ __forceinline__ void values(const Group<F>& group, uint32_t g, float* scratch, float (&v)[kN][4]) {
    if constexpr (!kAhead) load(g, group.n_steps);
    if constexpr (T::kBlock == 32)
      blocks(group, reinterpret_cast<TwoBlocks*>(scratch), v);
    else
      supers(group, v);
  }

  // v of a group, and the scale of x where v meets it later, to shared memory.
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
  __device__ __forceinline__ Row at_of(uint32_t row) const {
    const uint64_t first = static_cast<uint64_t>(row) * k;
    return {x.qs + first + lane % 4 * 8,
            static_cast<const uint8_t*>(x.sums) + first / 8 + (T::kBlock == 256 ? lane % 4 * 8 : 0),
            x.d + first / T::kBlock};
  }

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

  // All steps are computed, also those that a short group does not have: then none waits for the one before it.
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

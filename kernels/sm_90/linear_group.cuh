// v of a group of 256 of k, of tiles of 16 rows of W that lie in shared memory and a few rows of x: what linear.cuh
// adds up in order.
#pragma once

#include "kernels/sm_90/linear_job.cuh"

namespace zinc_rt::cuda {

constexpr int kColumnPitch = 20;  // floats from a column of v to the next: no bank twice in a store

// Of a block of 32 of two rows of x.
struct alignas(16) TwoBlocks {
  float d[2];
  int sum[2];
};

// x of a launch, and what v of a group is: of up to 8 kN rows of x. A lane knows the rows of x that it reads: those of
// the columns that the B and the C operands of an mma have in it. All x of a group is asked for at once, so that a
// group waits for the L2 once, not once a step; and by `ask`, while the group before it is added up, where there are
// registers for that (kAhead), else when the group is there.
template <Format F, int kN>
struct Columns {
  using T = Traits<F>;
  static constexpr bool kSigned = T::kP8 != 0 || T::kTable != 0,
                        kBlockSums = T::kBlock == 32 && (T::kOffset != 0 || T::kMin != 0),
                        kAhead = kN == 1 || T::kBlock == 32;
  static constexpr int kT = 1, kColumnTiles = kN, kColumns = 8 * kN;  // tiles of a block; tiles of columns, columns
  Q8Rows x;
  uint32_t k, lane, b_row[kN], c_row[kN][2];
  // The B operands of a group; of blocks of 256 their sums and scale, of blocks of 32 those of step lane / 4.
  uint2 asked_b[kN][8], asked_sums[kN];
  float asked_d[kN];
  TwoBlocks asked_blocks[kN];
  // Of one column tile: where the lane's row is.
  const int8_t* own_qs;
  const int16_t* own_sums;
  const float* own_d;

  template <class RowAt>
  __device__ __forceinline__ void set_rows(const RowAt& row_at) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      b_row[n] = row_at(n * 8 + lane / 4);
      c_row[n][0] = row_at(n * 8 + lane % 4 * 2);
      c_row[n][1] = row_at(n * 8 + lane % 4 * 2 + 1);
    }
    if constexpr (kN == 1) own_qs = qs_of(0), own_sums = sums_of(0), own_d = d_of(0);
  }

  __device__ __forceinline__ void ask(uint32_t g, uint32_t n_steps) {
    if constexpr (kAhead) load(g, n_steps);
  }

  // v of a group: of a column tile those of columns lane % 4 * 2 and the next with row lane / 4, then with row 8 more.
  // scratch: of blocks of 32, shared memory of the warp's own, column_scratch_bytes.
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
  // Where the lane's rows are, from its first value, or four sums, on.
  __device__ __forceinline__ const int8_t* qs_of(int n) const {
    return x.qs + static_cast<uint64_t>(b_row[n]) * k + lane % 4 * 8;
  }
  __device__ __forceinline__ const int16_t* sums_of(int n) const {
    return static_cast<const int16_t*>(x.sums) + static_cast<uint64_t>(b_row[n]) * (k / 16) + lane % 4 * 4;
  }
  __device__ __forceinline__ const float* d_of(int n) const {
    return x.d + static_cast<uint64_t>(b_row[n]) * (k / 256);
  }
  __device__ __forceinline__ void load(uint32_t g, uint32_t n_steps) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      const int8_t* qs = (kN == 1 ? own_qs : qs_of(n)) + g * 256;
#pragma unroll
      for (int s = 0; s < 8; ++s)
        if (T::kBlock == 256 || s < n_steps) asked_b[n][s] = *reinterpret_cast<const uint2*>(qs + s * 32);
    }
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      if constexpr (T::kBlock == 256) {
        asked_d[n] = (kN == 1 ? own_d : d_of(n))[g];
        if constexpr (kHasSums<F>)
          asked_sums[n] = *reinterpret_cast<const uint2*>((kN == 1 ? own_sums : sums_of(n)) + g * 16);
      } else if (lane / 4 < n_steps) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const uint64_t block = static_cast<uint64_t>(c_row[n][i]) * (k / 32) + g * 8 + lane / 4;
          asked_blocks[n].d[i] = x.d[block];
          if constexpr (kBlockSums) asked_blocks[n].sum[i] = static_cast<const int32_t*>(x.sums)[block];
        }
      }
    }
  }

  // Products of all steps are made, also of those that a short group has not: so none waits for the one before it.
  __device__ __forceinline__ void blocks(const Group<F>& group, TwoBlocks* scratch, float (&v)[kN][4]) const {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      if constexpr (kBlockSums)
        scratch[n * 32 + lane] = asked_blocks[n];
      else
        *reinterpret_cast<float2*>(scratch[n * 32 + lane].d) = {asked_blocks[n].d[0], asked_blocks[n].d[1]};
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
          x_blocks = {{d.x, d.y}, {0, 0}};
        }
        int c[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) c[i] = -T::kOffset * x_blocks.sum[i % 2];
        mma32<kSigned>(c, a, asked_b[n][s]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint32_t scale = scales[i / 2];
          float sum = __fmaf_rn(static_cast<float>(c[i]) * block_scale<F>(scale), x_blocks.d[i % 2], v[n][i]);
          if constexpr (T::kMin != 0)
            sum = __fmaf_rn(static_cast<float>(x_blocks.sum[i % 2]) * block_min(scale), x_blocks.d[i % 2], sum);
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

// v of a group of 256 of k, of tiles of 16 rows of W that lie in shared memory and a few rows of x: what linear.cuh
// adds up in order.
#pragma once

#include "kernels/sm_90/linear_job.cuh"

namespace zinc_rt::cuda {

constexpr int kColumnPitch = 20;  // floats from a column of v to the next: no bank twice in a store

// x of a launch, and what v of a group is: of up to 8 kN rows of x. A lane knows the rows of x that it reads: those of
// the columns that the B and the C operands of an mma have in it.
// kAhead: of one column tile, x of a group is asked for by `ask`, else only when the group is there.
template <Format F, int kN, bool kAhead = false>
struct Columns {
  static_assert(kN == 1 || !kAhead, "registers for x");
  using T = Traits<F>;
  static constexpr bool kSigned = T::kP8 != 0 || T::kTable != 0;
  static constexpr int kT = 1, kColumnTiles = kN, kColumns = 8 * kN;  // tiles of a block; tiles of columns, columns
  Q8Rows x;
  uint32_t k, lane, b_row[kN], c_row[kN][2];
  // Of one column tile: the B operands of a group, and of blocks of 256 their sums and scale; where the lane's row is.
  uint2 asked_b[kN == 1 ? 8 : 1], asked_sums;
  float asked_d;
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
    if constexpr (kN == 1) {
      own_qs = x.qs + static_cast<uint64_t>(b_row[0]) * k + lane % 4 * 8;
      if constexpr (T::kBlock == 256) {
        own_sums = static_cast<const int16_t*>(x.sums) + static_cast<uint64_t>(b_row[0]) * (k / 16) + lane % 4 * 4;
        own_d = x.d + static_cast<uint64_t>(b_row[0]) * (k / 256);
      }
    }
  }

  __device__ __forceinline__ void ask(uint32_t g, uint32_t n_steps) {
    if constexpr (kAhead) ask_own(g, n_steps);
  }

  // v of a group: of a column tile those of columns lane % 4 * 2 and the next with row lane / 4, then with row 8 more.
  __device__ __forceinline__ void values(const Group<F>& group, uint32_t g, float (&v)[kN][4]) {
    if constexpr (kN == 1 && !kAhead) ask_own(g, group.n_steps);
    if constexpr (T::kBlock == 32)
      blocks(group, g, v);
    else
      supers(group, g, v);
  }

  // v of a group, and the scale of x where v meets it later, to shared memory.
  __device__ __forceinline__ void run(const Group<F> (&groups)[1], uint32_t g, float* to) {
    float v[kN][4];
    values(groups[0], g, v);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) to[(n * 8 + lane % 4 * 2 + i % 2) * kColumnPitch + lane / 4 + i / 2 * 8] = v[n][i];
      if (T::kBlock == 256 && lane % 4 == 0)
        to[(n * 8 + lane / 4) * kColumnPitch + 16] = kN == 1 ? asked_d : scale_of(n, g);
    }
  }

 private:
  __device__ __forceinline__ void ask_own(uint32_t g, uint32_t n_steps) {
#pragma unroll
    for (int s = 0; s < 8; ++s)
      if (T::kBlock == 256 || s < n_steps) asked_b[s] = *reinterpret_cast<const uint2*>(own_qs + g * 256 + s * 32);
    if constexpr (kHasSums<F>) asked_sums = *reinterpret_cast<const uint2*>(own_sums + g * 16);
    if constexpr (T::kBlock == 256) asked_d = own_d[g];
  }
  __device__ __forceinline__ uint2 operand_b(int n, uint32_t g, int s) const {
    return *reinterpret_cast<const uint2*>(x.qs + static_cast<uint64_t>(b_row[n]) * k + g * 256 + s * 32 +
                                           lane % 4 * 8);
  }
  // Of a block of 256: four sums of 16 values, and the scale.
  __device__ __forceinline__ uint2 sums_of(int n, uint32_t g) const {
    return *reinterpret_cast<const uint2*>(static_cast<const int16_t*>(x.sums) +
                                           static_cast<uint64_t>(b_row[n]) * (k / 16) + g * 16 + lane % 4 * 4);
  }
  __device__ __forceinline__ float scale_of(int n, uint32_t g) const {
    return x.d[static_cast<uint64_t>(b_row[n]) * (k / 256) + g];
  }

  __device__ __forceinline__ void blocks(const Group<F>& group, uint32_t g, float (&v)[kN][4]) const {
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) v[n][c] = 0.0f;
    // Of one column tile all scales and sums of x are asked for first.
    constexpr int kFirst = kN == 1 ? 8 : 1;
    constexpr bool kSums = T::kOffset != 0 || T::kMin != 0;
    float first_d[kFirst][2];
    int first_sum[kFirst][2];
    const auto ask_scales = [&](int to, int n, int s) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint64_t block = static_cast<uint64_t>(c_row[n][i]) * (k / 32) + g * 8 + s;
        first_d[to][i] = x.d[block];
        first_sum[to][i] = kSums ? static_cast<const int32_t*>(x.sums)[block] : 0;
      }
    };
    if constexpr (kN == 1) {
#pragma unroll
      for (int s = 0; s < kFirst; ++s)
        if (s < group.n_steps) ask_scales(s, 0, s);
    }
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      if (s >= group.n_steps) break;
      uint32_t a[4];
      operand<F>(group.step(s), a);
      const uint32_t scales[2] = {group.scale(0, s), group.scale(1, s)};
#pragma unroll
      for (int n = 0; n < kN; ++n) {
        if constexpr (kN > 1) ask_scales(0, n, s);
        const int here = kN == 1 ? s : 0;
        const float(&dx)[2] = first_d[here];
        const int(&sum)[2] = first_sum[here];
        int c[4] = {-T::kOffset * sum[0], -T::kOffset * sum[1], -T::kOffset * sum[0], -T::kOffset * sum[1]};
        mma32<kSigned>(c, a, kN == 1 ? asked_b[s] : operand_b(n, g, s));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint32_t scale = scales[i / 2];
          v[n][i] = __fmaf_rn(static_cast<float>(c[i]) * block_scale<F>(scale), dx[i % 2], v[n][i]);
          if constexpr (T::kMin != 0)
            v[n][i] = __fmaf_rn(static_cast<float>(sum[i % 2]) * block_min(scale), dx[i % 2], v[n][i]);
        }
      }
    }
  }

  __device__ __forceinline__ void supers(const Group<F>& group, uint32_t g, float (&v)[kN][4]) const {
    const KScales scales[2] = {group.scales(0), group.scales(1)};
    int isum[kN][4] = {};
    uint2 sums[kN];
    if constexpr (kHasSums<F>) {
#pragma unroll
      for (int n = 0; n < kN; ++n) sums[n] = kN == 1 ? asked_sums : sums_of(n, g);
    }
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      uint32_t a[4];
      operand<F>(group.step(s), a);
#pragma unroll
      for (int n = 0; n < kN; ++n)
        add_step<F, kSigned>(isum[n], a, kN == 1 ? asked_b[s] : operand_b(n, g, s), scales, s);
    }
    uint32_t m[2] = {};
    if constexpr (kHasSums<F>) m[0] = sums_operand<F>(scales[0], lane), m[1] = sums_operand<F>(scales[1], lane);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      int c[4] = {};
      if constexpr (kHasSums<F>) add_sums(c, m, sums[n]);
#pragma unroll
      for (int i = 0; i < 4; ++i) v[n][i] = super_value<F>(scales[i / 2], isum[n][i], c[i]);
    }
  }
};

}  // namespace zinc_rt::cuda

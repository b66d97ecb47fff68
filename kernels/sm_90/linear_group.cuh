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

// The same of one row of x and blocks of kT tiles: the B operand of step s has x in its column s and else zeros, so
// that one sum collects all steps of a group, each in its own column, and every lane has two steps of two rows of W
// left.
template <Format F, int kTiles>
struct OneColumn {
  using T = Traits<F>;
  static constexpr bool kSigned = T::kP8 != 0 || T::kTable != 0;
  static constexpr int kT = kTiles, kColumnTiles = 0, kColumns = 1;
  Q8Rows x;
  uint32_t k, lane, row;
  // What a lane wants of x of a group, on its way before the group is there: its step of the B operand; sums and scales
  // of the two steps that it will have left.
  uint2 own, sums;
  float d[2];

  template <class RowAt>
  __device__ __forceinline__ void set_rows(const RowAt& row_at) {
    row = row_at(0);
  }

  __device__ __forceinline__ void ask(uint32_t g, uint32_t n_steps) {
    const uint32_t own_step = lane / 4, pair = lane % 4;
    const uint64_t value = static_cast<uint64_t>(row) * k + g * 256;
    own = sums = uint2{0, 0};
    if (own_step < n_steps) own = *reinterpret_cast<const uint2*>(x.qs + value + own_step * 32 + pair * 8);
    if constexpr (T::kBlock == 256) {
      if constexpr (kHasSums<F>)
        sums = *reinterpret_cast<const uint2*>(static_cast<const int16_t*>(x.sums) + value / 16 + pair * 4);
      d[0] = x.d[value / 256];
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const bool is_step = pair * 2 + i < n_steps;
        d[i] = is_step ? x.d[value / 32 + pair * 2 + i] : 0.0f;
        if constexpr (T::kOffset != 0 || T::kMin != 0)
          (i == 0 ? sums.x : sums.y) = is_step ? static_cast<const uint32_t*>(x.sums)[value / 32 + pair * 2 + i] : 0;
      }
    }
  }

  __device__ __forceinline__ void run(const Group<F> (&groups)[kT], uint32_t, float* to) const {
    float v[kT][2];
    if constexpr (T::kBlock == 32)
      blocks(groups, v);
    else
      supers(groups, v);
    if (lane % 4 != 3) return;
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int r = 0; r < 2; ++r) to[t * kColumnPitch + lane / 4 + 8 * r] = v[t][r];
    if (T::kBlock == 256 && lane == 3) to[16] = d[0];
  }

 private:
  __device__ __forceinline__ uint2 operand_b(int s) const { return lane / 4 == s ? own : uint2{0, 0}; }
  // Words of one of four pairs.
  __device__ __forceinline__ uint32_t of_pair(uint32_t a, uint32_t b, uint32_t c, uint32_t d) const {
    return lane % 4 < 2 ? (lane % 4 == 0 ? a : b) : (lane % 4 == 2 ? c : d);
  }

  __device__ __forceinline__ void blocks(const Group<F> (&groups)[kT], float (&v)[kT][2]) const {
    const uint32_t first = lane % 4 * 2;
    const int sum[2] = {static_cast<int>(sums.x), static_cast<int>(sums.y)};
    const uint32_t n_steps = groups[0].n_steps;
    int c[kT][2][4];  // of the even steps and the odd ones, so that one need not wait for the other
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) c[t][0][i] = -T::kOffset * sum[i % 2], c[t][1][i] = 0;
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      if (s >= n_steps) break;
      const uint2 b = operand_b(s);
#pragma unroll
      for (int t = 0; t < kT; ++t) {
        uint32_t a[4];
        operand<F>(groups[t].step(s), a);
        mma32<kSigned>(c[t][s % 2], a, b);
      }
    }
#pragma unroll
    for (int tr = 0; tr < 2 * kT; ++tr) {
      const int t = tr / 2, r = tr % 2;
      float& value = v[t][r];
      value = 0.0f;
      uint32_t scale[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) scale[i] = first + i < n_steps ? groups[t].scale(r, first + i) : 0;
      const float product[2] = {static_cast<float>(c[t][0][2 * r] + c[t][1][2 * r]) * block_scale<F>(scale[0]),
                                static_cast<float>(c[t][0][2 * r + 1] + c[t][1][2 * r + 1]) * block_scale<F>(scale[1])};
      // Blocks in order: from pair to pair.
#pragma unroll
      for (uint32_t pair = 0; pair < 4; ++pair) {
        if (pair > 0) value = __shfl_up_sync(0xFFFFFFFFu, value, lane % 4 == pair ? 1 : 0);
        if (lane % 4 != pair) continue;
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (first + i < n_steps) {
            value = __fmaf_rn(product[i], d[i], value);
            if constexpr (T::kMin != 0)
              value = __fmaf_rn(static_cast<float>(sum[i]) * block_min(scale[i]), d[i], value);
          }
      }
    }
  }

  __device__ __forceinline__ void supers(const Group<F> (&groups)[kT], float (&v)[kT][2]) const {
    constexpr bool kIsHalved = T::kSub == 16;
    const uint32_t sum[2] = {sums.x, sums.y};  // two of 16 values each
    const auto half_sum = [&](int i, int half) { return static_cast<int16_t>(half == 0 ? sum[i] : sum[i] >> 16); };
    // Of the first and the last 16 values of a step, or of the even steps and the odd ones: neither waits for the
    // other.
    int sums_of[kT][2][4];
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < 4; ++i) sums_of[t][half][i] = -T::kOffset * half_sum(i % 2, half);
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      const uint2 b = operand_b(s);
#pragma unroll
      for (int t = 0; t < kT; ++t) {
        int(&c)[2][4] = sums_of[t];
        uint32_t a[4];
        operand<F>(groups[t].step(s), a);
        if constexpr (kIsHalved) {
          mma16<kSigned>(c[0], a[0], a[1], b.x);
          mma16<kSigned>(c[1], a[2], a[3], b.y);
        } else {
          mma32<kSigned>(c[s % 2], a, b);
        }
      }
    }
#pragma unroll
    for (int tr = 0; tr < 2 * kT; ++tr) {
      const int t = tr / 2, r = tr % 2;
      const int(&c)[2][4] = sums_of[t];
      const KScales scales = groups[t].scales(r);
      int isum = 0, msum = 0;
      // The sub-scales of the pair's steps: two bytes of a word, or four.
      const auto own_bytes = [&](const uint32_t(&words)[4]) {
        if constexpr (kIsHalved) return of_pair(words[0], words[1], words[2], words[3]);
        return (lane % 4 < 2 ? words[0] : words[1]) >> (16 * (lane % 2));
      };
      KScales own_scales{};
      own_scales.sc[0] = own_bytes(scales.sc);
      const uint32_t m = T::kMin != 0 ? own_bytes(scales.m) : 0;
      const auto minimum = [&](int i) { return static_cast<int>(m >> (8 * i) & 0xFF); };
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int first = c[0][2 * r + i], second = c[1][2 * r + i];
        if constexpr (kIsHalved) {
          isum += sub_scale<F>(own_scales, 2 * i) * first + sub_scale<F>(own_scales, 2 * i + 1) * second;
          if constexpr (T::kMin != 0) msum += minimum(2 * i) * half_sum(i, 0) + minimum(2 * i + 1) * half_sum(i, 1);
        } else {
          isum += sub_scale<F>(own_scales, i) * (first + second);
          if constexpr (T::kMin != 0) msum += minimum(i) * (half_sum(i, 0) + half_sum(i, 1));
        }
      }
#pragma unroll
      for (int width = 1; width < 4; width *= 2) {
        isum += __shfl_xor_sync(0xFFFFFFFFu, isum, width);
        if constexpr (T::kMin != 0) msum += __shfl_xor_sync(0xFFFFFFFFu, msum, width);
      }
      v[t][r] = super_value<F>(scales, isum, msum);  // what offsets take off is in isum already: msum is 0 then
    }
  }
};

}  // namespace zinc_rt::cuda

// How linear.cuh multiplies a group (256 values of k) of FIXED16 weights: the specializations of Columns, OneColumn and
// FloatColumn. Codes of W and of x are two digits each (kernels/common/digits.h), and a product of digits sums up a
// whole group exactly. The order is that of kernels/cpu/quant/fixed16.cpp. Both digits of a row of x are adjacent
// columns of operand B, so a lane gets both sums of a row of x from one product.
#pragma once

#include "kernels/cuda/linear_one_row.cuh"

namespace zinc_rt::cuda {

// Return v, the product of a group of a row of W and a row of x, before it is multiplied by the scale of x. d: the
// scale of W. With three arguments, high is the sum of W's codes times x's high digits, and low the same with x's low
// digits. With five arguments, both are also split by the digits of W: high_low is the sum of W's high digits times x's
// low digits.
__device__ __forceinline__ float fixed_value(int high, int low, float d) {
  return __fmaf_rn(static_cast<float>(high), 256.0f, static_cast<float>(low)) * d;
}
__device__ __forceinline__ float fixed_value(int high_high, int low_high, int high_low, int low_low, float d) {
  return fixed_value(high_high * 256 + low_high, high_low * 256 + low_low, d);
}
// Return a scale of W. The first version returns that of row `row` of half a group, the second that of row lane / 4 of
// half r.
__device__ __forceinline__ float fixed_scale(const uint8_t* half, uint32_t row) {
  return __uint_as_float(static_cast<uint32_t>(*reinterpret_cast<const uint16_t*>(half + 2 * kFixedPlane + row * 2))
                         << 16);
}
__device__ __forceinline__ float fixed_scale(const Group<kFixed16>& group, int r) {
  return fixed_scale(group.at + r * kFixedHalf, group.lane / 4);
}
// FixedPair holds the lane's operands A of a pair of steps of 32 values: a[i] is for step 2 * pair + i. An operand has
// 16 rows. Rows 0 to 7 are read from the plane `first`, rows 8 to 15 from `second`.
struct FixedPair {
  uint32_t a[2][4];

  FixedPair() = default;
  __device__ __forceinline__ FixedPair(const uint8_t* first, const uint8_t* second, uint32_t pair, uint32_t lane) {
    const uint4 x = reinterpret_cast<const uint4*>(first)[pair * 32 + lane],
                y = reinterpret_cast<const uint4*>(second)[pair * 32 + lane];
    a[0][0] = x.x, a[0][1] = y.x, a[0][2] = x.y, a[0][3] = y.y;
    a[1][0] = x.z, a[1][1] = y.z, a[1][2] = x.w, a[1][3] = y.w;
  }
};
// Returns the operands whose rows are one digit of all 16 rows of a tile. at: the tile's group. plane: 0 for the high
// digits, 1 for the low ones.
__device__ __forceinline__ FixedPair fixed_pair(const uint8_t* at, int plane, uint32_t pair, uint32_t lane) {
  at += plane * kFixedPlane;
  return FixedPair(at, at + kFixedHalf, pair, lane);
}

// Columns for FIXED16, with the interface of linear_group.cuh. 8 rows of x need 16 columns, which are two operands B:
// column 2 j + p of operand i is digit p (0: high) of row 2 j + i. A lane gets columns 2 j and 2 j + 1, j = lane % 4.
// So it gets rows 2 j and 2 j + 1 of x, as in linear_group.cuh.
template <int kN, bool kHoldsRows>
struct Columns<kFixed16, kN, kHoldsRows> {
  static constexpr bool kAhead = kN == 1, kIsFloat = false;
  static constexpr uint32_t kUnits = 1;
  static constexpr int kT = 1, kColumnTiles = kN, kColumns = 8 * kN;
  ActRows x;
  uint32_t k, lane, row[kN];
  // The digits of the lane's row, for each column tile and operand i; points to the lane's word of the first step.
  const uint32_t* own[kN][2];
  uint2 asked_b[kAhead ? kN : 1][2][8];
  float asked_d[kN];

  // Sets the rows of x to multiply by. row_at(c): the row of x that is column c.
  template <class RowAt>
  __device__ __forceinline__ void set_rows(const RowAt& row_at) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      row[n] = row_at(n * 8 + lane / 4);
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        const uint64_t first = static_cast<uint64_t>(row_at(n * 8 + lane / 8 * 2 + i)) * k * 2;
        own[n][i] = reinterpret_cast<const uint32_t*>(x.qs + first + lane / 4 % 2 * 256 + lane % 4 * 4);
      }
    }
  }

  // Loads x of group g, if it is loaded ahead (kAhead).
  __device__ __forceinline__ void ask(uint32_t g, uint32_t) {
    if constexpr (kAhead) load_all(g);
  }

  // Computes the sums v of a group for the lane's rows and columns, as values() of linear_group.cuh does.
  __device__ __forceinline__ void values(const Group<kFixed16>& group, uint32_t g, float*, float (&v)[kN][4]) {
    if constexpr (!kAhead) load_scales(g);
    int high[kN][2][4] = {}, low[kN][2][4] = {};
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const FixedPair of_high = fixed_pair(group.at, 0, pair, lane), of_low = fixed_pair(group.at, 1, pair, lane);
#pragma unroll
      for (int n = 0; n < kN; ++n)
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int s = 0; s < 2; ++s) {
            const uint2 b = kAhead ? asked_b[n][i][2 * pair + s] : load(own[n][i], g, 2 * pair + s);
            mma32<true>(high[n][i], of_high.a[s], b);
            mma32<true>(low[n][i], of_low.a[s], b);
          }
    }
    const float d[2] = {fixed_scale(group, 0), fixed_scale(group, 1)};
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int at = 0; at < 4; ++at) {
        const int r = at / 2, i = at % 2;
        v[n][at] = fixed_value(high[n][i][2 * r], low[n][i][2 * r], high[n][i][2 * r + 1], low[n][i][2 * r + 1], d[r]);
      }
  }

  // Computes the sums v of a group and stores them in shared memory, with the scales of x.
  __device__ __forceinline__ void run(const Group<kFixed16> (&groups)[1], uint32_t g, float* to) {
    float v[kN][4];
    values(groups[0], g, to, v);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) to[(n * 8 + lane % 4 * 2 + i % 2) * kColumnPitch + lane / 4 + i / 2 * 8] = v[n][i];
      if (lane % 4 == 0) to[(n * 8 + lane / 4) * kColumnPitch + 16] = asked_d[n];
    }
  }

 private:
  // Returns the lane's operand B of step s of group g.
  __device__ __forceinline__ static uint2 load(const uint32_t* of_row, uint32_t g, int s) {
    const uint32_t* at = of_row + g * 128 + s * 8;
    return uint2{at[0], at[4]};
  }
  __device__ __forceinline__ void load_scales(uint32_t g) {
#pragma unroll
    for (int n = 0; n < kN; ++n) asked_d[n] = x.d[static_cast<uint64_t>(row[n]) * (k / 256) + g];
  }
  __device__ __forceinline__ void load_all(uint32_t g) {
    load_scales(g);
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int s = 0; s < 8; ++s) asked_b[n][i][s] = load(own[n][i], g, s);
  }
};

// OneColumn for FIXED16. A unit that warps take in turn is half a group (8 rows of W). Its two planes are the rows of
// one operand A, so a lane gets the sums of both digits of W.
// Columns 2 p and 2 p + 1 of operand B are for the pair of steps p: the even column has x's high digits, the odd one
// the low digits. So one accumulator collects all steps, and the four lanes of a row of W end up with one pair of steps
// each.
template <int kTiles>
struct OneColumn<kFixed16, kTiles> {
  static constexpr int kT = kTiles, kColumnTiles = 0, kColumns = 1;
  static constexpr uint32_t kUnits = 2;
  static constexpr bool kIsFloat = false;
  ActRows x;
  uint32_t k, lane;
  const uint32_t* own_words;  // the words of the lane's digit and pair of steps
  const float* own_d;
  uint2 own[2];  // index: step of the pair
  float d;

  // Sets the row of x to multiply by.
  template <class RowAt>
  __device__ __forceinline__ void set_rows(const RowAt& row_at) {
    const uint64_t first = static_cast<uint64_t>(row_at(0)) * k;
    own_words = reinterpret_cast<const uint32_t*>(x.qs + first * 2 + lane / 4 % 2 * 256 + lane / 8 * 64 + lane % 4 * 4);
    own_d = x.d + first / 256;
  }

  // Loads the lane's x of a unit.
  __device__ __forceinline__ void ask(uint32_t unit, uint32_t) {
    const uint32_t* at = own_words + unit / 2 * 128;
#pragma unroll
    for (int i = 0; i < 2; ++i) own[i] = uint2{at[8 * i], at[8 * i + 4]};
    d = own_d[unit / 2];
  }

  // Computes the sums v of half a group of kT tiles and stores them in shared memory, with the scale of x.
  __device__ __forceinline__ void run(const Group<kFixed16> (&halves)[kT], uint32_t unit, float* to) const {
    int sums[kT][4] = {};
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const uint32_t is_pair = lane / 8 == pair ? 0xFFFFFFFFu : 0;
#pragma unroll
      for (int t = 0; t < kT; ++t) {
        const FixedPair both(halves[t].at, halves[t].at + kFixedPlane, pair, lane);
#pragma unroll
        for (int s = 0; s < 2; ++s) mma32<true>(sums[t], both.a[s], uint2{own[s].x & is_pair, own[s].y & is_pair});
      }
    }
    int numbers[2 * kT];  // first those with x's high digits, then those with the low ones
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int i = 0; i < 2; ++i) numbers[i * kT + t] = sums[t][i] * 256 + sums[t][2 + i];
    const int own_sum = sum_over_four(numbers, lane), other = __shfl_xor_sync(0xFFFFFFFFu, own_sum, 2);
    const uint32_t t = kT == 2 ? lane % 2 : 0, row = unit % 2 * 8 + lane / 4;
    const uint8_t* const half = t == 0 ? halves[0].at : halves[kT - 1].at;
    // v is valid in the lanes that hold the sum with x's high digits.
    const float v = fixed_value(own_sum, other, fixed_scale(half, lane / 4));
    // The rows of the tile's other half get -0, which changes no sum.
    const bool is_other = (lane & 2) != 0;
    if (kT == 2 || lane % 2 == 0) to[t * kColumnPitch + (is_other ? row ^ 8 : row)] = is_other ? -0.0f : v;
    if (lane == 0) to[16] = d;
  }
};

// FloatColumn for FIXED16. A lane quantizes the values of one step, but needs the digits of both steps of its pair. It
// gets the other step's digits from lane ^ 4.
template <int kTiles>
struct FloatColumn<kFixed16, kTiles> : OneColumn<kFixed16, kTiles> {
  using Base = OneColumn<kFixed16, kTiles>;
  static constexpr bool kIsFloat = true;
  const float* floats;
  Eight values;
  uint32_t row, group;
  bool is_kept;

  template <class RowAt>
  __device__ __forceinline__ void set_rows(const RowAt& row_at) {
    row = row_at(0);
  }
  // Loads the lane's eight floats of a unit.
  __device__ __forceinline__ void ask(uint32_t unit, uint32_t) {
    group = unit / 2;
    values = load_eight(floats + static_cast<uint64_t>(row) * Base::k, group * 256 + first_of_eight(), Base::k);
  }
  // Quantizes the group, and then does what OneColumn's run() does.
  __device__ __forceinline__ void run(const Group<kFixed16> (&halves)[kTiles], uint32_t unit, float* to) {
    const QuantizedEight q = quantized<kQ16A256>(values);
    if (is_kept) store_eight<kQ16A256>(q, Base::x, row, Base::k, group * 256 + first_of_eight());
    const bool is_odd = Base::lane / 4 % 2 != 0;
    const uint2 high{q.words[0], q.words[1]}, low{q.low[0], q.low[1]};
    const uint2 sent = is_odd ? high : low,
                got{__shfl_xor_sync(0xFFFFFFFFu, sent.x, 4), __shfl_xor_sync(0xFFFFFFFFu, sent.y, 4)};
    Base::own[0] = is_odd ? got : high;
    Base::own[1] = is_odd ? low : got;
    Base::d = q.d;
    Base::run(halves, unit, to);
  }
};

}  // namespace zinc_rt::cuda

// OneColumn and FloatColumn: the classes by which linear.cuh multiplies a group of 256 values of k of kT tiles of W, in
// shared memory, by one row of x. The result is the group sum v of each row; linear.cuh adds these up in order.
#pragma once

#include "kernels/cuda/linear_group.cuh"

namespace zinc_rt::cuda {

// The sub-scales and minimums of one row of a group of a 256-value format, for the pair of steps 2 p and 2 p + 1, where
// p = lane % 4. The row is lane / 4 + 8 * r.
// sc: sub-scales as signed bytes: one per step if they are for 32 values (the lower two bytes), else two per step (four
// bytes). m: minimums: if they are for 32 values the upper two bytes, else four bytes.
struct PairScales {
  uint32_t sc, m;
};
template <Format F>
__device__ __forceinline__ PairScales pair_scales(const Group<F>& group, int r, uint32_t lane) {
  const uint32_t pair = lane % 4;
  const uint8_t* bytes = group.at + planes_bytes<F>(8) + (lane / 4 + 8 * r) * Traits<F>::kA;
  if constexpr (F == kQ6_K) {
    return {reinterpret_cast<const uint32_t*>(bytes)[pair], 0};
  } else if constexpr (F == kQ4_K || F == kQ5_K) {
    // Unpacks scales and minimums at once, as k_scales() does one after the other: pairs 0 and 1 are of the first four
    // of each, pairs 2 and 3 of the last four.
    const auto* halves = reinterpret_cast<const uint16_t*>(bytes + 4) + pair % 2;
    const uint32_t low = halves[0] | halves[2] << 16, rest = halves[4];
    const bool is_first = pair < 2;
    const uint32_t both = (low >> (is_first ? 0 : 2) & (is_first ? 0x3f3f3f3fu : 0x30303030u)) |
                          ((rest | rest << 12) & (is_first ? 0 : 0x0f0f0f0fu));
    return {both, both};
  } else {
    const KScales scales = group.scales(r);
    const auto own = [&](const uint32_t(&words)[4]) {
      if constexpr (Traits<F>::kSub == 32) return (pair < 2 ? words[0] : words[1]) >> (16 * (pair % 2));
      return pair < 2 ? (pair == 0 ? words[0] : words[1]) : (pair == 2 ? words[2] : words[3]);
    };
    const uint32_t sc = own(scales.sc);
    return {F == kQ3_K || F == kIQ4_XS ? less_in_bytes(sc, 32) : sc, own(scales.m)};
  }
}

// Returns four signed bytes, none of them -128, each with its sign changed.
__device__ __forceinline__ uint32_t negative_bytes(uint32_t bytes) {
  return ((bytes ^ 0x7F7F7F7Fu) + 0x01010101u) ^ 0x80808080u;
}

// Adds up each of kN numbers (two or four) over the four lanes that share a row of W. Each lane gets the sum of number
// lane % 4 * kN / 4.
template <int kN>
__device__ __forceinline__ int sum_over_four(const int (&numbers)[kN], uint32_t lane) {
  constexpr uint32_t kAll = 0xFFFFFFFFu;
  const bool is_upper = (lane & 2) != 0, is_odd = (lane & 1) != 0;
  int half[kN / 2];
#pragma unroll
  for (int i = 0; i < kN / 2; ++i) {
    const int lower = numbers[i], upper = numbers[i + kN / 2];
    half[i] = (is_upper ? upper : lower) + __shfl_xor_sync(kAll, is_upper ? lower : upper, 2);
  }
  if constexpr (kN == 2) return half[0] + __shfl_xor_sync(kAll, half[0], 1);
  return (is_odd ? half[kN / 2 - 1] : half[0]) + __shfl_xor_sync(kAll, is_odd ? half[0] : half[kN / 2 - 1], 1);
}

// OneColumn does what Columns (fixed_columns.cuh, linear_group.cuh) does for several rows: it multiplies a group of kT
// tiles of W by x. The interface is set_rows(), ask() and run().
// With one row, 7 of the 8 columns of mma's operand B would be unused. So x of step s is put in column s and the other
// columns are zeros. One accumulator then collects the sums of all 8 steps of a group in separate columns, and each
// lane ends up with the sums of two steps (the pair lane % 4) of two rows of W.
// Logic, shifts and selections take a warp two cycles each. Products and multiplications have units of their own, so
// this code prefers them where either would do.
template <Format F, int kTiles>
struct OneColumn {
  using T = Traits<F>;
  static constexpr bool kSigned = T::kP8 != 0 || T::kTable != 0;
  static constexpr int kT = kTiles, kColumnTiles = 0, kColumns = 1;
  static constexpr uint32_t kUnits = 1;  // units of a group
  static constexpr bool kIsFloat = false;
  ActRows x;
  uint32_t k, lane;
  // The own_ pointers say where the lane's part of x is for group 0. ask() loads, before the group of W is used: own,
  // the lane's part of operand B (its step is lane / 4); sums and d, the sums and scales of the two steps that the lane
  // will hold the results of (with blocks of 256, one scale).
  const int8_t* own_qs;
  const uint32_t* own_sums;
  const float* own_d;
  uint2 own, sums;
  float d[2];

  // Sets the row of x to multiply by.
  template <class RowAt>
  __device__ __forceinline__ void set_rows(const RowAt& row_at) {
    const uint64_t first = static_cast<uint64_t>(row_at(0)) * k;
    own_qs = x.qs + first + lane * 8;
    own_sums = static_cast<const uint32_t*>(x.sums) + first / 32 + lane % 4 * 2;
    own_d = x.d + first / T::kBlock + (T::kBlock == 32 ? lane % 4 * 2 : 0);
  }

  // Loads the lane's x of group g. n_steps: steps of 32 values that the group has.
  __device__ __forceinline__ void ask(uint32_t g, uint32_t n_steps) {
    own = sums = uint2{0, 0};
    if (T::kBlock == 256 || lane / 4 < n_steps) own = *reinterpret_cast<const uint2*>(own_qs + g * 256);
    if constexpr (T::kBlock == 256) {
      if constexpr (kHasSums<F>) sums = *reinterpret_cast<const uint2*>(own_sums + g * 8);
      d[0] = own_d[g];
    } else {
#pragma unroll
      for (uint32_t i = 0; i < 2; ++i) {
        const bool is_step = lane % 4 * 2 + i < n_steps;
        d[i] = is_step ? own_d[g * 8 + i] : 0.0f;
        if constexpr (T::kOffset != 0 || T::kMin != 0) (i == 0 ? sums.x : sums.y) = is_step ? own_sums[g * 8 + i] : 0;
      }
    }
  }

  // Computes the sums v of a group of kT tiles and stores them in shared memory; with blocks of 256 also the scale of
  // x.
  __device__ __forceinline__ void run(const Group<F> (&groups)[kT], uint32_t, float* to) const {
    if constexpr (T::kBlock == 256) {
      const float v = supers(groups);
      const uint32_t own = own_number();
      if (kT == 2 || lane % 2 == 0) to[own / 2 * kColumnPitch + lane / 4 + own % 2 * 8] = v;
      if (lane == 0) to[16] = d[0];
      return;
    }
    float v[kT][2];
    blocks(groups, v);
    if (lane % 4 != 3) return;
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int r = 0; r < 2; ++r) to[t * kColumnPitch + lane / 4 + 8 * r] = v[t][r];
  }

 private:
  // Returns 1 if the lane's step belongs to pair `pair`, else 0. Operand B is multiplied by this, so that other columns
  // become zeros.
  __device__ __forceinline__ uint32_t of_pair(int pair) const { return (1u << (lane / 8 * 8)) >> (8 * pair) & 0xFF; }
  // Returns the lane's operand B for the steps of a pair: x in the columns of these steps, zeros elsewhere.
  __device__ __forceinline__ uint2 operand_b(int pair) const {
    const uint32_t is_pair = of_pair(pair);
    return {own.x * is_pair, own.y * is_pair};
  }
  // Returns an operand B for products of half steps (16 values): both steps of the pair in one product, x of the even
  // step in the first register and x of the odd one in the second.
  __device__ __forceinline__ uint2 halves_b(uint32_t x, int pair) const {
    const bool is_odd = lane / 4 % 2 != 0;
    const uint32_t is_pair = of_pair(pair), even = is_odd ? 0 : x, odd = is_odd ? x : 0;
    return {even * is_pair, odd * is_pair};
  }

  // c += the products of all steps of a group, for each tile. There is no condition for a shorter group, because x of
  // steps behind its end is 0. Even and odd steps have an accumulator each, so that consecutive products need not wait
  // for each other. x stands in the columns of both steps of a pair; the result of the other step's column is ignored.
  __device__ __forceinline__ void add_steps(const Group<F> (&groups)[kT], int (&c)[kT][2][4]) const {
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      const uint2 b = operand_b(s / 2);
#pragma unroll
      for (int t = 0; t < kT; ++t) {
        uint32_t a[4];
        operand<F>(groups[t].step(s), a);
        mma32<kSigned>(c[t][s % 2], a, b);
      }
    }
  }

  // Computes the sums v of a group of a 32-value format. The blocks must be added in order, so the value goes from lane
  // to lane: pair 0 begins, and each lane adds its two steps to what the lane before has; the lane of the last pair
  // holds v. Until its turn a lane computes values that are not used. For steps behind the last, x, its sums and its
  // scales are 0, so they add nothing.
  __device__ __forceinline__ void blocks(const Group<F> (&groups)[kT], float (&v)[kT][2]) const {
    const uint32_t first = lane % 4 * 2, n_steps = groups[0].n_steps;
    const int sum[2] = {static_cast<int>(sums.x), static_cast<int>(sums.y)};
    int c[kT][2][4];
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) c[t][0][i] = c[t][1][i] = -T::kOffset * sum[i % 2];
    add_steps(groups, c);
    float product[kT][2][2], minimum[kT][2][2];  // indexes: tile, row, step
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const uint32_t scale = first + i < n_steps ? groups[t].scale(r, first + i) : 0;
          product[t][r][i] = static_cast<float>(c[t][i][2 * r + i]) * block_scale<F>(scale);
          if constexpr (T::kMin != 0) minimum[t][r][i] = static_cast<float>(sum[i]) * block_min(scale);
        }
#pragma unroll
    for (int pair = 0; pair < 4; ++pair)
#pragma unroll
      for (int t = 0; t < kT; ++t)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          float& value = v[t][r];
          value = pair == 0 ? 0.0f : __shfl_up_sync(0xFFFFFFFFu, value, 1);
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            value = __fmaf_rn(product[t][r][i], d[i], value);
            if constexpr (T::kMin != 0) value = __fmaf_rn(minimum[t][r][i], d[i], value);
          }
        }
  }

  // The sums of the products with x for each step of the lane's pair (or each half step, if sub-scales are for 16
  // values), for the lane's two rows of each tile.
  static constexpr int kHalves = T::kSub == 16 ? 2 : 1;
  struct PairSums {
    int of[kT][2][2][kHalves];  // indexes: tile, row, step, half
  };

  // Computes PairSums for formats with a sub-scale per step.
  __device__ __forceinline__ void sum_steps(const Group<F> (&groups)[kT], PairSums& sums_of) const {
    int c[kT][2][4] = {};
    add_steps(groups, c);
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums_of.of[t][i / 2][i % 2][0] = c[t][i % 2][i];
  }
  // Computes PairSums for formats with a sub-scale per half step: the first halves of two steps are one product, the
  // second halves another.
  __device__ __forceinline__ void sum_halves(const Group<F> (&groups)[kT], PairSums& sums_of) const {
    int c[kT][2][4] = {};
#pragma unroll
    for (int s = 0; s < 8; s += 2) {
      const uint2 b_first = halves_b(own.x, s / 2), b_last = halves_b(own.y, s / 2);
#pragma unroll
      for (int t = 0; t < kT; ++t) {
        uint32_t a[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) operand<F>(groups[t].step(s + i), a[i]);
        const uint32_t first[4] = {a[0][0], a[0][1], a[1][0], a[1][1]}, last[4] = {a[0][2], a[0][3], a[1][2], a[1][3]};
        mma32<kSigned>(c[t][0], first, b_first);
        mma32<kSigned>(c[t][1], last, b_last);
      }
    }
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) sums_of.of[t][i / 2][i % 2][half] = c[t][half][i];
  }

  // Computes PairSums for formats of nibbles, of 2-bit codes, or of both, without unpacking the codes: other bits of a
  // byte are removed from the sums instead.
  // - nibbles: a byte is low + 16 * high. (byte * x) - (upper bits * x) is low * x, and the sum of 16 * high * x is
  //   shifted afterwards. So a word of codes costs one logic instruction
  // - 2 bits: a byte holds the codes of all four registers. Masked but not shifted, they make a product's sums 1, 4, 16
  //   or 64 times too large, depending on half and row; that is corrected afterwards
  __device__ __forceinline__ void sum_planes(const Group<F> (&groups)[kT], PairSums& sums_of) const {
    constexpr bool kNibbles = T::kP4 != 0, kTwos = T::kP2 != 0;
    // In the shape with three workgroups per multiprocessor there are not enough registers for both.
    constexpr bool kIsDifference = kT > 1 || !kTwos;
    int twos[kT][2][4] = {}, nibbles[kT][2][4] = {};
    const uint32_t less = negative_bytes(own.x);
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const uint2 b[2] = {halves_b(own.x, pair), halves_b(own.y, pair)}, b_less = halves_b(less, pair);
#pragma unroll
      for (int t = 0; t < kT; ++t) {
        const Step even = groups[t].step(2 * pair), odd = groups[t].step(2 * pair + 1);
        if constexpr (kNibbles) {
          constexpr uint32_t kUpper = 0xF0F0F0F0u, kLower = kIsDifference ? 0xFFFFFFFFu : 0x0F0F0F0Fu;
          const uint32_t codes[4] = {even.p4.x, even.p4.y, odd.p4.x, odd.p4.y};
          uint32_t a[4], upper[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) a[i] = codes[i] & kLower, upper[i] = codes[i] & kUpper;
          mma32<false>(nibbles[t][0], a, b[0]);
          mma32<false>(nibbles[t][1], upper, b[1]);
          if constexpr (kIsDifference) mma32<false>(nibbles[t][0], upper, b_less);
        }
        if constexpr (kTwos) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const uint32_t first = 0x03030303u << (4 * half), second = first << 2;
            const uint32_t a[4] = {even.p2 & first, even.p2 & second, odd.p2 & first, odd.p2 & second};
            mma32<false>(twos[t][half], a, b[half]);
          }
        }
      }
    }
#pragma unroll
    for (int t = 0; t < kT; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = i / 2, low = nibbles[t][0][i], high = nibbles[t][1][i] >> 4, first = twos[t][0][i],
                  last = twos[t][1][i];
        int(&of)[kHalves] = sums_of.of[t][row][i % 2];
        if constexpr (!kTwos) {
          of[0] = low + high;
        } else if constexpr (kNibbles) {
          of[0] = low + first * (row == 0 ? 16 : 4);
          of[1] = high + (last >> (2 * row));
        } else {
          of[0] = first >> (2 * row);
          of[1] = last >> (4 + 2 * row);
        }
      }
  }

  // Returns the sum v of a group of a 256-value format, for one of the lane's rows: number own_number() in the order
  // (tile, row), as sum_over_four() distributes them.
  __device__ __forceinline__ float supers(const Group<F> (&groups)[kT]) const {
    PairSums sums_of;
    if constexpr (T::kP1 == 0 && T::kTable == 0)
      sum_planes(groups, sums_of);
    else if constexpr (T::kSub == 16)
      sum_halves(groups, sums_of);
    else
      sum_steps(groups, sums_of);
    int isum[2 * kT], msum[2 * kT];
#pragma unroll
    for (int tr = 0; tr < 2 * kT; ++tr) {
      const PairScales scales = pair_scales<F>(groups[tr / 2], tr % 2, lane);
      isum[tr] = msum[tr] = 0;
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int half = 0; half < kHalves; ++half)
          isum[tr] +=
              static_cast<int>(signed_byte(scales.sc, i * kHalves + half)) * sums_of.of[tr / 2][tr % 2][i][half];
      if constexpr (T::kMin != 0) msum[tr] = times_sums(scales.m);
      if constexpr (T::kOffset != 0) isum[tr] -= T::kOffset * times_sums(scales.sc);
    }
    const int own_isum = sum_over_four(isum, lane), own_msum = T::kMin != 0 ? sum_over_four(msum, lane) : 0;
    const Group<F> group{own_number() < 2 ? groups[0].at : groups[kT - 1].at, 8, lane};
    // The offsets of codes are subtracted in isum already.
    return super_value<F>(group.scales(own_number() % 2), own_isum, own_msum);
  }
  // Multiplies the bytes of PairScales (minimums or sub-scales) by the pair's four sums of x, and adds up. If
  // sub-blocks are of 32 values, only the upper two bytes are used.
  __device__ __forceinline__ int times_sums(uint32_t numbers) const {
    const int x = static_cast<int>(sums.x), y = static_cast<int>(sums.y), n = static_cast<int>(numbers);
    if constexpr (T::kSub == 16) return __dp2a_hi(y, n, __dp2a_lo(x, n, 0));
    const int first = static_cast<int>(__byte_perm(sums.x, sums.y, 0x5410)),
              last = static_cast<int>(__byte_perm(sums.x, sums.y, 0x7632));
    return __dp2a_hi(last, n, __dp2a_hi(first, n, 0));
  }
  // Four lanes, those with the same lane / 4, share 2 * kT rows of W: the rows lane / 4 and lane / 4 + 8 of each tile.
  // These rows are numbered in the order (tile, row). Returns the number of the row whose result this lane computes. If
  // kT is 1, two lanes compute the same row.
  __device__ __forceinline__ uint32_t own_number() const { return lane % 4 * kT / 2; }
};

// FloatColumn multiplies by a row of floats, which each warp quantizes itself, group by group. The eight values that a
// lane quantizes are those of its part of operand B. is_kept: the warp also stores the quantized group in x, as
// QUANTIZE would, for later launches.
template <Format F, int kTiles>
struct FloatColumn : OneColumn<F, kTiles> {
  using Base = OneColumn<F, kTiles>;
  static constexpr bool kIsFloat = true;
  const float* floats;
  Eight values;
  uint32_t row, group;
  bool is_kept;

  template <class RowAt>
  __device__ __forceinline__ void set_rows(const RowAt& row_at) {
    row = row_at(0);
  }
  // Loads the lane's eight floats of group g.
  __device__ __forceinline__ void ask(uint32_t g, uint32_t) {
    group = g;
    values = load_eight(floats + static_cast<uint64_t>(row) * Base::k, g * 256 + first_of_eight(), Base::k);
  }
  // Quantizes the group, and then does what OneColumn's run() does.
  __device__ __forceinline__ void run(const Group<F> (&groups)[kTiles], uint32_t g, float* to) {
    constexpr uint32_t kAll = 0xFFFFFFFFu;
    constexpr bool kIs256 = Base::T::kBlock == 256;
    const QuantizedEight q = quantized<kActOf<F>>(values);
    if (is_kept) store_eight<kActOf<F>>(q, Base::x, row, Base::k, group * 256 + first_of_eight());
    // A lane quantized step lane / 4, but it needs the sums and scales of steps 2 p and 2 p + 1, p = lane % 4. Lanes 4
    // s to 4 s + 3 hold those of step s, so they come from lanes 8 p and 8 p + 4.
    const uint32_t first = Base::lane % 4 * 8;
    Base::own = uint2{q.words[0], q.words[1]};
    Base::sums = uint2{__shfl_sync(kAll, q.sum, first), __shfl_sync(kAll, q.sum, first + 4)};
    Base::d[0] = kIs256 ? q.d : __shfl_sync(kAll, q.d, first);
    if constexpr (!kIs256) Base::d[1] = __shfl_sync(kAll, q.d, first + 4);
    Base::run(groups, g, to);
  }
};

}  // namespace zinc_rt::cuda

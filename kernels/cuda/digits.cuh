// Digits splits the weights of a 256-value format into digits for linear_digits.cuh. A code times its sub-scale is low
// + kUpper * upper: two digits of a byte each, of which low is unsigned. The integer products of a warpgroup can then
// sum up a whole group of 256 values for each digit.
// Each specialization of Digits has two functions:
// - make() computes one step (32 values) of the lane's share of W's two digits, as operands A of the products
// - close() turns the sums of both digits into v, the value of the group for each pair of rows of W and x, before the
//   scale of x (docs/arithmetic.md, rule 3). For each eight columns (rows of x) 8 n to 8 n + 7, it calls use(n, v) with
//   the lane's four values. x_sums: the sums of the group's x in shared memory (layout in digits_args.h). sum_of(i):
//   returns low + kUpper * upper of the sums in register i of the products
#pragma once

#include "kernels/cuda/linear_job.cuh"

namespace zinc_rt::cuda {

// Q4_K, Q5_K: a sub-scale of six bits is two digits of three bits. A code times a digit still fits a byte, so one
// multiplication of a word computes four codes.
template <Format F>
struct Digits {
  static_assert(F == kQ4_K || F == kQ5_K);
  static constexpr int kUpper = 8;
  static constexpr bool kIsUpperSigned = false;

  // Makes the operands A of step s: the codes times the low and the upper digits of their rows' sub-scales.
  static __device__ __forceinline__ void make(const Step& step, const KScales (&scales)[2], int s, uint32_t (&low)[4],
                                              uint32_t (&upper)[4]) {
    uint32_t codes[4];
    operand<F>(step, codes);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32_t sub_scales = scales[j % 2].sc[s / 4];
      low[j] = codes[j] * (sub_scales >> (8 * (s % 4)) & 7);
      upper[j] = codes[j] * (sub_scales >> (8 * (s % 4) + 3) & 7);
    }
  }

  // The lane's minimums as f16, for a product with the sums of x. Both factors are integers, and the sum of their
  // products stays below 2^21, so it is exact.
  uint32_t m[4];
  __device__ __forceinline__ Digits(const KScales (&scales)[2], uint32_t lane) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float minimum = static_cast<float>(scales[i % 2].m[i / 2] >> (8 * (lane % 4)) & 0xFF);
      m[i] = f16_pair(minimum, minimum);
    }
  }
  // Here v is the sum of the products times d, less the sum of minimums times sums of x, times dmin.
  template <uint32_t kColumns, class SumOf, class Use>
  __device__ __forceinline__ void close(const uint8_t* x_sums, const KScales (&scales)[2], uint32_t lane,
                                        const SumOf& sum_of, const Use& use) const {
#pragma unroll
    for (int n = 0; n < kColumns / 8; n += 2) {
      // Loads the sums of 16 columns. If there are only 8, the same ones are loaded twice.
      uint32_t sums[4];
      load_matrices(sums, x_sums + (n * 8 + (kColumns > 8 ? lane / 16 * 8 : 0) + lane % 8) * 32 + lane / 8 % 2 * 16);
#pragma unroll
      for (int j = 0; j < (kColumns > 8 ? 2 : 1); ++j) {
        float c[4] = {}, v[4];
        mma16_f16(c, m, sums[2 * j], sums[2 * j + 1]);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          v[i] = less_minimums(scales[i / 2], static_cast<float>(sum_of((n + j) * 4 + i)), c[i]);
        use(n + j, v);
      }
    }
  }
};

// Q6_K: a sub-scale has eight bits with a sign, and no split of it into two digits leaves room for a code in a byte. So
// the product itself is split: (code - 32) * sub_scale is within 4,096 of 0; low is its lower byte, upper the signed
// rest.
template <>
struct Digits<kQ6_K> {
  static constexpr int kUpper = 256;
  static constexpr bool kIsUpperSigned = true;

  // Two codes are multiplied at a time, in the halves of a word. Adding 2^15 makes both products positive, so that the
  // lower one borrows nothing from the upper one; that inverts the top bit of `upper`, which is inverted back. The even
  // codes are computed by subtracting the odd ones and not by a mask, because the units for additions are less busy
  // here than those for logic.
  static __device__ __forceinline__ void make(const Step& step, const KScales (&scales)[2], int s, uint32_t (&low)[4],
                                              uint32_t (&upper)[4]) {
    uint32_t codes[4];
    operand<kQ6_K>(step, codes);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32_t sub = 2 * s + j / 2, scale = signed_byte(scales[j % 2].sc[sub / 4], sub % 4),
                     add = 0x80008000u - scale * (Traits<kQ6_K>::kOffset * 0x00010001u),
                     odd_codes = __byte_perm(codes[j], 0, 0x4341), even_codes = codes[j] - odd_codes * 256,
                     even = even_codes * scale + add, odd = odd_codes * scale + add;
      low[j] = __byte_perm(even, odd, 0x6240);
      upper[j] = __byte_perm(even, odd, 0x7351) ^ 0x80808080u;
    }
  }

  __device__ __forceinline__ Digits(const KScales (&)[2], uint32_t) {}
  template <uint32_t kColumns, class SumOf, class Use>
  __device__ __forceinline__ void close(const uint8_t*, const KScales (&scales)[2], uint32_t, const SumOf& sum_of,
                                        const Use& use) const {
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
      float v[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) v[i] = static_cast<float>(sum_of(n * 4 + i)) * scales[i / 2].d;
      use(n, v);
    }
  }
};

}  // namespace zinc_rt::cuda

// What LOGPROBS reads and writes for a row of logits, and the exponential that it sums up. Shared by host and device
// (C++17, POD).
#pragma once

#include <stdint.h>

#include "kernels/common/exact_math.h"

#if defined(__CUDA_ARCH__)
#define ZRT_DOUBLE_BITS(x) static_cast<uint64_t>(__double_as_longlong(x))
#define ZRT_BITS_DOUBLE(u) __longlong_as_double(static_cast<long long>(u))
#else
#define ZRT_DOUBLE_BITS(x) __builtin_bit_cast(uint64_t, (double)(x))
#define ZRT_BITS_DOUBLE(u) __builtin_bit_cast(double, (uint64_t)(u))
#endif

namespace zinc_rt {

constexpr uint32_t kLogprobTop = 128;  // most of the most likely tokens that a row lists

// One row of request.logprobs.
struct LogprobParams {
  int32_t n_top;  // how many of the most likely tokens are listed, at most kLogprobTop; negative: the row is left out
  int32_t token;  // the token whose logit is wanted; negative: the one that was picked
};
static_assert(sizeof(LogprobParams) == 2 * 4, "words only");

// One row of host_ring.logprobs. The log-probability of a token with the logit l is l - (max + log(sum)).
struct LogprobStats {
  uint32_t sum[2];  // the bits of a double, lower word first: the sum of e^(l - max) over the row's logits l
  float max;        // the largest logit
  float logit;      // of the wanted token; 0 if it is not in the vocabulary
  struct Token {
    int32_t id;  // -1: the row has no more tokens
    float logit;
  } top[kLogprobTop];
};
constexpr uint32_t kLogprobWords = 4 + 2 * kLogprobTop;
static_assert(sizeof(LogprobStats) == 4 * kLogprobWords, "words only");

// The sum of a row that is no distribution: one NaN, because processors make NaN of different bits.
constexpr uint64_t kLogprobNan = 0x7FF8000000000000u;

// Returns e^(l - max) for a finite max >= l; NaN for NaN. e^x = 2^n e^r with x = n ln 2 + r and |r| <= ln 2 / 2. The
// series of e^r up to degree 11 has an error below 1e-14. There is no fma, because not all hosts have it.
ZRT_HD double exp_of_distance(float l, double max) {
  // Adding and subtracting kRound rounds to an integer, which the low bits of the sum hold.
  constexpr double kRound = 0x1.8p52, kLog2E = 0x1.71547652b82fep0;
  constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;  // so that n * kLn2High is exact
  // e^-700 is lost when it is added to the largest term, 1. The exponent is still that of a normal number.
  constexpr double kLeast = -700;
  double x = (double)l - max;
  x = x < kLeast ? kLeast : x;
  const double shifted = x * kLog2E + kRound, n = shifted - kRound;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double p = r * (1.0 / 39916800) + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return ZRT_BITS_DOUBLE(l == l ? ZRT_DOUBLE_BITS(p) + (ZRT_DOUBLE_BITS(shifted) << 52) : kLogprobNan);
}

}  // namespace zinc_rt

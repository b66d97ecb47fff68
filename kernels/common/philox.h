// Philox 4x32 with 10 rounds, a counter-based random generator: a number depends only on the key and the counter, not
// on which numbers were drawn before. The algorithm is that of Salmon, Moraes, Dror and Shaw, "Parallel random numbers:
// as easy as 1, 2, 3", SC 2011. For host and device compilers (C++17, POD).
#pragma once

#include <stdint.h>

#include "kernels/common/exact_math.h"

namespace zinc_rt::philox {

struct Counter {
  uint32_t v[4];
};

// Returns the four random words of counter c.
ZRT_HD Counter rounds10(Counter c, uint32_t key0, uint32_t key1) {
  for (int i = 0; i < 10; ++i) {
    const uint64_t a = (uint64_t)0xD2511F53u * c.v[0], b = (uint64_t)0xCD9E8D57u * c.v[2];
    c = Counter{{(uint32_t)(b >> 32) ^ c.v[1] ^ key0, (uint32_t)b, (uint32_t)(a >> 32) ^ c.v[3] ^ key1, (uint32_t)a}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

// Returns a random number in [0, 1), a multiple of 2^-24. The key is the request's seed, and the counter is the
// position of the token to be drawn.
ZRT_HD float uniform(uint32_t seed_lo, uint32_t seed_hi, uint32_t position) {
  const Counter c = rounds10(Counter{{position, 0, 0, 0}}, seed_lo, seed_hi);
  return (float)(c.v[0] >> 8) * 5.9604644775390625e-8f;
}

}  // namespace zinc_rt::philox

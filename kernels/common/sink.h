// How the sink of a query head changes what the chunks of attention gave (kernels/cpu/flash_attn.cpp, order of sums).
// Shared by host and device (C++17).
#pragma once

#include "kernels/common/exact_math.h"

namespace zinc_rt {

// of_total: the factor of the chunks' sum and of their values. share: what the sink adds to the sum. As they are made
// here, they change no bit.
struct SinkFactors {
  float of_total = 1.0f, share = 0.0f;
};

// max: the largest score of the head's chunks.
ZRT_HD SinkFactors sink_factors(float sink, float max) {
  const float largest = sink > max ? sink : max;
  return {exact::exp(max - largest), exact::exp(sink - largest)};
}

}  // namespace zinc_rt

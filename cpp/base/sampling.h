// Sampling says how the token of one output row is sampled (kernels/common/sample_params.h documents each parameter).
// Thread rule: a plain value.
#pragma once

#include <cstdint>

#include "zinc_rt/sampling.h"

namespace zinc_rt {

// TokenBias adds a number to the logit of a token before sampling.
struct TokenBias {
  std::int32_t token_id = 0;
  float bias = 0;
};

// The result for a row from which no token can be sampled, because its largest logit is not finite.
inline constexpr std::int32_t kNoToken = -1;

struct Sampling : SamplingParams {
  std::uint64_t seed = 0;

  bool has_penalties() const { return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0; }
};

}  // namespace zinc_rt

// Log-probabilities of a row of logits.
// Thread rule: the function is pure.
#pragma once

#include <cstdint>
#include <span>

#include "zinc_rt/request.h"

namespace zinc_rt {

// The log-probabilities of the token and of the n_top most likely tokens; among equal ones the lower id comes first.
// They are computed in float64: the terms of ids that are equal modulo 16 are added in order, then the sixteen sums, so
// every processor gives the same bits. They are within 1e-12 of the true value if all logits are finite or -inf and at
// least one is finite; else they are NaN. REQUIRES: the row has the token.
TokenLogprob logprob_of(std::span<const float> logits, std::int32_t token, std::uint32_t n_top);

}  // namespace zinc_rt

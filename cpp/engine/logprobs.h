// Log-probabilities of a row of logits.
// Thread rule: the function is pure.
#pragma once

#include <cstdint>
#include <span>

#include "zinc_rt/request.h"

namespace zinc_rt {

// Of the token and of the n_top most likely, ties to the lower id. In float64: terms of ids that are equal modulo 16
// are added in their order, then the sixteen sums; the same bits on every processor. Within 1e-12 of the true value
// where logits are finite or -inf and one is finite, else NaN. REQUIRES: the token is one of the row's.
TokenLogprob logprob_of(std::span<const float> logits, std::int32_t token, std::uint32_t n_top);

}  // namespace zinc_rt

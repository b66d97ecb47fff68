// Log-probabilities of a row of logits.
// Thread rule: the function is pure.
#pragma once

#include <cstdint>
#include <span>

#include "zinc_rt/request.h"

namespace zinc_rt {

// Of the token and of the n_top most likely, ties to the lower id; in float64, terms in the order of ids. REQUIRES:
// the token is one of the row's.
TokenLogprob logprob_of(std::span<const float> logits, std::int32_t token, std::uint32_t n_top);

}  // namespace zinc_rt

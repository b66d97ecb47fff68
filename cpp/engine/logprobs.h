// Computes the log-probabilities for requests with logprobs: from a row of logits, or from what an executor has computed
// of the row (OutputRow::n_logprobs). Both give the same bits.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "base/output_row.h"
#include "zinc_rt/request.h"

namespace zinc_rt {

// Returns the log-probabilities of `token` and of the n_top most likely tokens. If logits are equal, the lower id comes
// first. The sum is computed in float64: first the terms whose ids are equal modulo 16 are added in order, then the
// sixteen sums. So every processor gives the same bits. If all logits are finite or -inf and at least one is finite,
// the results are within 1e-12 of the exact values; else they are NaN. REQUIRES: `token` is an index of the row.
TokenLogprob logprob_of(std::span<const float> logits, std::int32_t token, std::uint32_t n_top);
// `row`: of a row that scores `token`.
TokenLogprob logprob_of(const RowLogprobs& row, std::int32_t token);

}  // namespace zinc_rt

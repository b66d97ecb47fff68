// Computes the numbers that embedding and rerank requests return.
// Thread rule: pure functions.
#pragma once

#include <span>
#include <vector>

namespace zinc_rt {

// Returns the row divided by its Euclidean length. The sum of squares is computed in float64, in the order of the
// values, so the bits of the result depend only on the row, on every tier. Returns an empty vector if the length is 0
// or not finite.
std::vector<float> normalized(std::span<const float> row);
// Returns the relevance that a rerank request reports for a model's score: 1 / (1 + e^-logit), computed in float64.
double relevance(float logit);

}  // namespace zinc_rt

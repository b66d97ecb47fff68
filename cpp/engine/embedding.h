// Thread rule: pure functions.
#pragma once

#include <span>
#include <vector>

namespace zinc_rt {

// The row divided by its length. The sum of squares is in float64, in the order of the values, so on every tier the
// bits depend only on the row. Empty if the length is 0 or not finite.
std::vector<float> normalized(std::span<const float> row);
// 1 / (1 + e^-logit), in float64.
double relevance(float logit);

}  // namespace zinc_rt

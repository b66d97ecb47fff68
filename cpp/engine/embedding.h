// Thread rule: pure functions.
#pragma once

#include <span>
#include <vector>

namespace zinc_rt {

// The row divided by its length. The sum of squares is in float64, value after value, so the bits depend on the row
// alone, on every tier. Empty: the length is 0 or no finite number.
std::vector<float> normalized(std::span<const float> row);
// 1 / (1 + e^-logit), in float64.
double relevance(float logit);

}  // namespace zinc_rt

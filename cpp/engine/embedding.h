// Thread rule: a pure function.
#pragma once

#include <span>
#include <vector>

namespace zinc_rt {

// The row divided by its length. The sum of squares is in float64, value after value, so the bits depend on the row
// alone, on every tier. Empty: the length is 0 or no finite number.
std::vector<float> normalized(std::span<const float> row);

}  // namespace zinc_rt

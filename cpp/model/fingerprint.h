// Names a model's content, so that files which belong to a model can say which one.
// Thread rule: a pure function.
#pragma once

#include <string>

#include "model/weights.h"

namespace zinc_rt {

// Returns a hash of all tensors' names, types and shapes, and of a sample of their bytes, as 32 hexadecimal digits.
std::string fingerprint(const Weights& weights);

}  // namespace zinc_rt

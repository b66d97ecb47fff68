// Finds out what hinders a model file from running: an architecture, key, tensor, tokenizer or operation that is missing
// or not known, each by its name. No weight is read and no memory of the model's is laid out on a device.
// Thread rule: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/weights.h"

namespace zinc_rt::tools {

// Returns one line for each hindrance; none if the file runs on the tier ("auto": the tier that would be taken) as far
// as that is known without loading the weights.
std::vector<std::string> hindrances(const Weights& weights, std::string_view tier);

}  // namespace zinc_rt::tools

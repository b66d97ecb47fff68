// The vocabulary of a draft model's output matrix. A draft model may be able to guess some tokens alone, so that its
// output matrix is small. Its file then has the ids of these tokens in a tensor.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "model/weights.h"

namespace zinc_rt {

// Returns the token that each row of the output matrix stands for, from the tensor d2t. Empty: row i is token i. Errors:
// kCorrupt for a tensor of another type or shape, an id that the n_vocab tokens do not have, and an id that occurs twice.
Result<std::vector<std::int32_t>> draft_vocabulary(const Weights& weights, std::size_t n_vocab);

}  // namespace zinc_rt

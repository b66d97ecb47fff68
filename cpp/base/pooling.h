// How the hidden states (rows) of a text's tokens become its embedding, or those of a pair of texts the pair's score. A
// model file stores the kind as a number (metadata key <architecture>.pooling_type); people write a word.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zinc_rt {

// The values are the numbers that GGUF files use.
enum class Pooling : std::uint8_t {
  kNone,  // the model generates and has no embeddings
  kMean,  // the mean of the rows of all tokens
  kCls,   // the row of the first token
  kLast,  // the row of the last token
  kRank,  // a score of two texts, computed by a classifier head from the row of the first token
};

// Returns nullopt for an unknown name.
std::optional<Pooling> find_pooling(std::string_view name);
std::string_view to_string(Pooling pooling);
std::vector<std::string> pooling_names();  // those with which a model may be opened

}  // namespace zinc_rt

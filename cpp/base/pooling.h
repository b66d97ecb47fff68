// Pooling says how a text's embedding is computed from the hidden states (rows) of its tokens. For kRank it is how the
// score of a pair of texts is computed. A model file stores it as a number (metadata key <architecture>.pooling_type).
// In options it is a word. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zinc_rt {

// The values are the numbers that GGUF files use.
enum class Pooling : std::uint8_t {
  kNone,  // the model generates tokens and computes no embeddings
  kMean,  // the embedding is the mean of the rows of all tokens
  kCls,   // the embedding is the row of the first token
  kLast,  // the embedding is the row of the last token
  kRank,  // score of two texts, which a classifier head computes from the row of the first token
};

// Returns the pooling with this name, or nullopt for an unknown name.
std::optional<Pooling> find_pooling(std::string_view name);
std::string_view to_string(Pooling pooling);
std::vector<std::string> pooling_names();  // the names that may be given when a model is opened

}  // namespace zinc_rt

// How the rows of a text become its embedding, or those of two texts their score. A file stores the kind as a number
// (key <architecture>.pooling_type); people write a word. Each kind is a table row.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zinc_rt {

// The values are the numbers in files.
enum class Pooling : std::uint8_t {
  kNone,  // the model generates and has no embeddings
  kMean,  // the mean of the rows of all tokens
  kCls,   // the row of the first token
  kLast,  // the row of the last token
  kRank,  // a score of two texts: the row of the first token, through a head of its own
};

// Empty for an unknown name.
std::optional<Pooling> find_pooling(std::string_view name);
std::string_view to_string(Pooling pooling);
std::vector<std::string> pooling_names();  // that a model may be opened with

}  // namespace zinc_rt

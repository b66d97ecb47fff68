// Defines the meaning of each value of tokenizer.ggml.pre, in a table with one row per name.
// Thread rule: constant data.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt {

inline constexpr std::size_t kMaxPrePatterns = 6;

struct PreRule {
  std::string_view name;
  // Regular expressions, which are applied one after another. Each expression splits the pieces that the previous
  // expression has produced: its matches, and the text between them, become pieces. An empty element ends the list.
  std::array<std::string_view, kMaxPrePatterns> patterns;
  bool whole_words = false;  // whether a piece whose whole text is a token becomes that token without merging
  bool add_bos = false;      // whether BOS is added if the file has no add_bos_token key
  bool nfc = false;          // whether text is converted to Unicode's form C before it is split
};

std::span<const PreRule> pre_rules();

// Returns the row with this name. Errors: kInvalidArgument with the list of known names.
Result<const PreRule*> find_pre_rule(std::string_view name);

}  // namespace zinc_rt

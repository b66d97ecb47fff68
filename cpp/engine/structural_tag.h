// Reads a structural tag, as in xgrammar and vLLM: a response format in which tags within free text restrict what comes
// between them, or a combination of several formats.
// Thread rule: a pure function.
#pragma once

#include <functional>
#include <string_view>

#include "grammar/grammar.h"

namespace zinc_rt {

// Returns how the grammar writes `text`: as a token if one of the model's control tokens has this text, else as
// characters.
using MarkerOf = std::function<grammar::Marker(std::string_view text)>;

// Returns the symbol of the tag's grammar in `builder`. `text` is JSON: {"structures": [{"begin", "schema", "end"}],
// "triggers": [..]} or {"format": {"type": ..}}. Errors: kInvalidArgument with the position, such as "[structural_tag]
// structures[0].begin: ..", and the errors of the parts with their position.
Result<grammar::Builder::Symbol> read_structural_tag(std::string_view text, grammar::Builder& builder,
                                                     const MarkerOf& marker_of);

}  // namespace zinc_rt

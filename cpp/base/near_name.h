// The name that somebody may have meant.
// Thread rule: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace zinc_rt {

// The one of `names` with the fewest edits (a letter put in, left out, replaced, or two swapped) from `given`, letter
// case aside. Empty if none is near: more than two edits, or more than a third of the letters.
std::string near_name(std::string_view given, std::span<const std::string> names);

// "; did you mean NAME?" with the near one; empty if there is none.
std::string did_you_mean(std::string_view given, std::span<const std::string> names);

}  // namespace zinc_rt

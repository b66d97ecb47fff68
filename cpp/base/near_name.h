// Guesses which name a misspelt one was meant to be.
// Thread rule: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace zinc_rt {

// Returns the name in `names` that is fewest edits away from `given`. An edit puts in, leaves out or replaces a letter,
// or swaps two; letter case does not count. Empty if even the nearest takes more than two edits, or edits to more than
// a third of the letters.
std::string near_name(std::string_view given, std::span<const std::string> names);

// "; did you mean NAME?" with the near name; empty if there is none.
std::string did_you_mean(std::string_view given, std::span<const std::string> names);

}  // namespace zinc_rt

// Guesses which known name a user meant by a misspelt one, for error messages.
// Thread rule: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace zinc_rt {

// Returns the name in `names` that needs the fewest edits to become `given`. An edit inserts, removes or replaces a
// letter, or swaps two neighbours. Letter case does not count. Returns an empty text if even the nearest name needs
// more than two edits, or edits to more than a third of its letters.
std::string near_name(std::string_view given, std::span<const std::string> names);

// Returns "; did you mean NAME?" for the nearest name, or an empty text if no name is near.
std::string did_you_mean(std::string_view given, std::span<const std::string> names);

}  // namespace zinc_rt

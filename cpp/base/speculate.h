// How many tokens a step may guess for a request, in the form that users write.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace zinc_rt {

inline constexpr std::uint32_t kMostGuesses = 32;  // tokens that a step may guess for one request

struct Speculation {
  std::uint32_t most = kMostGuesses;  // tokens a step may guess; 0: nothing is guessed
  bool is_fixed = false;  // wherever there is a guess a step takes so many of its tokens, even if that saves no time
};

// "auto": up to kMostGuesses tokens, of which each step takes as many as save time; "off"; a number from 1 to
// kMostGuesses: so many, always. Returns nullopt for any other text.
std::optional<Speculation> find_speculation(std::string_view text);

}  // namespace zinc_rt

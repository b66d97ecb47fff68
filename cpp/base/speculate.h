// Parses the option that says how many tokens a step may guess (draft) for a request.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace zinc_rt {

inline constexpr std::uint32_t kMostGuesses = 32;  // most tokens that a step may guess for one request

struct Speculation {
  std::uint32_t most = kMostGuesses;  // most tokens that a step may guess; 0: no token is guessed
  bool is_fixed = false;              // true: each step takes `most` tokens of a guess, even if that saves no time
};

// Parses "auto", "off" or a number from 1 to kMostGuesses. With "auto", a step takes as many of up to kMostGuesses
// guessed tokens as save time. With a number, it always takes that many. Returns nullopt for any other text.
std::optional<Speculation> find_speculation(std::string_view text);

}  // namespace zinc_rt

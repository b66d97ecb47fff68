// Texts of a context that count as the template's own.
// Thread rule: a plain value.
#pragma once

#include <span>
#include <string_view>

namespace zinc_rt::jinja {

// A text that is one of these words and stands in an object under this key. Templates put such words into the middle of
// a token's name: '<|' + message.role + '|>'.
struct OwnWords {
  std::string_view key = {};
  std::span<const std::string_view> words = {};
};

}  // namespace zinc_rt::jinja

// Texts of a context that count as the template's own.
// Thread rule: a plain value.
#pragma once

#include <span>
#include <string_view>

namespace zinc_rt::jinja {

// A text that is one of these words and stands under this key of an object. Templates put such words into token names:
// '<|' + message.role + '|>'.
struct OwnWords {
  std::string_view key = {};
  std::span<const std::string_view> words = {};
};

}  // namespace zinc_rt::jinja

// OwnWords names texts that count as the template's own, although a client may have sent them in the context.
// render_marked() (chat_template.h) does not mark them as the client's, so a special token that contains such a text
// stays a special token.
#pragma once

#include <span>
#include <string_view>

namespace zinc_rt::jinja {

// A text is an own word if it is one of `words` and is the value of the key `key` of an object. Roles are an example:
// templates build token names from them, as in '<|' + message.role + '|>'.
struct OwnWords {
  std::string_view key = {};
  std::span<const std::string_view> words = {};
};

}  // namespace zinc_rt::jinja

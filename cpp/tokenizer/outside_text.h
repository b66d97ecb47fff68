// Marks the parts of a text that came from a client, within the text that a chat template wrote. No control token is
// matched in them.
// Thread rule: a plain value; what it looks at outlives it.
#pragma once

#include <cstdint>
#include <span>

#include "base/marked_text.h"

namespace zinc_rt {

struct OutsideText {
  // Stretches of text from outside. No control token is matched in them or across their edges, ...
  std::span<const TextSpan> spans = {};  // as TextSpans are
  // ... these excepted.
  std::span<const std::int32_t> allowed = {};  // sorted
};

}  // namespace zinc_rt

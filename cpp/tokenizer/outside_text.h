// OutsideText says which parts of a text came from a client, within the text that a chat template wrote. The tokenizer
// matches no control token in these parts.
// Thread rule: a plain value; the arrays that it refers to must outlive it.
#pragma once

#include <cstdint>
#include <span>

#include "base/marked_text.h"

namespace zinc_rt {

struct OutsideText {
  // Lists the parts of the text that a client wrote, in ascending order. No control token is matched in them or across
  // their edges, except tokens in `allowed`.
  std::span<const TextSpan> spans = {};
  // Lists the ids of the control tokens that are matched in the parts `spans` too.
  std::span<const std::int32_t> allowed = {};  // in ascending order
};

}  // namespace zinc_rt

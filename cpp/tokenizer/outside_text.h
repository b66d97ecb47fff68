// Marks the parts of a text that came from a client, within the text that a chat template wrote. No control token is
// matched in them.
// Thread rule: a plain value; the arrays that it refers to must outlive it.
#pragma once

#include <cstdint>
#include <span>

#include "base/marked_text.h"

namespace zinc_rt {

struct OutsideText {
  // The parts of the text that a client wrote, as in TextSpans. No control token is matched in them or across their
  // edges, except those of `allowed`.
  std::span<const TextSpan> spans = {};
  // Ids of the control tokens that are matched there too.
  std::span<const std::int32_t> allowed = {};  // sorted
};

}  // namespace zinc_rt

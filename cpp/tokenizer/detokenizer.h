// Turns token ids into text as they arrive, never half a UTF-8 sequence.
//
// All results of push() and finish(), joined, equal replace_invalid_utf8(Tokenizer::decode(all ids)).
// Thread rule: one stream belongs to one thread at a time; the tokenizer is shared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

namespace zinc_rt {

class Detokenizer {
 public:
  // previous: the token before the first one pushed, that is, the last of the prompt; empty at the start of a text. It
  // decides whether to remove the space that encode() puts before a text.
  explicit Detokenizer(Tokenizer tokenizer, bool skip_special = true, std::optional<std::int32_t> previous = {});

  // Returns the text that is final after this token; empty while a UTF-8 sequence is incomplete (it holds back at most
  // 3 bytes). An id outside the vocabulary gives U+FFFD; decode() refuses such an id.
  std::string push(std::int32_t id);

  // U+FFFD if the text ends within a sequence, else empty. The next push starts a new text.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  bool skip_special_;
  bool at_start_;
  Utf8Repair repair_;
};

}  // namespace zinc_rt

// Detokenizer turns token ids into text as they arrive, for streamed answers. It never returns half a UTF-8 sequence.
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
  // `previous` is the token before the first pushed token, that is, the last token of the prompt; empty at the start of
  // a text. encode() puts a space before a text, and `previous` decides whether this space is removed from the first
  // token's text.
  explicit Detokenizer(Tokenizer tokenizer, bool skip_special = true, std::optional<std::int32_t> previous = {});

  // Returns the text that is final after this token. It is empty while a UTF-8 sequence is incomplete; at most 3 bytes
  // are held back. An id outside the vocabulary returns U+FFFD, whereas decode() refuses it.
  std::string push(std::int32_t id);

  // Ends the text. Returns U+FFFD if it ends within a sequence, else an empty text. The next push() starts a new text.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  bool skip_special_;
  bool at_start_;
  Utf8Repair repair_;
};

}  // namespace zinc_rt

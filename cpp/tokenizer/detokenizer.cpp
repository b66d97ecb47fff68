#include "tokenizer/detokenizer.h"

#include <utility>

namespace zinc_rt {

Detokenizer::Detokenizer(Tokenizer tokenizer, bool skip_special, std::optional<std::int32_t> previous)
    : tokenizer_(std::move(tokenizer)),
      skip_special_(skip_special),
      at_start_(!previous || tokenizer_.starts_text(*previous)) {}

std::string Detokenizer::push(std::int32_t id) {
  std::string out;
  if (!tokenizer_.contains(id)) {
    repair_.finish(out);
    at_start_ = false;
    return out += kReplacementCharacter;
  }
  const bool starts = tokenizer_.starts_text(id);
  std::string_view bytes = tokenizer_.token_bytes(id);
  if (skip_special_ && tokenizer_.is_special(id)) bytes = {};
  if (at_start_ && !starts && tokenizer_.adds_space_prefix() && bytes.starts_with(' ')) bytes.remove_prefix(1);
  at_start_ = starts;
  repair_.push(bytes, out);
  return out;
}

std::string Detokenizer::finish() {
  std::string out;
  repair_.finish(out);
  at_start_ = true;
  return out;
}

}  // namespace zinc_rt

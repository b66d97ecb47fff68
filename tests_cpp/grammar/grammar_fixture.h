// Small vocabularies, and answers to "does this grammar accept this text".
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace zinc_rt::grammar {

// Ids 0 to 255 are the bytes; then `more`; then an end token and three that are no text.
struct SmallTokens {
  explicit SmallTokens(std::vector<std::string> more = {}) {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    tokens.insert(tokens.end(), more.begin(), more.end());
    end = static_cast<std::int32_t>(tokens.size());
    for (int i = 0; i < 4; ++i) tokens.emplace_back();
    vocabulary = Vocabulary::make(tokens, {end}).value();
  }
  std::int32_t special(int i) const { return end + 1 + i; }
  std::shared_ptr<const Vocabulary> vocabulary;
  std::int32_t end;
};

inline const SmallTokens& bytes_alone() {
  static const SmallTokens tokens;
  return tokens;
}

inline Grammar must(Result<Grammar> grammar) {
  if (!grammar) ADD_FAILURE() << grammar.error().message;
  return grammar ? *grammar : compile({SourceKind::kChoice, "", {"failed"}}).value();
}

inline bool has_bit(const std::vector<std::uint32_t>& mask, std::int32_t token) {
  return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

inline std::vector<std::uint32_t> mask_of(Matcher& matcher) {
  std::vector<std::uint32_t> mask(matcher.vocabulary().n_mask_words());
  const auto ok = matcher.fill(mask);
  if (!ok) ADD_FAILURE() << ok.error().message;
  return mask;
}

// Whether the whole text fits, byte by byte; -1 and the number of bytes that do, if not.
inline bool accepts(const Grammar& grammar, std::string_view text) {
  Matcher matcher(grammar, bytes_alone().vocabulary);
  for (const char byte : text) {
    const auto ok = matcher.accept(static_cast<std::uint8_t>(byte));
    if (!ok) ADD_FAILURE() << ok.error().message;
    if (!ok || !*ok) return false;
  }
  return matcher.is_complete();
}

// How many bytes of the text are a beginning of something that fits.
inline std::size_t beginning(const Grammar& grammar, std::string_view text) {
  Matcher matcher(grammar, bytes_alone().vocabulary);
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!matcher.accept(static_cast<std::uint8_t>(text[i])).value_or(false)) return i;
  return text.size();
}

inline Grammar schema(std::string_view text, Options options = {}) {
  return must(compile({SourceKind::kJsonSchema, std::string(text), {}}, options));
}
inline std::string schema_error(std::string_view text, Options options = {}) {
  const auto made = compile({SourceKind::kJsonSchema, std::string(text), {}}, options);
  return made ? "" : made.error().message;
}

}  // namespace zinc_rt::grammar

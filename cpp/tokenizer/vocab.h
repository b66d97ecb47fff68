// Vocab is the token table of a GGUF file: text, score and type per id, and a look-up from text to id.
// Thread rule: immutable after creation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf/metadata.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

using TokenId = std::int32_t;

// TokenType lists the types of tokens, with the values of tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // matched in text only if the caller sets parse_special
  kUserDefined = 4,  // always matched in text as one token
  kUnused = 5,
  kByte = 6  // a single byte, written "<0xNN>"
};

// Stores byte strings back to back and finds the number of a text. If equal texts are added, the first number is found.
class StringTable {
 public:
  void reserve(std::size_t n_strings, std::size_t n_bytes);
  std::uint32_t add(std::string_view text);  // returns the new number, even if an equal text exists already
  std::optional<std::uint32_t> find(std::string_view text) const;
  std::string_view operator[](std::size_t number) const {
    return std::string_view(bytes_).substr(ends_[number], ends_[number + 1] - ends_[number]);
  }
  std::size_t size() const { return ends_.size() - 1; }

 private:
  void grow(std::size_t n_slots);

  std::string bytes_;
  std::vector<std::uint64_t> ends_ = {0};
  struct Slot {
    std::uint32_t number_plus_one = 0;  // 0 if the slot is free
    std::uint32_t hash = 0;
  };
  std::vector<Slot> slots_;  // hash table with open addressing; its size is a power of two, at most half full
};

class Vocab {
 public:
  // Reads tokenizer.ggml.{tokens,scores,token_type}, the first n_rows of each. If the file has no scores, all are 0; if
  // it has no types, all are kNormal. Errors: kNotFound without tokens; kCorrupt for an empty list, lists of different
  // lengths, or a type that the format does not have.
  static Result<Vocab> from_metadata(const gguf::Metadata& metadata, std::size_t n_rows = SIZE_MAX);

  std::size_t size() const { return texts_.size(); }
  bool contains(std::int64_t id) const { return id >= 0 && static_cast<std::uint64_t>(id) < size(); }
  // Return a property of a token. REQUIRES: contains(id).
  std::string_view text(TokenId id) const { return texts_[static_cast<std::size_t>(id)]; }
  float score(TokenId id) const { return scores_[static_cast<std::size_t>(id)]; }
  TokenType type(TokenId id) const { return types_[static_cast<std::size_t>(id)]; }

  // Returns the lowest id with this text, or nullopt if no token has it.
  std::optional<TokenId> find(std::string_view text) const;
  // Returns the token of a byte: "<0xNN>", or else the token whose text is the byte. Returns nullopt if the vocabulary
  // has neither.
  std::optional<TokenId> find_byte(std::uint8_t byte) const;

  bool has_scores() const { return has_scores_; }
  std::size_t max_text_bytes() const { return max_text_bytes_; }
  void set_type(TokenId id, TokenType type) { types_[static_cast<std::size_t>(id)] = type; }

 private:
  StringTable texts_;
  std::vector<float> scores_;
  std::vector<TokenType> types_;
  bool has_scores_ = false;
  std::size_t max_text_bytes_ = 0;
};

// Returns the value of "<0xNN>" with two hexadecimal digits, or nullopt for any other text.
std::optional<std::uint8_t> parse_byte_token(std::string_view text);

}  // namespace zinc_rt

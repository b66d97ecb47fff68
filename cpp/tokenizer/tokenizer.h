// Tokenizer converts text to token ids and back, by the vocabulary and rules in a GGUF file's metadata.
//
// The key tokenizer.ggml.model names the algorithm: "gpt2" (byte-level BPE, after a split by tokenizer.ggml.pre),
// "llama" (SentencePiece BPE), "gemma4" (BPE on characters with U+2581 for the space) or "bert" (uncased WordPiece).
// Thread rule: all calls are const and may run at the same time; copies share one immutable vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf/metadata.h"
#include "tokenizer/encode_limits.h"
#include "tokenizer/outside_text.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

class Tokenizer {
 public:
  // Reads a tokenizer from a file's metadata. n_rows is the number of rows of the model's embedding matrix; tokens
  // without a row are ignored. Errors: kInvalidArgument for a model or pre-tokenizer that is not supported, with the
  // supported ones; kNotFound for a missing key; kCorrupt for lists of different lengths and ids outside the
  // vocabulary.
  static Result<Tokenizer> from_metadata(const gguf::Metadata& metadata, std::size_t n_rows = SIZE_MAX);

  // Returns the token ids of `text`. Bytes that are not UTF-8 are encoded as they are. If the vocabulary was trained on
  // Unicode's form C, the text between special tokens is first converted to form C. With add_special, BOS is put before
  // and EOS after the text, if the file says so. With parse_special, a control token's spelling in the text becomes
  // this token. For text from a client, do not set parse_special, or mark the client's text in `outside`. User-defined
  // tokens always match. A byte without any token is left out. Errors: kInvalidArgument above 1 GiB of text, and as
  // soon as the result exceeds limits.max_tokens tokens; kCancelled soon after limits.cancel is requested.
  Result<std::vector<std::int32_t>> encode(std::string_view text, bool add_special, bool parse_special,
                                           const EncodeLimits& limits = {}, const OutsideText& outside = {}) const;

  // Returns a lower bound on the number of tokens that encode() would return. It looks at each byte at most once.
  std::size_t least_tokens(std::string_view text) const;

  // Returns the bytes that the ids stand for, which need not be UTF-8 (see replace_invalid_utf8). With skip_special,
  // control and unknown tokens add nothing; otherwise these tokens add their text. If encode() puts a space before
  // texts, this space is removed at the start and after each special token. Errors: kInvalidArgument for an id outside
  // the vocabulary.
  Result<std::string> decode(std::span<const std::int32_t> ids, bool skip_special = false) const;

  std::size_t n_vocab() const;
  bool contains(std::int32_t id) const { return id >= 0 && static_cast<std::size_t>(id) < n_vocab(); }

  std::optional<std::int32_t> bos_id() const;
  std::optional<std::int32_t> eos_id() const;
  std::optional<std::int32_t> eot_id() const;  // returns the token that ends a turn
  // Returns the token that ends a message after which a tool's answer follows.
  std::optional<std::int32_t> eom_id() const;
  std::optional<std::int32_t> unk_id() const;
  std::optional<std::int32_t> pad_id() const;
  bool adds_bos() const;
  bool adds_eos() const;
  // Returns whether encode() converts text to Unicode's form C. If so, decode() returns that form.
  bool normalizes() const;
  // Returns whether encode() puts a space before text at the start and after special tokens.
  bool adds_space_prefix() const;

  // The following functions accept any id. An id outside the vocabulary is not special and has no text.
  bool is_special(std::int32_t id) const;  // whether the token is a control or unknown token
  bool is_end_of_generation(std::int32_t id) const;
  // Returns whether encode() would put a space before text that follows this token.
  bool starts_text(std::int32_t id) const;
  // Returns the token's spelling in the vocabulary, such as "Ġhello" or "<0x0A>".
  std::string_view token_text(std::int32_t id) const;
  // Returns the bytes that the token adds to decoded text, such as " hello" or "\n".
  std::string_view token_bytes(std::int32_t id) const;

  // Returns the id of the token with this spelling in the vocabulary. If several tokens have it, returns the lowest id.
  std::optional<std::int32_t> find(std::string_view token_text) const;
  std::vector<std::int32_t> end_of_generation_ids() const;

  std::string_view model() const;               // one of "gpt2", "llama", "gemma4", "bert"
  std::string_view pre_tokenizer_name() const;  // empty if the model has no pre-tokenizer

 private:
  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts);
  std::shared_ptr<const Parts> parts_;
};

}  // namespace zinc_rt

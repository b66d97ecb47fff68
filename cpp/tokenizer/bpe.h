// Bpe is byte-pair encoding by a ranked list of merges.
//
// In byte-level vocabularies (GPT-2 and similar) the symbols are bytes, written in the byte alphabet (byte_alphabet.h).
// In character-level vocabularies (Gemma 4) the symbols are UTF-8 characters, and a character without a token becomes
// one "<0xNN>" token per byte.
// Thread rule: immutable after creation; MergeTextScratch belongs to the calling thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/encode_watch.h"
#include "tokenizer/merge_text.h"
#include "tokenizer/pair_set.h"
#include "tokenizer/vocab.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

enum class BpeAlphabet : std::uint8_t { kBytes, kCharacters };

class Bpe {
 public:
  // Creates the encoder. `merges` are lines "left right", best first. If a line occurs twice, the first counts. A merge
  // from or to a text that is not a token is used too, because it can be a step to a longer token. If a text that is
  // not a token remains at the end, its bytes are encoded one by one. Errors: kCorrupt for a line that is not two texts
  // with a space between.
  static Result<Bpe> create(const Vocab& vocab, std::span<const std::string> merges, BpeAlphabet alphabet);

  // Appends the ids of one piece to `out`. A byte without a token adds `unknown` if `unknown` is not -1, else nothing.
  // Returns false if the watch ended the call; `out` is then unchanged. REQUIRES: the vocabulary that was passed to
  // create(); fewer than 2^31 bytes.
  bool encode(const Vocab& vocab, std::string_view piece, TokenId unknown, MergeTextScratch& scratch,
              std::vector<TokenId>& out, EncodeWatch& watch) const;

  // Returns the pairs of neighbouring characters that some merge joins. It is filled only for kCharacters.
  const PairSet& pairs() const { return pairs_; }

 private:
  struct Slot {
    std::uint64_t pair = kFree;
    Merge merge;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  static std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t slot_of(std::uint64_t pair) const;
  std::int32_t symbol_of(const Vocab& vocab, std::string_view text) const;
  std::int32_t intern(const Vocab& vocab, std::string_view text);
  void append_bytes(std::string_view bytes, TokenId unknown, std::vector<TokenId>& out) const;

  BpeAlphabet alphabet_ = BpeAlphabet::kBytes;
  StringTable extra_;  // texts in merges that are not tokens; their numbers follow the vocabulary's ids
  std::int32_t n_tokens_ = 0;
  // Maps each byte (kBytes) or each ASCII character (kCharacters) to its symbol.
  std::array<std::int32_t, 256> byte_symbol_{};
  std::array<TokenId, 256> byte_token_{};  // token of each byte; -1 if the byte has no token
  std::vector<Slot> slots_;  // hash table of merges with open addressing; its size is a power of two, at most half full
  PairSet pairs_;
};

}  // namespace zinc_rt

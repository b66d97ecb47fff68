// Spm is SentencePiece's BPE. It joins two neighbours if their joint text is a token, beginning with the pair whose
// token has the highest score. A character that is not a token becomes its bytes.
// Thread rule: immutable after creation; MergeTextScratch belongs to the calling thread.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "tokenizer/encode_watch.h"
#include "tokenizer/merge_text.h"
#include "tokenizer/pair_set.h"
#include "tokenizer/vocab.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

class Spm {
 public:
  // Creates the encoder of a vocabulary. Errors: kNotFound if the vocabulary has no scores.
  static Result<Spm> create(const Vocab& vocab);

  // Appends the ids of `text`, in which spaces are already U+2581. A character with a byte that has no token adds
  // `unknown` once, or nothing if `unknown` is not an id. Returns false if the watch ended the call; `out` is then
  // unchanged. REQUIRES: the vocabulary that was passed to create(); fewer than 2^31 bytes.
  bool encode(const Vocab& vocab, std::string_view text, TokenId unknown, MergeTextScratch& scratch,
              std::vector<TokenId>& out, EncodeWatch& watch) const;

  // Returns the pairs of neighbouring characters inside the tokens that merging can produce.
  const PairSet& pairs() const { return pairs_; }

 private:
  PairSet pairs_;
  std::array<TokenId, 128> ascii_{};  // token of each ASCII character; -1 if the character has no token
};

}  // namespace zinc_rt

// Converts between SentencePiece scores (GGUF) and the ranked merges of tokenizer.json. Scores and merges both define
// the order in which neighbouring tokens are joined.
//
// With merges, the pair with the best rank is joined first. With scores, a pair may be joined if its joined text is a
// token. The pair whose token has the highest score is joined first, and of equal scores the leftmost. Both orders
// produce the same tokens for every text if
//   - each way to split a token into two tokens is a merge, and
//   - the merges that produce one token have consecutive ranks.
// Converters from SentencePiece write merges of this kind, with one exception: a vocabulary may contain runs of one
// character (of U+2581, the space) that share one score, and the merges of these runs interleave. Such runs get one
// score here too, but only if both orders give the same tokens for every run up to twice the longest. Any other
// vocabulary that breaks the two conditions is refused.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

// MergeVocab is the input of both functions below: the tokens of a vocabulary, by id. mergeable[id] is not 0 if joining
// two tokens can produce the token.
struct MergeVocab {
  std::span<const std::string> tokens;
  std::span<const std::uint8_t> mergeable;
};

struct MergePair {
  std::uint32_t left = 0, right = 0;
  bool operator==(const MergePair&) const = default;
};

// Converts merges (best first) to a score per token. Tokens that no merge produces get score 0. All other tokens get
// -1, -2, ... in the order of rank. Errors: kCorrupt if a merge does not produce a token; kUnavailable if scores cannot
// express the merges.
Result<std::vector<float>> scores_of_merges(const MergeVocab& vocab, std::span<const MergePair> merges);

// Returns the merges of a SentencePiece vocabulary, best first. Errors: kUnavailable if two tokens share a score,
// unless both are runs of one character.
Result<std::vector<MergePair>> merges_of_scores(const MergeVocab& vocab, std::span<const float> scores);

}  // namespace zinc_rt::mlc

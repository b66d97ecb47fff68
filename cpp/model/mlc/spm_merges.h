// Converts between SentencePiece scores and the ranked merges of tokenizer.json. Both define the order in which
// neighbouring tokens are joined.
//
// With merges, the pair with the best rank is joined first. With scores, a pair may be joined if its joined text is a
// token; the pair whose token has the highest score is joined first, and of equal scores the leftmost. Both give the
// same tokens for every text if
//   - each way to split a token into two tokens is a merge, and
// - the merges that produce one token have consecutive ranks.
// Converters from SentencePiece write merges of this kind, with one exception: vocabularies have runs of one character
// (of U+2581, the space) that share one score, and whose merges interleave. Such runs get one score here too, but only
// if both orders give the same tokens for every run up to twice the longest. Any other vocabulary that breaks the
// conditions is refused. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

// A vocabulary for merging. mergeable[id] is not 0 if joining tokens can produce this one.
struct MergeVocab {
  std::span<const std::string> tokens;
  std::span<const std::uint8_t> mergeable;
};

struct MergePair {
  std::uint32_t left = 0, right = 0;
  bool operator==(const MergePair&) const = default;
};

// merges: best first. In the result, tokens that no merge produces have score 0; the others have -1, -2, ... by rank.
// Errors: kCorrupt if a merge does not produce a token; kUnavailable if scores cannot express the merges.
Result<std::vector<float>> scores_of_merges(const MergeVocab& vocab, std::span<const MergePair> merges);

// Returns the merges of a SentencePiece vocabulary, best first. Errors: kUnavailable if two tokens share a score,
// unless they are runs of one character.
Result<std::vector<MergePair>> merges_of_scores(const MergeVocab& vocab, std::span<const float> scores);

}  // namespace zinc_rt::mlc

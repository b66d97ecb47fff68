// Converts between SentencePiece scores and the ranked merges of tokenizer.json, two ways to order the joining of
// neighbours.
//
// By merges, the pair with the best rank goes first. By scores, a pair may be joined when the text of both is a token,
// and the token with the highest score goes first, the leftmost of equals. Both give the same tokens for every text if
//   - each way to split a token into two tokens is a merge, and
//   - the merges to one token stand together in the ranks, no other token's between them.
// Converters from SentencePiece write merges of this kind, with one exception: vocabularies have runs of one character
// (of U+2581, the space) that share one score, and whose merges interleave. Such runs get one score here too, after
// both ways have been tried on every run up to twice the longest. What else breaks the conditions is refused, never
// guessed. Thread rule: pure functions.
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

// merges: best first. The result has score 0 for tokens that no merge makes; the others get -1, -2, ... by rank.
// Errors: kCorrupt if a merge makes no token; kUnavailable if scores cannot express the merges.
Result<std::vector<float>> scores_of_merges(const MergeVocab& vocab, std::span<const MergePair> merges);

// The merges of a SentencePiece vocabulary, best first. Errors: kUnavailable if two tokens share a score, unless they
// are runs of one character.
Result<std::vector<MergePair>> merges_of_scores(const MergeVocab& vocab, std::span<const float> scores);

}  // namespace zinc_rt::mlc

#include "tokenizer/spm.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/utf8.h"

namespace zinc_rt {
namespace {

// Returns whether merging text may produce a token of this type. It never produces control, unknown or byte tokens.
bool can_merge_to(TokenType type) {
  return type != TokenType::kControl && type != TokenType::kUnknown && type != TokenType::kByte;
}

// Maps a score to a priority, which is an integer: the highest score gets the smallest. All priorities are below
// MergeOrder::kNone, including NaN's.
std::uint32_t priority_of(float score) {
  // -0 is treated as +0, because the two scores are equal.
  const auto bits = std::bit_cast<std::uint32_t>(score == 0.0f ? 0.0f : score);
  const std::uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return std::min(~ascending, MergeOrder::kNone - 1);
}

// Returns the id of the token that merging can produce from `text`, or -1 if no token can result.
TokenId token_of(const Vocab& vocab, std::string_view text) {
  const auto id = vocab.find(text);
  return id && can_merge_to(vocab.type(*id)) ? *id : -1;
}

}  // namespace

Result<Spm> Spm::create(const Vocab& vocab) {
  if (!vocab.has_scores())
    return fail(StatusCode::kNotFound, "[tokenizer] tokenizer.ggml.scores: {} wanted (one a token), 0 there",
                vocab.size());
  Spm spm;
  for (std::size_t i = 0; i < vocab.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (can_merge_to(vocab.type(id))) spm.pairs_.add_all(vocab.text(id));
  }
  for (std::size_t i = 0; i < spm.ascii_.size(); ++i) {
    const char c = static_cast<char>(i);
    spm.ascii_[i] = token_of(vocab, {&c, 1});
  }
  return spm;
}

bool Spm::encode(const Vocab& vocab, std::string_view text, TokenId unknown, MergeTextScratch& scratch,
                 std::vector<TokenId>& out, EncodeWatch& watch) const {
  const auto first_symbol = [&](std::string_view all, std::uint32_t at) -> Merged {
    const auto first = static_cast<std::uint8_t>(all[at]);
    if (first < ascii_.size()) return {at, 1, ascii_[first]};
    const auto n = static_cast<std::uint32_t>(std::max<std::size_t>(1, utf8_sequence_bytes(all.substr(at, 4))));
    return {at, n, token_of(vocab, all.substr(at, n))};
  };
  const auto join = [&](const Symbol& left, const Symbol& right, Merge& merge) {
    if (left.bytes + right.bytes > vocab.max_text_bytes()) return false;
    merge.id = token_of(vocab, text.substr(left.begin, left.bytes + right.bytes));
    if (merge.id < 0) return false;
    merge.priority = priority_of(vocab.score(merge.id));
    return true;
  };
  const auto stop = [&](std::size_t bytes, std::size_t n) { return watch.over(bytes, out.size() + n); };
  if (!merge_text(text, scratch, first_symbol, join, stop)) return false;
  for (const Merged& symbol : scratch.done) {
    if (symbol.id >= 0) {
      out.push_back(symbol.id);
      continue;
    }
    const std::size_t begin = out.size();
    for (const char c : text.substr(symbol.begin, symbol.bytes)) {
      const auto id = vocab.find_byte(static_cast<std::uint8_t>(c));
      if (id) {
        out.push_back(*id);
        continue;
      }
      out.resize(begin);
      if (unknown >= 0) out.push_back(unknown);
      break;
    }
  }
  return true;
}

}  // namespace zinc_rt

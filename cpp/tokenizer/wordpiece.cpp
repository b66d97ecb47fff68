#include "tokenizer/wordpiece.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/wordpiece_tables.h"

namespace zinc_rt {
namespace {

namespace tables = wordpiece_tables;

constexpr std::size_t kMostCharacters = 100;  // most characters of a word, as in BERT
constexpr std::size_t kBetweenLooks = 256;    // bytes of text between two checks of the watch

tables::Kind kind_of(char32_t c) {
  const std::span runs(tables::kind_runs, tables::n_kind_runs);
  return std::prev(std::ranges::upper_bound(runs, c, {}, &tables::KindRun::first))->kind;
}

// Folded holds the one to three characters that replace a character, followed by 0.
struct Folded {
  char32_t to[3] = {};
};
Folded fold(char32_t c) {
  constexpr char32_t kHangul = 0xAC00, kHangulEnd = 0xD7A4, kLead = 0x1100, kVowel = 0x1161, kTail = 0x11A7;
  constexpr char32_t kTails = 28, kVowels = 21;
  if (c >= kHangul && c < kHangulEnd) {
    const char32_t index = c - kHangul, tail = index % kTails;
    return {{kLead + index / (kVowels * kTails), kVowel + index / kTails % kVowels, tail == 0 ? 0 : kTail + tail}};
  }
  const std::span folds(tables::folds, tables::n_folds);
  const auto at = std::ranges::lower_bound(folds, c, {}, &tables::Fold::from);
  if (at == folds.end() || at->from != c) return {{c}};
  return {{at->to[0], at->to[1], at->to[2]}};
}

// Collects the characters of a word. When the word ends, appends its tokens to `out`.
class Words {
 public:
  Words(const Vocab& vocab, TokenId unknown, std::vector<TokenId>& out) : vocab_(vocab), unknown_(unknown), out_(out) {}

  void add(char32_t c) {
    if (word_.empty()) word_ = kSpaceMark;
    if (++n_characters_ <= kMostCharacters) append_utf8(word_, c);
  }
  void end_word() {
    if (!word_.empty() && !append_tokens()) out_.push_back(unknown_);
    word_.clear();
    n_characters_ = 0;
  }
  void add_alone(char32_t c) {
    end_word();
    add(c);
    end_word();
  }

 private:
  // Appends the tokens of the word. Returns false and appends nothing if tokens cannot compose the word.
  bool append_tokens() {
    if (n_characters_ > kMostCharacters) return false;
    const std::size_t begin = out_.size();
    for (std::string_view rest = word_; !rest.empty();) {
      std::size_t n = std::min(rest.size(), vocab_.max_text_bytes());
      std::optional<TokenId> id;
      while (n > 0 && !(id = find(rest.substr(0, n)))) --n;
      if (!id) {
        out_.resize(begin);
        return false;
      }
      out_.push_back(*id);
      rest.remove_prefix(n);
    }
    return true;
  }
  // Returns the token with this text. The mark alone is not accepted, because it would be a word without characters.
  std::optional<TokenId> find(std::string_view text) const {
    return text == kSpaceMark ? std::nullopt : vocab_.find(text);
  }

  const Vocab& vocab_;
  const TokenId unknown_;
  std::vector<TokenId>& out_;
  std::string word_;  // the word so far, which begins with the mark U+2581
  std::size_t n_characters_ = 0;
};

void add_character(char32_t c, Words& words) {
  const tables::Kind kind = kind_of(c);
  if (kind == tables::kDrop) return;
  if (kind == tables::kSpace) return words.end_word();
  const bool is_ideograph = kind == tables::kIdeograph;  // each ideograph is a word by itself
  if (is_ideograph) words.end_word();
  for (const char32_t folded : fold(c).to) {
    if (folded == 0) break;
    switch (kind_of(folded)) {
      case tables::kPunctuation: words.add_alone(folded); break;
      case tables::kSpace: words.end_word(); break;
      default: words.add(folded);
    }
  }
  if (is_ideograph) words.end_word();
}

}  // namespace

Status check_wordpiece(const Vocab& vocab) {
  for (std::size_t i = 0; i < vocab.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    std::string_view text = vocab.text(id);
    if (vocab.type(id) != TokenType::kNormal) continue;
    if (text.starts_with(kSpaceMark)) text.remove_prefix(kSpaceMark.size());
    // Special tokens such as [MASK], which no word contains, may have capitals.
    if (text.starts_with('[') && text.ends_with(']')) continue;
    if (std::ranges::any_of(text, [](char c) { return c >= 'A' && c <= 'Z'; }))
      return fail(
          StatusCode::kUnavailable,
          "[tokenizer] token {} (\"{}\") has upper-case letters; WordPiece is there for uncased vocabularies alone", id,
          vocab.text(id));
  }
  return {};
}

bool encode_wordpiece(const Vocab& vocab, std::string_view text, TokenId unknown, std::vector<TokenId>& out,
                      EncodeWatch& watch) {
  Words words(vocab, unknown, out);
  std::size_t since_look = 0;
  while (!text.empty()) {
    const std::size_t n = utf8_sequence_bytes(text), taken = std::max<std::size_t>(n, 1);
    if (n > 0) add_character(utf8_code_point(text.substr(0, n)), words);
    text.remove_prefix(taken);
    since_look += taken;
    if (since_look < kBetweenLooks) continue;
    if (watch.over(since_look, out.size())) return false;
    since_look = 0;
  }
  words.end_word();
  return !watch.over(since_look, out.size());
}

}  // namespace zinc_rt

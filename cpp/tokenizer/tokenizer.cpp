#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/error.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/nfc.h"
#include "tokenizer/piece_cache.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/wordpiece.h"

namespace zinc_rt {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

bool is_marker(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

// Replaces each run of spaces in `text` by one space, and removes spaces at its ends.
std::string collapse_spaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out.push_back(c);
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

// Encodes the pieces into which the pre-tokenizer splits text. Byte-level models use it.
class BytePieces final : public PieceSink {
 public:
  BytePieces(const Vocab& vocab, const Bpe& bpe, bool whole_words, PieceCache& cache, std::vector<TokenId>& out,
             EncodeWatch& watch)
      : vocab_(vocab), bpe_(bpe), whole_words_(whole_words), cache_(cache), out_(out), watch_(watch) {}

  bool piece(std::string_view text) override {
    const auto encode = [this](std::string_view part, std::vector<TokenId>& out) { return encode_new(part, out); };
    return cache_.append(text, out_, encode) && !watch_.over(text.size(), out_.size());
  }

 private:
  bool encode_new(std::string_view part, std::vector<TokenId>& out) {
    if (whole_words_ && part.size() <= vocab_.max_text_bytes()) {
      const auto id = vocab_.find(to_byte_alphabet(part));
      if (id && !is_marker(vocab_.type(*id))) {
        out.push_back(*id);
        return true;
      }
    }
    return bpe_.encode(vocab_, part, -1, scratch_, out, watch_);
  }

  const Vocab& vocab_;
  const Bpe& bpe_;
  const bool whole_words_;
  PieceCache& cache_;
  std::vector<TokenId>& out_;
  EncodeWatch& watch_;
  MergeTextScratch scratch_;
};

// Encodes text for the models that write a space as U+2581: SentencePiece and Gemma 4.
class MarkedPieces {
 public:
  MarkedPieces(const Vocab& vocab, const Spm* spm, const Bpe* bpe, TokenId unknown, PieceCache& cache,
               std::vector<TokenId>& out, EncodeWatch& watch)
      : vocab_(vocab), spm_(spm), bpe_(bpe), unknown_(unknown), cache_(cache), out_(out), watch_(watch) {}

  // Encodes text in which spaces are already replaced by U+2581. Returns false if the watch ended the call. REQUIRES:
  // the text's memory outlives the cache.
  bool text(std::string_view marked) {
    if (spm_ != nullptr) return run(marked);
    // Gemma 4 encodes runs of line feeds separately from other text. If a whole run is a token, that token is used.
    while (!marked.empty()) {
      const bool feeds = marked[0] == '\n';
      const std::string_view part = marked.substr(0, feeds ? marked.find_first_not_of('\n') : marked.find('\n'));
      marked.remove_prefix(part.size());
      const auto id = feeds ? vocab_.find(part) : std::nullopt;
      if (id) {
        out_.push_back(*id);
      } else if (!run(part)) {
        return false;
      }
    }
    return true;
  }

 private:
  bool run(std::string_view marked) {
    const auto encode = [this](std::string_view part, std::vector<TokenId>& out) {
      return spm_ != nullptr ? spm_->encode(vocab_, part, unknown_, scratch_, out, watch_)
                             : bpe_->encode(vocab_, part, unknown_, scratch_, out, watch_);
    };
    const PairSet& pairs = spm_ != nullptr ? spm_->pairs() : bpe_->pairs();
    return pairs.cut(marked, [&](std::string_view part) {
      return cache_.append(part, out_, encode) && !watch_.over(part.size(), out_.size());
    });
  }

  const Vocab& vocab_;
  const Spm* spm_;
  const Bpe* bpe_;
  const TokenId unknown_;
  PieceCache& cache_;
  std::vector<TokenId>& out_;
  EncodeWatch& watch_;
  MergeTextScratch scratch_;
};

void append_marked(std::string_view text, std::string& out) {
  out.reserve(out.size() + text.size() + 2 * static_cast<std::size_t>(std::count(text.begin(), text.end(), ' ')));
  for (const char c : text) {
    if (c == ' ') {
      out += kSpaceMark;
    } else {
      out.push_back(c);
    }
  }
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, bool add_special, bool parse_special,
                                                    const EncodeLimits& limits, const OutsideText& outside) const {
  const Parts& p = *parts_;
  if (text.size() > kMaxTextBytes)
    return fail(StatusCode::kInvalidArgument, "[tokenizer] text: at most {} bytes wanted, {} there", kMaxTextBytes,
                text.size());
  std::vector<TokenId> ids;
  if (add_special && p.add_bos) ids.push_back(*p.roles.bos);
  PieceCache cache(text.size());
  EncodeWatch watch(limits);
  Status failed;
  bool is_whole = false;
  const SpecialTokens::Rule rule{parse_special, outside};

  if (p.model == TokenizerModel::kGpt2) {
    BytePieces pieces(p.vocab, *p.bpe, p.pre_rule->whole_words, cache, ids, watch);
    // Holds the texts in form C. The cache points into them, so they must not move, which a deque guarantees.
    std::deque<std::string> normalized;
    is_whole = p.special_tokens.split(text, rule, [&](const Fragment& fragment) {
      if (fragment.id >= 0) {
        ids.push_back(fragment.id);
        return !watch.over(p.bytes_of(fragment.id).size(), ids.size());
      }
      std::string_view part = fragment.text;
      if (p.pre_rule->nfc)
        if (auto changed = to_nfc(part)) part = normalized.emplace_back(std::move(*changed));
      const auto goes_on = p.pretokenizer->split(part, pieces);
      if (!goes_on) failed = std::unexpected(goes_on.error());
      return goes_on && *goes_on;
    });
  } else if (p.model == TokenizerModel::kBert) {
    is_whole = p.special_tokens.split(text, rule, [&](const Fragment& fragment) {
      if (fragment.id < 0) return encode_wordpiece(p.vocab, fragment.text, *p.roles.unk, ids, watch);
      ids.push_back(fragment.id);
      return !watch.over(p.bytes_of(fragment.id).size(), ids.size());
    });
  } else {
    MarkedPieces pieces(p.vocab, p.spm ? &*p.spm : nullptr, p.bpe ? &*p.bpe : nullptr, p.roles.unk.value_or(-1), cache,
                        ids, watch);
    // Holds the marked texts of all fragments. The cache points into them, so they must not move, which a deque
    // guarantees.
    std::deque<std::string> marked;
    bool at_start = true;
    is_whole = p.special_tokens.split(text, rule, [&](const Fragment& fragment) {
      const bool has_space = p.add_space_prefix && std::exchange(at_start, fragment.id >= 0);
      if (fragment.id >= 0) {
        ids.push_back(fragment.id);
        return !watch.over(p.bytes_of(fragment.id).size(), ids.size());
      }
      std::string& made = marked.emplace_back();
      if (has_space) made += kSpaceMark;
      if (p.remove_extra_whitespaces) {
        append_marked(collapse_spaces(fragment.text), made);
      } else {
        append_marked(fragment.text, made);
      }
      return pieces.text(made);
    });
  }
  if (!failed) return std::unexpected(failed.error());
  if (watch.is_cancelled()) return fail(StatusCode::kCancelled, "[tokenizer] cancelled after {} tokens", ids.size());
  if (!is_whole || ids.size() > limits.max_tokens)
    return fail(StatusCode::kInvalidArgument, "[tokenizer] {} bytes of text are more than {} tokens", text.size(),
                limits.max_tokens);
  if (add_special && p.add_eos) ids.push_back(*p.roles.eos);
  return ids;
}

std::size_t Tokenizer::least_tokens(std::string_view text) const {
  const Parts& p = *parts_;
  std::size_t n = text.size();
  if (normalizes()) {
    // encode() converts the text to form C, whose bytes differ from the text's. If some byte has no token, a lower
    // bound cannot be computed from the text.
    if (!p.always_in_token.all()) return 0;
    n = (n + kMostNfcShrinks - 1) / kMostNfcShrinks;
  } else if (!p.always_in_token.all())
    n = static_cast<std::size_t>(
        std::ranges::count_if(text, [&](char c) { return p.always_in_token[static_cast<std::uint8_t>(c)]; }));
  return (n + p.max_token_bytes - 1) / p.max_token_bytes;
}

Result<std::string> Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  const Parts& p = *parts_;
  std::string out;
  bool at_start = true;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const TokenId id = ids[i];
    if (!contains(id))
      return fail(StatusCode::kInvalidArgument, "[tokenizer] ids[{}]: an id below {} wanted, {} there", i, n_vocab(),
                  id);
    std::string_view bytes = p.bytes_of(id);
    if (skip_special && is_special(id)) bytes = {};
    const bool starts = starts_text(id);
    if (at_start && !starts && p.add_space_prefix && bytes.starts_with(' ')) bytes.remove_prefix(1);
    out.append(bytes);
    at_start = starts;
  }
  return out;
}

std::size_t Tokenizer::n_vocab() const {
  return parts_->vocab.size();
}
std::optional<std::int32_t> Tokenizer::bos_id() const {
  return parts_->roles.bos;
}
std::optional<std::int32_t> Tokenizer::eos_id() const {
  return parts_->roles.eos;
}
std::optional<std::int32_t> Tokenizer::eot_id() const {
  return parts_->roles.eot;
}
std::optional<std::int32_t> Tokenizer::eom_id() const {
  return parts_->roles.eom;
}
std::optional<std::int32_t> Tokenizer::unk_id() const {
  return parts_->roles.unk;
}
std::optional<std::int32_t> Tokenizer::pad_id() const {
  return parts_->roles.pad;
}
bool Tokenizer::adds_bos() const {
  return parts_->add_bos;
}
bool Tokenizer::adds_eos() const {
  return parts_->add_eos;
}
bool Tokenizer::normalizes() const {
  return parts_->pre_rule != nullptr && parts_->pre_rule->nfc;
}
bool Tokenizer::adds_space_prefix() const {
  return parts_->add_space_prefix;
}

bool Tokenizer::is_special(std::int32_t id) const {
  return contains(id) && is_marker(parts_->vocab.type(id));
}

bool Tokenizer::is_end_of_generation(std::int32_t id) const {
  const std::vector<TokenId>& ends = parts_->roles.end_of_generation;
  return std::binary_search(ends.begin(), ends.end(), id);
}

bool Tokenizer::starts_text(std::int32_t id) const {
  return is_special(id) || (contains(id) && parts_->vocab.type(id) == TokenType::kUserDefined);
}

std::string_view Tokenizer::token_text(std::int32_t id) const {
  return contains(id) ? parts_->vocab.text(id) : std::string_view();
}

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
  return contains(id) ? parts_->bytes_of(id) : std::string_view();
}

std::optional<std::int32_t> Tokenizer::find(std::string_view token_text) const {
  return parts_->vocab.find(token_text);
}

std::vector<std::int32_t> Tokenizer::end_of_generation_ids() const {
  return parts_->roles.end_of_generation;
}

std::string_view Tokenizer::model() const {
  return parts_->model_name;
}

std::string_view Tokenizer::pre_tokenizer_name() const {
  return parts_->pre_rule != nullptr ? parts_->pre_rule->name : std::string_view();
}

}  // namespace zinc_rt

#include "tokenizer/vocab.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/error.h"

namespace zinc_rt {
namespace {

std::uint32_t hash_of(std::string_view text) {
  const std::uint64_t hash = std::hash<std::string_view>{}(text);  // std::size_t has 32 bits on some systems
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";

Status check_length(std::string_view key, std::size_t n, std::size_t n_tokens) {
  if (n == n_tokens) return {};
  return fail(StatusCode::kCorrupt, "[tokenizer] {}: {} entries wanted (one a token), {} there", key, n_tokens, n);
}

}  // namespace

void StringTable::reserve(std::size_t n_strings, std::size_t n_bytes) {
  bytes_.reserve(n_bytes);
  ends_.reserve(n_strings + 1);
  std::size_t n_slots = 16;
  while (n_slots < 2 * n_strings) n_slots *= 2;
  if (n_slots > slots_.size()) grow(n_slots);
}

void StringTable::grow(std::size_t n_slots) {
  std::vector<Slot> old(n_slots);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.number_plus_one == 0) continue;
    std::size_t at = slot.hash & (n_slots - 1);
    while (slots_[at].number_plus_one != 0) at = (at + 1) & (n_slots - 1);
    slots_[at] = slot;
  }
}

std::uint32_t StringTable::add(std::string_view text) {
  const auto number = static_cast<std::uint32_t>(size());
  if (slots_.size() < 2 * (size() + 1)) grow(std::max<std::size_t>(16, 2 * slots_.size()));
  const std::uint32_t hash = hash_of(text);
  std::size_t at = hash & (slots_.size() - 1);
  bool known = false;
  while (slots_[at].number_plus_one != 0 && !known) {
    known = slots_[at].hash == hash && (*this)[slots_[at].number_plus_one - 1] == text;
    at = (at + 1) & (slots_.size() - 1);
  }
  bytes_.append(text);
  ends_.push_back(bytes_.size());
  if (!known) slots_[at] = {number + 1, hash};
  return number;
}

std::optional<std::uint32_t> StringTable::find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t hash = hash_of(text);
  for (std::size_t at = hash & (slots_.size() - 1); slots_[at].number_plus_one != 0;
       at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash == hash && (*this)[slots_[at].number_plus_one - 1] == text)
      return slots_[at].number_plus_one - 1;
  }
  return std::nullopt;
}

Result<Vocab> Vocab::from_metadata(const gguf::Metadata& metadata, std::size_t n_rows) {
  ZRT_TRY(const auto all_tokens, metadata.get_strings(kTokensKey));
  const auto tokens = all_tokens.first(std::min(all_tokens.size(), n_rows));
  if (tokens.empty()) return fail(StatusCode::kCorrupt, "[tokenizer] {}: at least 1 token wanted, 0 there", kTokensKey);
  if (tokens.size() > static_cast<std::size_t>(std::numeric_limits<TokenId>::max()))
    return fail(StatusCode::kCorrupt, "[tokenizer] {}: at most {} tokens wanted, {} there", kTokensKey,
                std::numeric_limits<TokenId>::max(), tokens.size());

  Vocab vocab;
  std::size_t n_bytes = 0;
  for (const std::string& token : tokens) n_bytes += token.size();
  vocab.texts_.reserve(tokens.size(), n_bytes);
  for (const std::string& token : tokens) {
    vocab.texts_.add(token);
    vocab.max_text_bytes_ = std::max(vocab.max_text_bytes_, token.size());
  }

  const auto n = static_cast<std::ptrdiff_t>(tokens.size());
  vocab.scores_.assign(tokens.size(), 0.0f);
  if (metadata.contains(kScoresKey)) {
    ZRT_TRY(const auto scores, metadata.get_floats(kScoresKey));
    ZRT_CHECK_OK(check_length(kScoresKey, scores.size(), all_tokens.size()));
    std::transform(scores.begin(), scores.begin() + n, vocab.scores_.begin(),
                   [](double s) { return static_cast<float>(s); });
    vocab.has_scores_ = true;
  }

  vocab.types_.assign(tokens.size(), TokenType::kNormal);
  if (metadata.contains(kTypesKey)) {
    ZRT_TRY(const auto types, metadata.get_ints(kTypesKey));
    ZRT_CHECK_OK(check_length(kTypesKey, types.size(), all_tokens.size()));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (types[i] < 0 || types[i] > static_cast<std::int64_t>(TokenType::kByte))
        return fail(StatusCode::kCorrupt, "[tokenizer] {}[{}]: a type from 0 to 6 wanted, {} there", kTypesKey, i,
                    types[i]);
      vocab.types_[i] = static_cast<TokenType>(types[i]);
    }
  }
  return vocab;
}

std::optional<TokenId> Vocab::find(std::string_view text) const {
  const auto number = texts_.find(text);
  if (!number) return std::nullopt;
  return static_cast<TokenId>(*number);
}

std::optional<TokenId> Vocab::find_byte(std::uint8_t byte) const {
  constexpr char kHex[] = "0123456789ABCDEF";
  const char name[] = {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
  if (const auto id = find({name, sizeof(name)})) return id;
  const char itself = static_cast<char>(byte);
  return find({&itself, 1});
}

std::optional<std::uint8_t> parse_byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(3, 2)) {
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<unsigned>(c - 'A') + 10;
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a') + 10;
    } else {
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return static_cast<std::uint8_t>(value);
}

}  // namespace zinc_rt

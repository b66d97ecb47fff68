#include "tokenizer/bpe.h"

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"

namespace zinc_rt {
namespace {

char32_t first_character(std::string_view text) {
  const std::size_t n = utf8_sequence_bytes(text.substr(0, 4));
  return n == 0 ? 0 : utf8_code_point(text.substr(0, n));
}

char32_t last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && text.size() - begin < 4 && (static_cast<std::uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return first_character(text.substr(begin));
}

}  // namespace

std::size_t Bpe::slot_of(std::uint64_t pair) const {
  std::uint64_t hash = pair * 0x9E3779B97F4A7C15u;
  std::size_t at = (hash ^ hash >> 32) & (slots_.size() - 1);
  while (slots_[at].pair != pair && slots_[at].pair != kFree) at = (at + 1) & (slots_.size() - 1);
  return at;
}

std::int32_t Bpe::symbol_of(const Vocab& vocab, std::string_view text) const {
  if (const auto id = vocab.find(text)) return *id;
  if (const auto number = extra_.find(text)) return n_tokens_ + static_cast<std::int32_t>(*number);
  return -1;
}

std::int32_t Bpe::intern(const Vocab& vocab, std::string_view text) {
  const std::int32_t known = symbol_of(vocab, text);
  return known >= 0 ? known : n_tokens_ + static_cast<std::int32_t>(extra_.add(text));
}

Result<Bpe> Bpe::create(const Vocab& vocab, std::span<const std::string> merges, BpeAlphabet alphabet) {
  Bpe bpe;
  bpe.alphabet_ = alphabet;
  bpe.n_tokens_ = static_cast<std::int32_t>(vocab.size());
  // Each merge adds at most 3 texts that are not in the vocabulary.
  const std::size_t most = (0x7FFFFFFFu - vocab.size()) / 3 - 256;
  if (merges.size() > most)
    return fail(StatusCode::kCorrupt, "[tokenizer] tokenizer.ggml.merges: at most {} wanted, {} there", most,
                merges.size());
  std::size_t n_slots = 16;
  while (n_slots < 2 * merges.size()) n_slots *= 2;
  bpe.slots_.resize(n_slots);
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view line = merges[rank];
    const std::size_t space = line.empty() ? std::string_view::npos : line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size())
      return fail(StatusCode::kCorrupt,
                  "[tokenizer] tokenizer.ggml.merges[{}]: two texts with a space between wanted, \"{}\" there", rank,
                  replace_invalid_utf8(line.substr(0, 64)));
    const std::string_view left = line.substr(0, space);
    const std::string_view right = line.substr(space + 1);
    joined.assign(left).append(right);
    const std::uint64_t pair = pair_of(bpe.intern(vocab, left), bpe.intern(vocab, right));
    Slot& slot = bpe.slots_[bpe.slot_of(pair)];
    if (slot.pair == kFree) slot = {pair, {static_cast<std::uint32_t>(rank), bpe.intern(vocab, joined)}};
    if (alphabet == BpeAlphabet::kCharacters) bpe.pairs_.add(last_character(left), first_character(right));
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    if (alphabet == BpeAlphabet::kBytes) {
      std::string text;
      append_utf8(text, byte_to_char(value));
      bpe.byte_symbol_[byte] = bpe.intern(vocab, text);
      bpe.byte_token_[byte] = vocab.find(text).value_or(-1);
    } else {
      const char text = static_cast<char>(value);
      bpe.byte_symbol_[byte] = byte < 0x80 ? bpe.symbol_of(vocab, {&text, 1}) : -1;
      bpe.byte_token_[byte] = vocab.find_byte(value).value_or(-1);
    }
  }
  return bpe;
}

void Bpe::append_bytes(std::string_view bytes, TokenId unknown, std::vector<TokenId>& out) const {
  for (const char c : bytes) {
    const TokenId id = byte_token_[static_cast<std::uint8_t>(c)];
    if (id >= 0) {
      out.push_back(id);
    } else if (unknown >= 0) {
      out.push_back(unknown);
    }
  }
}

bool Bpe::encode(const Vocab& vocab, std::string_view piece, TokenId unknown, MergeTextScratch& scratch,
                 std::vector<TokenId>& out, EncodeWatch& watch) const {
  const auto first_symbol = [&](std::string_view text, std::uint32_t at) -> Merged {
    const auto first = static_cast<std::uint8_t>(text[at]);
    if (alphabet_ == BpeAlphabet::kBytes) return {at, 1, byte_symbol_[first]};
    const auto n = static_cast<std::uint32_t>(std::max<std::size_t>(1, utf8_sequence_bytes(text.substr(at, 4))));
    return {at, n, n == 1 ? byte_symbol_[first] : symbol_of(vocab, text.substr(at, n))};
  };
  const auto join = [&](const Symbol& left, const Symbol& right, Merge& merge) {
    if (left.id < 0 || right.id < 0) return false;
    const Slot& slot = slots_[slot_of(pair_of(left.id, right.id))];
    merge = slot.merge;
    return slot.pair != kFree;
  };
  const auto stop = [&](std::size_t bytes, std::size_t n) { return watch.over(bytes, out.size() + n); };
  if (!merge_text(piece, scratch, first_symbol, join, stop)) return false;
  for (const Merged& symbol : scratch.done) {
    if (symbol.id >= 0 && symbol.id < n_tokens_) {
      out.push_back(symbol.id);
    } else {
      append_bytes(piece.substr(symbol.begin, symbol.bytes), unknown, out);
    }
  }
  return true;
}

}  // namespace zinc_rt

// Implements Tokenizer::from_metadata, which reads the tokenizer's keys of a model file.
#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/pre_choice.h"
#include "tokenizer/tokenizer_parts.h"
#include "tokenizer/wordpiece.h"

namespace zinc_rt {
namespace {

struct ModelRow {
  std::string_view name;
  TokenizerModel model;
};
constexpr ModelRow kModels[] = {{"gpt2", TokenizerModel::kGpt2},
                                {"llama", TokenizerModel::kLlama},
                                {"gemma4", TokenizerModel::kGemma4},
                                {"bert", TokenizerModel::kBert}};

// Returns whether this is Gemma 4's vocabulary, which uses merges. Some files name the model "llama" for it, as for
// earlier Gemma vocabularies, but its scores do not define an order of merges.
bool is_gemma4(const gguf::Metadata& metadata) {
  const auto is = [&](std::string_view key, std::string_view wanted) {
    const auto said = metadata.get_string_or(key, "");
    return said && *said == wanted;
  };
  return metadata.contains("tokenizer.ggml.merges") &&
         (is("tokenizer.ggml.pre", "gemma4") || is("general.architecture", "gemma4"));
}

Result<const ModelRow*> find_model(const gguf::Metadata& metadata) {
  ZRT_TRY(std::string_view name, metadata.get_string("tokenizer.ggml.model"));
  if (name == "llama" && is_gemma4(metadata)) name = "gemma4";
  std::string known;
  for (const ModelRow& row : kModels) {
    if (row.name == name) return &row;
    if (!known.empty()) known += ", ";
    known += row.name;
  }
  return fail(StatusCode::kInvalidArgument, "[tokenizer] tokenizer.ggml.model \"{}\" is not supported; known: {}", name,
              known);
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

// Returns the bytes that a token adds to decoded text.
std::string decoded_bytes(const Vocab& vocab, TokenId id, TokenizerModel model) {
  const std::string_view text = vocab.text(id);
  switch (vocab.type(id)) {
    case TokenType::kControl:
    case TokenType::kUnknown:
    case TokenType::kUserDefined: return std::string(text);
    case TokenType::kByte:
      if (const auto byte = parse_byte_token(text)) return std::string(1, static_cast<char>(*byte));
      break;
    default: break;
  }
  return model == TokenizerModel::kGpt2 ? from_byte_alphabet(text) : replace_all(text, kSpaceMark, " ");
}

// Sets the ids that SentencePiece uses by default for BOS, EOS and unknown, if the file lacks the keys.
void default_spm_roles(const Vocab& vocab, TokenRoles& roles) {
  const auto special = [&](TokenId id) -> std::optional<TokenId> {
    if (!vocab.contains(id)) return std::nullopt;
    const TokenType type = vocab.type(id);
    return type == TokenType::kControl || type == TokenType::kUnknown ? std::optional(id) : std::nullopt;
  };
  if (!roles.unk) roles.unk = special(0);
  if (!roles.bos) roles.bos = special(1);
  if (!roles.eos) {
    roles.eos = special(2);
    auto& ends = roles.end_of_generation;
    if (roles.eos && std::find(ends.begin(), ends.end(), *roles.eos) == ends.end())
      ends.insert(std::upper_bound(ends.begin(), ends.end(), *roles.eos), *roles.eos);
  }
}

// Returns whether this is Phi-3, whose special tokens, except three, remove the white space after them. No key says so.
bool phi3_strips(const gguf::Metadata& metadata, TokenizerModel model) {
  if (model != TokenizerModel::kLlama) return false;
  const auto architecture = metadata.get_string_or("general.architecture", "");
  if (architecture && *architecture == "phi3") return true;
  const auto name = metadata.get_string_or("general.name", "");
  if (!name) return false;
  std::string lower(*name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.find("phi-3") != std::string::npos || lower.find("phi3") != std::string::npos;
}

std::vector<SpecialTokens::Entry> special_entries(const gguf::Metadata& metadata, const Vocab& vocab,
                                                  TokenizerModel model) {
  const bool strips = phi3_strips(metadata, model);
  std::vector<SpecialTokens::Entry> entries;
  for (std::size_t i = 0; i < vocab.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const TokenType type = vocab.type(id);
    const bool on_request = type == TokenType::kControl || type == TokenType::kUnknown;
    if (!on_request && type != TokenType::kUserDefined) continue;
    const std::string_view text = vocab.text(id);
    const bool strip_right = strips && text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
    entries.push_back({text, id, on_request, strip_right});
  }
  return entries;
}

// Returns the set of byte values that are never lost when a text is encoded. least_tokens() counts these bytes of a
// text.
std::bitset<256> bytes_always_in_token(const Vocab& vocab, TokenizerModel model, bool has_unknown, bool drops_space) {
  std::bitset<256> out;
  if (model == TokenizerModel::kBert) return out;  // a word of any length may become one unknown token
  for (unsigned value = 0; value < 256; ++value) {
    const auto byte = static_cast<std::uint8_t>(value);
    if (drops_space && is_space(static_cast<char>(byte))) continue;
    std::string text;
    append_utf8(text, byte_to_char(byte));
    // kLlama drops a whole character if one of its bytes has no token, unless the vocabulary has an unknown token.
    // Byte-level models have no unknown token.
    out[value] = model == TokenizerModel::kGpt2 ? vocab.find(text).has_value()
                                                : has_unknown || (byte < 0x80 && vocab.find_byte(byte).has_value());
  }
  return out;
}

}  // namespace

Result<Tokenizer> Tokenizer::from_metadata(const gguf::Metadata& metadata, std::size_t n_rows) {
  auto parts = std::make_shared<Parts>();
  Parts& p = *parts;
  ZRT_TRY(const ModelRow* const model, find_model(metadata));
  p.model = model->model;
  p.model_name = model->name;
  ZRT_TRY(p.vocab, Vocab::from_metadata(metadata, n_rows));
  ZRT_TRY(p.roles, read_token_roles(metadata, p.vocab));

  if (p.model == TokenizerModel::kBert) {
    ZRT_CHECK_OK(read_bert_roles(metadata, p.vocab, p.roles));
    ZRT_CHECK_OK(check_wordpiece(p.vocab));
    p.add_space_prefix = true;
  } else if (p.model == TokenizerModel::kLlama) {
    default_spm_roles(p.vocab, p.roles);
    ZRT_TRY(p.spm, Spm::create(p.vocab));
    p.add_bos = true;
    ZRT_TRY(p.add_space_prefix, metadata.get_bool_or("tokenizer.ggml.add_space_prefix", true));
    ZRT_TRY(p.remove_extra_whitespaces, metadata.get_bool_or("tokenizer.ggml.remove_extra_whitespaces", false));
  } else {
    ZRT_TRY(const auto merges, metadata.get_strings("tokenizer.ggml.merges"));
    const bool bytes = p.model == TokenizerModel::kGpt2;
    ZRT_TRY(p.bpe, Bpe::create(p.vocab, merges, bytes ? BpeAlphabet::kBytes : BpeAlphabet::kCharacters));
    if (bytes) {
      ZRT_TRY(p.pre_rule, choose_pre_rule(metadata, p.vocab));
      ZRT_TRY(p.pretokenizer, Pretokenizer::create(*p.pre_rule));
      p.add_bos = p.pre_rule->add_bos;
    }
  }
  const bool bos_by_default = p.add_bos;
  ZRT_TRY(p.add_bos, metadata.get_bool_or("tokenizer.ggml.add_bos_token", p.add_bos));
  ZRT_TRY(p.add_eos, metadata.get_bool_or("tokenizer.ggml.add_eos_token", false));
  // Gemma 4 does not work without BOS, although some files say that none is added.
  if (p.model == TokenizerModel::kGemma4) p.add_bos = true;
  // BERT needs a special token before and after each text. Files say so with different keys or not at all.
  if (p.model == TokenizerModel::kBert) p.add_bos = p.add_eos = true;
  if (p.add_bos && !p.roles.bos) {
    if (!bos_by_default && p.model != TokenizerModel::kGemma4)
      return fail(StatusCode::kCorrupt, "[tokenizer] tokenizer.ggml.add_bos_token is true, but bos_token_id is absent");
    p.add_bos = false;
  }
  if (p.add_eos && !p.roles.eos)
    return fail(StatusCode::kCorrupt, "[tokenizer] tokenizer.ggml.add_eos_token is true, but eos_token_id is absent");

  const auto entries = special_entries(metadata, p.vocab, p.model);
  const bool drops_space =
      p.remove_extra_whitespaces || std::ranges::any_of(entries, &SpecialTokens::Entry::strip_right);
  p.always_in_token = bytes_always_in_token(p.vocab, p.model, p.roles.unk.has_value(), drops_space);
  p.special_tokens.fill(entries);
  p.byte_ends.reserve(p.vocab.size() + 1);
  p.byte_ends.push_back(0);
  for (std::size_t i = 0; i < p.vocab.size(); ++i) {
    p.bytes += decoded_bytes(p.vocab, static_cast<TokenId>(i), p.model);
    p.byte_ends.push_back(p.bytes.size());
    // A token of a byte-level vocabulary is spelled with more bytes than it represents, so the length of the bytes it
    // represents is used. For other models the spelling is the text, in which U+2581 counts as one character.
    const auto id = static_cast<TokenId>(i);
    const auto text = p.model == TokenizerModel::kGpt2 ? p.bytes_of(id) : p.vocab.text(id);
    p.max_token_bytes = std::max(p.max_token_bytes, text.size());
  }
  return Tokenizer(std::move(parts));
}

}  // namespace zinc_rt

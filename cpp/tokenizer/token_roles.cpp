#include "tokenizer/token_roles.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.h"

namespace zinc_rt {
namespace {

enum class Role : std::uint8_t { kEndOfTurn, kEndOfMessage, kEndOnly };

struct KnownName {
  std::string_view text;
  Role role;
  bool may_be_text;  // the name may occur in ordinary text, so a normal token with this name stays normal
};

// Tokens with the following well-known names end a turn of the chat, a message or a generation, even if no key of the
// file says so. If no key names the token that ends a turn, the first name with this role that is in the vocabulary is
// used.
constexpr KnownName kKnownNames[] = {
    {"<|eot_id|>", Role::kEndOfTurn, false},
    {"<|im_end|>", Role::kEndOfTurn, false},
    {"<|end|>", Role::kEndOfTurn, false},
    {"<end_of_turn>", Role::kEndOfTurn, false},
    {"<turn|>", Role::kEndOfTurn, false},
    {"<end_of_utterance>", Role::kEndOfTurn, false},
    {"<|eom_id|>", Role::kEndOfMessage, false},
    {"<|endoftext|>", Role::kEndOfTurn, false},
    {"<|end_of_text|>", Role::kEndOfTurn, false},
    {"<\uFF5Cend\u2581of\u2581sentence\uFF5C>", Role::kEndOfTurn, false},
    {"<EOT>", Role::kEndOfTurn, true},
    {"_<EOT>", Role::kEndOfTurn, true},
    {"[EOT]", Role::kEndOfTurn, true},
    {"[EOS]", Role::kEndOnly, true},
    {"<eos>", Role::kEndOnly, true},
    {"</s>", Role::kEndOnly, true},
    {"<|return|>", Role::kEndOnly, false},
    {"<|call|>", Role::kEndOnly, false},
    {"<|calls|>", Role::kEndOnly, false},
    {"<|flush|>", Role::kEndOnly, false},
    {"<|tool_response>", Role::kEndOnly, false},
    {"<|fim_pad|>", Role::kEndOnly, false},
    {"<|repo_name|>", Role::kEndOnly, false},
    {"<|file_sep|>", Role::kEndOnly, false},
};

// Checks the value of a *_token_id key. Returns nullopt if the value means that the model has no such token.
Result<std::optional<TokenId>> check_id(std::string_view key, std::int64_t id, const Vocab& vocab) {
  if (id == -1 || id == 0xFFFFFFFF) return std::nullopt;
  if (!vocab.contains(id))
    return fail(StatusCode::kCorrupt, "[tokenizer] {}: an id below {} wanted, {} there", key, vocab.size(), id);
  return static_cast<TokenId>(id);
}

Result<std::optional<TokenId>> read_id(const gguf::Metadata& metadata, std::string_view name, const Vocab& vocab) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  if (!metadata.contains(key)) return std::nullopt;
  ZRT_TRY(const std::int64_t id, metadata.get_int(key));
  return check_id(key, id, vocab);
}

// Reads the list of tokens that end a generation. Some files have this list besides the keys for single tokens.
Result<std::vector<TokenId>> read_ends(const gguf::Metadata& metadata, const Vocab& vocab) {
  constexpr std::string_view kKey = "tokenizer.ggml.eos_token_ids";
  std::vector<TokenId> out;
  if (!metadata.contains(kKey)) return out;
  ZRT_TRY(const auto ids, metadata.get_ints(kKey));
  for (const std::int64_t one : ids) {
    ZRT_TRY(const auto id, check_id(kKey, one, vocab));
    if (id) out.push_back(*id);
  }
  return out;
}

}  // namespace

Result<TokenRoles> read_token_roles(const gguf::Metadata& metadata, Vocab& vocab) {
  TokenRoles roles;
  ZRT_TRY(roles.bos, read_id(metadata, "bos", vocab));
  ZRT_TRY(roles.eos, read_id(metadata, "eos", vocab));
  ZRT_TRY(roles.eot, read_id(metadata, "eot", vocab));
  ZRT_TRY(roles.eom, read_id(metadata, "eom", vocab));
  ZRT_TRY(roles.unk, read_id(metadata, "unknown", vocab));
  ZRT_TRY(roles.pad, read_id(metadata, "padding", vocab));

  ZRT_TRY(const auto listed_ends, read_ends(metadata, vocab));
  if (!roles.eos && !listed_ends.empty()) roles.eos = listed_ends.front();

  std::vector<TokenId>& ends = roles.end_of_generation;
  for (const KnownName& name : kKnownNames) {
    const auto id = vocab.find(name.text);
    if (!id) continue;
    const TokenType type = vocab.type(*id);
    if (type == TokenType::kUserDefined || (type == TokenType::kNormal && !name.may_be_text)) {
      vocab.set_type(*id, TokenType::kControl);
    } else if (type != TokenType::kControl) {
      continue;
    }
    ends.push_back(*id);
    if (name.role == Role::kEndOfTurn && !roles.eot) roles.eot = id;
    if (name.role == Role::kEndOfMessage && !roles.eom) roles.eom = id;
  }

  const auto has_end = [&](std::string_view text) {
    const auto id = vocab.find(text);
    return id && std::find(ends.begin(), ends.end(), *id) != ends.end();
  };
  // In formats with channels, <|end|> ends only one message, and a turn may have several messages. So it ends no
  // generation.
  const bool calls = has_end("<|call|>") || has_end("<|calls|>");
  if (calls && (has_end("<|return|>") || has_end("<|flush|>")) && has_end("<|end|>")) {
    const TokenId end = *vocab.find("<|end|>");
    std::erase(ends, end);
    if (roles.eot == end) roles.eot.reset();
  }
  // In formats whose turns end with <turn|>, "</s>" is an HTML tag and not an end token.
  if (has_end("<|tool_response>") && has_end("</s>")) {
    const TokenId tag = *vocab.find("</s>");
    std::erase(ends, tag);
    vocab.set_type(tag, TokenType::kNormal);
  }
  for (const auto id : {roles.eos, roles.eot, roles.eom}) {
    if (id) ends.push_back(*id);
  }
  ends.insert(ends.end(), listed_ends.begin(), listed_ends.end());
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return roles;
}

Status read_bert_roles(const gguf::Metadata& metadata, const Vocab& vocab, TokenRoles& roles) {
  const struct {
    std::optional<TokenId>& role;
    std::string_view key, text;
  } rows[] = {{roles.bos, "cls", "[CLS]"},
              {roles.eos, "seperator", "[SEP]"},  // GGUF misspells this key
              {roles.unk, "unknown", "[UNK]"}};
  for (const auto& [role, key, text] : rows) {
    ZRT_TRY(const auto id, read_id(metadata, key, vocab));
    if (id) role = id;
    if (!role) role = vocab.find(text);
    if (!role)
      return fail(StatusCode::kNotFound,
                  "[tokenizer] neither the key tokenizer.ggml.{}_token_id nor a token {} is there", key, text);
  }
  return {};
}

}  // namespace zinc_rt

#include "grammar/vocabulary.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace zinc_rt::grammar {
namespace {

constexpr std::size_t kMaxTokenBytes = 65'000;
constexpr std::size_t kMaxTokens = std::size_t{1} << 24;

// Returns the number of characters if all of them are plain (may occur unescaped in a JSON string), else 0.
std::size_t plain_characters(std::string_view text) {
  std::size_t n = 0;
  for (; !text.empty(); ++n) {
    const auto first = static_cast<std::uint8_t>(text[0]);
    const std::size_t n_bytes = utf8_sequence_bytes(text);
    if (n_bytes == 0 || first < 0x20 || first == 0x7F || first == '"' || first == '\\') return 0;
    text.remove_prefix(n_bytes);
  }
  return n;
}

}  // namespace

Result<std::shared_ptr<const Vocabulary>> Vocabulary::make(std::vector<std::string> tokens,
                                                           std::vector<std::int32_t> end_ids) {
  if (tokens.size() > kMaxTokens)
    return fail(StatusCode::kInvalidArgument, "[vocabulary] at most {} tokens wanted, {} there", kMaxTokens,
                tokens.size());
  auto made = std::make_shared<Vocabulary>();
  Vocabulary& v = *made;
  v.n_tokens_ = tokens.size();
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() > kMaxTokenBytes)
      return fail(StatusCode::kInvalidArgument, "[vocabulary] token {}: at most {} bytes wanted, {} there", id,
                  kMaxTokenBytes, tokens[id].size());
    v.text_ += tokens[id];
    v.text_ends_.push_back(static_cast<std::uint32_t>(v.text_.size()));
    if (!tokens[id].empty()) v.tree_tokens_.push_back(static_cast<std::int32_t>(id));
  }
  for (const std::int32_t id : end_ids) {
    if (!v.contains(id))
      return fail(StatusCode::kInvalidArgument, "[vocabulary] an end token below {} wanted, {} there", v.n_tokens_, id);
  }
  std::ranges::sort(end_ids);
  v.end_ids_ = std::move(end_ids);

  std::ranges::sort(v.tree_tokens_, [&](std::int32_t a, std::int32_t b) {
    const int order = v.bytes(a).compare(v.bytes(b));
    return order != 0 ? order < 0 : a < b;
  });
  v.nodes_.push_back({0, 0, 0, 0, 0});
  std::vector<std::uint32_t> path = {0};  // nodes from the root to the previous token
  std::string_view last;
  for (std::uint32_t i = 0; i < v.tree_tokens_.size(); ++i) {
    const std::string_view bytes = v.bytes(v.tree_tokens_[i]);
    const auto same = static_cast<std::size_t>(std::ranges::mismatch(bytes, last).in1 - bytes.begin());
    while (path.size() > same + 1) {
      v.nodes_[path.back()].end = static_cast<std::uint32_t>(v.nodes_.size());
      path.pop_back();
    }
    for (std::size_t depth = same; depth < bytes.size(); ++depth) {
      path.push_back(static_cast<std::uint32_t>(v.nodes_.size()));
      v.nodes_.push_back({0, i, static_cast<std::uint16_t>(depth + 1), static_cast<std::uint8_t>(bytes[depth]), 0});
    }
    v.max_depth_ = std::max(v.max_depth_, static_cast<std::uint16_t>(bytes.size()));
    last = bytes;
  }
  for (const std::uint32_t node : path) v.nodes_[node].end = static_cast<std::uint32_t>(v.nodes_.size());
  const auto n_nodes = static_cast<std::uint32_t>(v.nodes_.size());
  v.nodes_.push_back({n_nodes, static_cast<std::uint32_t>(v.tree_tokens_.size()), 0, 0, 0});
  v.find_plain();
  return made;
}

Result<std::shared_ptr<const Vocabulary>> Vocabulary::make(const Tokenizer& tokenizer) {
  std::vector<std::string> tokens(tokenizer.n_vocab());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const auto token = static_cast<std::int32_t>(id);
    if (!tokenizer.is_special(token) && !tokenizer.is_end_of_generation(token))
      tokens[id] = tokenizer.token_bytes(token);
  }
  return make(std::move(tokens), tokenizer.end_of_generation_ids());
}

void Vocabulary::find_plain() {
  for (auto& words : plain_tokens_) words.assign(n_mask_words(), 0);
  for (std::uint32_t number = n_nodes(); number-- > 0;) {
    Node& node = nodes_[number];
    for (const std::int32_t token : tokens_at(number)) {
      const std::size_t n = plain_characters(bytes(token));
      const auto group = static_cast<std::uint8_t>(std::min(n, kPlainGroups) - 1);
      for (std::size_t i = group; n > 0 && i < plain_tokens_.size(); ++i)
        plain_tokens_[i][static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
      node.plain = std::max(node.plain, n > 0 ? group : kNotPlain);
    }
    for (std::uint32_t child = number + 1; child < node.end; child = nodes_[child].end)
      node.plain = std::max(node.plain, nodes_[child].plain);
  }
}

bool Vocabulary::is_end(std::int32_t id) const {
  return std::ranges::binary_search(end_ids_, id);
}

}  // namespace zinc_rt::grammar

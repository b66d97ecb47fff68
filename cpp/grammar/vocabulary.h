// A model's tokens for a grammar: the bytes of each, in a tree that shares common beginnings.
// Thread rule: immutable once made; shared by all matchers of a model.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "zinc_rt/status.h"

namespace zinc_rt::grammar {

class Vocabulary {
 public:
  // tokens[id]: the token's bytes; empty for a token that is not text (control tokens), which a grammar can name only
  // by id. end_ids: the tokens that end a generation. Errors: kInvalidArgument for an id outside the vocabulary, a
  // token longer than 65,000 bytes, and more than 2^24 tokens.
  static Result<std::shared_ptr<const Vocabulary>> make(std::vector<std::string> tokens,
                                                        std::vector<std::int32_t> end_ids);
  // Control and unknown tokens have no bytes; user-defined tokens have theirs.
  static Result<std::shared_ptr<const Vocabulary>> make(const Tokenizer& tokenizer);

  std::size_t size() const { return n_tokens_; }
  std::size_t n_mask_words() const { return (n_tokens_ + 31) / 32; }
  bool contains(std::int32_t id) const { return id >= 0 && static_cast<std::size_t>(id) < n_tokens_; }
  // REQUIRES: contains(id).
  std::string_view bytes(std::int32_t id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(text_).substr(text_ends_[i], text_ends_[i + 1] - text_ends_[i]);
  }
  std::span<const std::int32_t> end_ids() const { return end_ids_; }
  bool is_end(std::int32_t id) const;

  // Nodes in the order of a depth-first walk: a node, then everything below it. Node 0 is the root.
  std::uint32_t n_nodes() const { return static_cast<std::uint32_t>(nodes_.size() - 1); }
  struct Node {
    std::uint32_t end;          // the first node that is not below this one
    std::uint32_t first_token;  // of tree_tokens(): those of this node end where those of the next begin
    std::uint16_t depth;        // bytes from the root
    std::uint8_t byte;
    std::uint8_t plain;  // every token here and below is in plain_tokens() of this number; kNotPlain: not so
  };
  const Node& node(std::uint32_t number) const { return nodes_[number]; }
  std::span<const std::int32_t> tokens_at(std::uint32_t number) const {
    return std::span(tree_tokens_)
        .subspan(nodes_[number].first_token, nodes_[number + 1].first_token - nodes_[number].first_token);
  }
  std::uint16_t max_depth() const { return max_depth_; }

  // Most tokens are plain: whole characters that a JSON string holds unescaped. Group i has the plain tokens of at most
  // i + 1 characters, the last group all of them. One bit per token.
  static constexpr std::size_t kPlainGroups = 33;
  static constexpr std::uint8_t kNotPlain = 255;
  const std::vector<std::uint32_t>& plain_tokens(std::size_t group) const { return plain_tokens_[group]; }

 private:
  void find_plain();
  std::size_t n_tokens_ = 0;
  std::string text_;
  std::vector<std::uint32_t> text_ends_ = {0};
  std::vector<std::int32_t> end_ids_;      // ascending
  std::vector<std::int32_t> tree_tokens_;  // ordered by their bytes
  std::vector<Node> nodes_;                // and one past the last
  std::uint16_t max_depth_ = 0;
  std::array<std::vector<std::uint32_t>, kPlainGroups> plain_tokens_;
};

}  // namespace zinc_rt::grammar

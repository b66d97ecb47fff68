// Vocabulary holds a model's tokens for grammars: the bytes of each, in a tree that shares common beginnings.
// Thread rule: immutable after creation; shared by all matchers of a model.
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
  // Creates a vocabulary. tokens[id] is the token's bytes; it is empty for a token that is not text (a control token),
  // which a grammar can name only by id. end_ids are the tokens that end a generation. Errors: kInvalidArgument for an
  // id outside the vocabulary, a token longer than 65,000 bytes, and more than 2^24 tokens.
  static Result<std::shared_ptr<const Vocabulary>> make(std::vector<std::string> tokens,
                                                        std::vector<std::int32_t> end_ids);
  // Creates the vocabulary of a tokenizer. Control and unknown tokens get no bytes; user-defined tokens get theirs.
  static Result<std::shared_ptr<const Vocabulary>> make(const Tokenizer& tokenizer);

  std::size_t size() const { return n_tokens_; }
  std::size_t n_mask_words() const { return (n_tokens_ + 31) / 32; }
  bool contains(std::int32_t id) const { return id >= 0 && static_cast<std::size_t>(id) < n_tokens_; }
  // Returns the bytes of a token. REQUIRES: contains(id).
  std::string_view bytes(std::int32_t id) const {
    const auto i = static_cast<std::size_t>(id);
    return std::string_view(text_).substr(text_ends_[i], text_ends_[i + 1] - text_ends_[i]);
  }
  std::span<const std::int32_t> end_ids() const { return end_ids_; }
  bool is_end(std::int32_t id) const;

  // The tree's nodes are numbered in the order of a depth-first walk: a node, then everything below it. Node 0 is the
  // root.
  std::uint32_t n_nodes() const { return static_cast<std::uint32_t>(nodes_.size() - 1); }
  struct Node {
    std::uint32_t end;  // number of the first node after this one that is not below it
    // Index in tree_tokens_ of the node's first token; the node's last token is the one before the next node's
    // first_token.
    std::uint32_t first_token;
    std::uint16_t depth;  // number of bytes between the root and this node
    std::uint8_t byte;
    // The smallest group that contains every token here and below; kNotPlain if a token is not plain.
    std::uint8_t plain;
  };
  const Node& node(std::uint32_t number) const { return nodes_[number]; }
  std::span<const std::int32_t> tokens_at(std::uint32_t number) const {
    return std::span(tree_tokens_)
        .subspan(nodes_[number].first_token, nodes_[number + 1].first_token - nodes_[number].first_token);
  }
  std::uint16_t max_depth() const { return max_depth_; }

  // Most tokens are plain: whole characters that a JSON string may contain unescaped. Group i contains the plain tokens
  // of at most i + 1 characters, the last group all of them. A group has one bit per token.
  static constexpr std::size_t kPlainGroups = 33;
  static constexpr std::uint8_t kNotPlain = 255;
  const std::vector<std::uint32_t>& plain_tokens(std::size_t group) const { return plain_tokens_[group]; }

 private:
  void find_plain();
  std::size_t n_tokens_ = 0;
  std::string text_;
  std::vector<std::uint32_t> text_ends_ = {0};
  std::vector<std::int32_t> end_ids_;      // tokens that end a generation, ascending
  std::vector<std::int32_t> tree_tokens_;  // all tokens that are text, ordered by their bytes
  std::vector<Node> nodes_;                // all nodes, and one more that marks the end
  std::uint16_t max_depth_ = 0;
  std::array<std::vector<std::uint32_t>, kPlainGroups> plain_tokens_;
};

}  // namespace zinc_rt::grammar

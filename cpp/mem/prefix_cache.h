// The prefix cache: which pages hold the KV of which token prefixes. A radix tree a scope, one node a page: a node is
// the 16 tokens of its page after the tokens of its ancestors. Scopes (a tenant or an isolation group, and a variant of
// the position encoding) never see each other's nodes.
//
// Children are found by SipHash-2-4 of (parent, tokens) under a key drawn at random for each process, and are compared
// token by token, so a collision costs a look and never gives another prefix's pages. A leaf may be partial: fewer than
// 16 tokens, of a page that its owner may still append to; what lies before those tokens never changes.
//
// Eviction: a leaf that no slot pins and whose page only the cache refers to, least recently used first.
// Thread rule: one thread at a time. Nothing allocates after construction, except in add_scope.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mem/page_pool.h"
#include "mem/siphash.h"

namespace zinc_rt::mem {

class PrefixCache {
 public:
  using Node = std::uint32_t;  // kNone: no node. The root of a scope is a node without tokens or page.

  struct Match {
    Node node = kNone;               // the deepest node whose 16 tokens all match; the scope's root at least
    std::uint32_t n_pages = 0;       // its depth: full pages that match
    Node state_node = kNone;         // the deepest of root..node with a checkpoint; kNone: none has one
    std::uint32_t state_pages = 0;   // its depth
    std::uint32_t partial_page = kNone;  // a page whose first partial_tokens tokens (1 to 15) match what follows, for a copy
    std::uint32_t partial_tokens = 0;
  };

  // n_checkpoints: ids [0, n) of copies of recurrent state that nodes may hold.
  PrefixCache(PagePool& pool, SipKey key, std::uint32_t n_checkpoints = 0);

  // A new empty tree; its root. Roots are never evicted. Scopes are reused after drop_scope.
  Node add_scope();
  // flush, then the root may be given out again. REQUIRES: no node of it is pinned.
  void drop_scope(Node root);

  // The longest match of a prefix of `tokens`. Counts as a use of the nodes on the way.
  Match match(Node root, std::span<const std::int32_t> tokens);

  // A pinned node and its ancestors are not evicted. Pins count.
  void pin(Node node);
  void unpin(Node node);

  // The child of `parent` with these tokens (1 to 16), made with `page` unless there is one; the cache then holds a
  // reference to the page. A partial leaf with the same page that `tokens` continues is grown in place. With fewer than
  // 16 tokens, gives `parent` (partial leaves are never parents). kNone for tokens that are none or too many. When all
  // node slots are in use (as many as pages) something was leaked: kNone.
  Node extend(Node parent, std::span<const std::int32_t> tokens, std::uint32_t page);

  Node parent(Node node) const;
  std::uint32_t depth(Node node) const;  // pages from the root; 0: a root
  std::uint32_t page(Node node) const;
  // The pages from the root to `node`, in order, into `out` (depth(node) entries).
  void path(Node node, std::span<std::uint32_t> out) const;

  // Evicts the least recently used leaf; false when there is none.
  bool evict_one();
  std::uint32_t n_evictable() const;  // pages that evict_one, again and again, would set free
  std::uint32_t n_nodes() const;      // pages in the tree
  // Removes all that is not pinned (nor above something pinned) from a scope; how many pages it let go.
  std::uint32_t flush(Node root);

  // Checkpoints: a free id, or the least recently used one taken from its node; kNone: the cache has none, or all are
  // lent. A lent id belongs to the caller until attach or give_back.
  std::uint32_t lend_checkpoint();
  void give_back_checkpoint(std::uint32_t id);
  // The node holds it from now on; if it has one already, the new one is given back.
  void attach_checkpoint(Node node, std::uint32_t id);
  std::uint32_t checkpoint(Node node) const;  // kNone: none

  // For tests and simulators: every link, count and reference agrees; a sentence that says what does not, or empty.
  std::string check() const;

 private:
  // Left to the implementation.
};

}  // namespace zinc_rt::mem

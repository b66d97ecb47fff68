// The prefix cache: which pages hold the KV of which token prefixes. A radix tree a scope, one node a page: a node is
// the 16 tokens of its page after the tokens of its ancestors. Scopes (a tenant or an isolation group, and a variant of
// the position encoding) never see each other's nodes.
//
// Children are found by SipHash-2-4 of (parent, tokens) under a key drawn at random for each process, and are compared
// token by token, so a collision costs a look and never gives another prefix's pages. A leaf may be partial: fewer than
// 16 tokens, of a page that its owner may still append to; what lies before those tokens never changes.
//
// A page is in at most one node, so a node's id is its page, and roots are numbered behind the pages.
//
// Eviction: a leaf that nobody pins, least recently used first. A node counts as used when it, or a node below it, is
// matched, extended to or unpinned. Only the lowest node is stamped: when its turn comes as the oldest leaf, its parent
// is older than all other leaves too, or has a newer stamp of its own.
// Thread rule: one thread at a time. Nothing allocates after construction, except in add_scope.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mem/child_table.h"
#include "mem/lru_heap.h"
#include "mem/page_pool.h"
#include "mem/siphash.h"

namespace zinc_rt::mem {

class PrefixCache {
 public:
  using Node = std::uint32_t;  // kNone: no node. The root of a scope is a node without tokens or page.

  struct Match {
    Node node = kNone;              // the deepest node whose 16 tokens all match; the scope's root at least
    std::uint32_t n_pages = 0;      // its depth: full pages that match
    Node state_node = kNone;        // the deepest of root..node with a checkpoint; kNone: none has one
    std::uint32_t state_pages = 0;  // its depth
    // A page whose first partial_tokens tokens (1 to 15) match what follows, for a copy. It stays in the cache until
    // the next call that evicts or flushes.
    std::uint32_t partial_page = kNone;
    std::uint32_t partial_tokens = 0;
  };

  // n_checkpoints: ids [0, n) of copies of recurrent state that nodes may hold. hash_mask: the bits of the hash that
  // are used; tests make collisions by it. The pool must outlive the cache.
  PrefixCache(PagePool& pool, SipKey key, std::uint32_t n_checkpoints = 0, std::uint32_t hash_mask = 0xFFFFFFFFu);

  // A new empty tree; its root. Roots are never evicted. Scopes are reused after drop_scope.
  Node add_scope();
  // flush, then the root may be given out again. REQUIRES: no node of it is pinned.
  void drop_scope(Node root);

  // Whether a scope holds nothing and nobody has pinned its root.
  bool is_unused(Node root) const { return nodes_[root].first_child == kNone && nodes_[root].locks == 0; }

  // The longest match of a prefix of `tokens`. Counts as a use of the nodes on the way, of the partial page and of the
  // checkpoint that it names. Of the children that may match partly, the kPartialLooks used last are looked at.
  Match match(Node root, std::span<const std::int32_t> tokens);
  static constexpr std::uint32_t kPartialLooks = 32;

  // A pinned node and its ancestors are not evicted. Pins count. To move a pin down, pin the child before unpinning its
  // parent: that touches no other ancestor. Unpinning counts as a use. REQUIRES of unpin: the node is pinned.
  void pin(Node node);
  void unpin(Node node);

  // The child of `parent` with these tokens (1 to 16), made with `page` unless there is one; the cache then holds a
  // reference to the page. A partial leaf with the same page that `tokens` continues is grown in place, or removed if
  // a full child with all 16 tokens is there already. With fewer than 16 tokens, gives `parent` (partial leaves are
  // never parents), and makes nothing if a child that was used lately begins with them.
  // kNone, and nothing changes: no tokens or too many; a page that is free, or that another node holds.
  Node extend(Node parent, std::span<const std::int32_t> tokens, std::uint32_t page);

  Node parent(Node node) const { return nodes_[node].parent; }
  std::uint32_t depth(Node node) const { return nodes_[node].depth; }  // pages from the root; 0: a root
  std::uint32_t page(Node node) const { return is_root(node) ? kNone : node; }
  // The pages from the root to `node`, in order, into `out` (depth(node) entries).
  void path(Node node, std::span<std::uint32_t> out) const;

  // Removes leaves, least recently used first, until a page has become free: one that a slot lists too leaves the tree
  // and stays with the slot. False when no leaf is left.
  bool evict_one();
  // Nodes that evict_one, again and again, would remove: those that are not pinned nor above something pinned. As many
  // pages become free, except for those that a slot lists without a pin on their node.
  std::uint32_t n_evictable() const { return n_nodes_ - n_locked_; }
  std::uint32_t n_nodes() const { return n_nodes_; }  // pages in the tree
  // Removes all that is not pinned (nor above something pinned) from a scope; how many pages it let go.
  std::uint32_t flush(Node root);

  // Checkpoints: a free id, or the least recently used one taken from its node; kNone: the cache has none, or all are
  // lent. A lent id belongs to the caller until attach or give_back. One that match has just named is the last to be
  // taken, yet it can be: read it before lending as many as there are.
  std::uint32_t lend_checkpoint();
  void give_back_checkpoint(std::uint32_t id);  // REQUIRES: lent
  // The node holds it from now on; if it has one already, the new one is given back. REQUIRES: lent.
  void attach_checkpoint(Node node, std::uint32_t id);
  std::uint32_t checkpoint(Node node) const { return nodes_[node].checkpoint; }  // kNone: none

  // For tests and simulators: every link, count and reference agrees; a sentence that says what does not, or empty.
  std::string check() const;

 private:
  using Tokens = std::span<const std::int32_t>;

  struct Entry {
    std::array<std::int32_t, kPageTokens> tokens{};
    std::uint32_t n_tokens = 0;
    Node parent = kNone;                                       // kNone: a root, or not in a tree
    Node first_child = kNone, next = kNone, previous = kNone;  // siblings: the one used last comes first
    std::uint32_t depth = 0;
    std::uint32_t hash = 0;  // of a full node
    std::uint32_t pins = 0;
    std::uint32_t locks = 0;  // pins, and children with locks
    std::uint32_t checkpoint = kNone;
    std::uint64_t used_at = 0;
  };
  struct Checkpoint {
    Node node = kNone;  // kNone: free or lent
    bool is_lent = false;
    std::uint64_t used_at = 0;
  };
  struct Shared {
    Node node = kNone;
    std::uint32_t n_tokens = 0;
  };

  bool is_root(Node node) const { return node >= pool_.n_pages(); }
  bool is_full(Node node) const { return nodes_[node].n_tokens == kPageTokens; }
  bool is_in_tree(Node node) const { return nodes_[node].parent != kNone; }
  bool is_evictable(Node node) const {
    return !is_root(node) && nodes_[node].first_child == kNone && nodes_[node].locks == 0;
  }
  Tokens tokens(Node node) const { return Tokens(nodes_[node].tokens).first(nodes_[node].n_tokens); }
  std::uint32_t hash(Node parent, Tokens tokens) const;
  Node find(Node parent, Tokens tokens, std::uint32_t hash) const;
  // The child that begins with most of `tokens`, of the kPartialLooks used last.
  Shared best_child(Node parent, Tokens tokens) const;

  void link_first(Node node);
  void unlink(Node node);
  void move_to_front(Node node);
  void use(Node node);
  void settle(Node node);  // puts it into the heap or takes it out, as is_evictable says
  void lock(Node node);
  void unlock(Node node);
  Node grow(Node node, Tokens tokens, std::uint32_t hash);
  // A leaf without locks leaves the tree; whether its page is free now.
  bool remove(Node node);
  void free_checkpoint(std::uint32_t id);
  std::string check_node(Node node) const;
  std::string check_checkpoints() const;

  PagePool& pool_;
  SipKey key_;
  std::uint32_t hash_mask_;
  std::vector<Entry> nodes_;  // one a page, then roots
  std::vector<Node> free_roots_;
  ChildTable full_nodes_;
  LruHeap leaves_;                            // evictable ones
  std::uint32_t n_nodes_ = 0, n_locked_ = 0;  // both without roots
  std::uint64_t clock_ = 0;                   // counts uses
  std::vector<Checkpoint> checkpoints_;
  std::vector<std::uint32_t> free_checkpoints_;  // a stack
};

}  // namespace zinc_rt::mem

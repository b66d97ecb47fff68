// PrefixCache records which pages hold the KV of which token prefixes, so that a request can reuse the pages of an
// earlier request. Each scope has a radix tree with one node per page. A node stands for the 16 tokens of its page,
// after the tokens of its ancestors. A scope is a tenant or an isolation group, with one variant of the position
// encoding. Scopes never see each other's nodes.
//
// Children are found by SipHash-2-4 of (parent, tokens) with a random key per process, and then compared token by
// token. So a hash collision costs only a comparison and never returns the pages of another prefix. A leaf may be
// partial: it holds fewer than 16 tokens, of a page to which its owner may still append. The tokens of a node never
// change.
//
// A page is in at most one node, so the id of a node is the id of its page. The ids of roots follow those of the pages.
//
// Eviction takes leaves that nobody pins, the least recently used first. A node counts as used when it, or a node below
// it, is matched, extended to or unpinned. A use counts for a node and all its ancestors, but only the lowest node
// stores the time of the use. This suffices: when the lowest node is the oldest leaf and is evicted, its parent is
// older than all other leaves too, or has stored a newer time itself.
// Thread rule: one thread at a time. Nothing allocates after construction, except in add_scope.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mem/child_table.h"
#include "mem/lru_heap.h"
#include "mem/page_pool.h"
#include "mem/siphash.h"
#include "mem/spans.h"

namespace zinc_rt::mem {

class PrefixCache {
 public:
  using Node = std::uint32_t;  // kNone: no node. The root of a scope is a node without tokens or page.

  struct Match {
    Node node = kNone;              // deepest node whose 16 tokens all match; if no node matches, the scope's root
    std::uint32_t n_pages = 0;      // depth of `node`: number of full pages that match
    Node state_node = kNone;        // deepest node between root and `node` that has a checkpoint; kNone: none
    std::uint32_t state_pages = 0;  // depth of state_node, in pages
    // A page whose first partial_tokens tokens (1 to 15) match the tokens after `node`; kNone: no such page. The caller
    // may copy the page. It stays in the cache until the next call that evicts or flushes.
    std::uint32_t partial_page = kNone;
    std::uint32_t partial_tokens = 0;
  };

  // Creates an empty cache. n_checkpoints is the number of copies of recurrent state that nodes may hold; their ids are
  // [0, n_checkpoints). hash_mask says which bits of the hash are used; tests set it to force collisions. The pool must
  // outlive the cache.
  PrefixCache(PagePool& pool, SipKey key, std::uint32_t n_checkpoints = 0, std::uint32_t hash_mask = 0xFFFFFFFFu);

  // Adds an empty tree and returns its root. Roots are never evicted. After drop_scope() a root's id may be used again.
  Node add_scope();
  // Flushes the scope and frees its root. REQUIRES: no node of the scope is pinned.
  void drop_scope(Node root);

  // Returns whether a scope has no nodes and its root is not pinned.
  bool is_unused(Node root) const { return nodes_[root].first_child == kNone && nodes_[root].locks == 0; }

  // Returns the longest cached prefix of `tokens`. The nodes from the root to `node`, the partial page and the
  // checkpoint of state_node count as used. If several children may match in part, only the kPartialLooks most recently
  // used children are compared.
  Match match(Node root, SpanView tokens);
  // Returns the longest cached prefix of `tokens`, like match(), but does not count this as a use.
  Match look(Node root, SpanView tokens) const;
  static constexpr std::uint32_t kPartialLooks = 32;

  // Pin and unpin a node. A pinned node and its ancestors are not evicted. Pins are counted. To move a pin down, pin
  // the child before you unpin its parent, because then the ancestors above the parent need not be visited. Unpinning
  // counts as a use. unpin() REQUIRES: the node is pinned.
  void pin(Node node);
  void unpin(Node node);

  // Returns the child of `parent` with these 1 to 16 tokens. If there is none, creates it from `page`, and the cache
  // then holds a reference to that page. If `page` is already a partial leaf and `tokens` continue it, the leaf is
  // extended in place, or removed if a full child with all 16 tokens exists. With fewer than 16 tokens the call returns
  // `parent`, because a partial leaf is never a parent, and creates nothing if a recently used child begins with these
  // tokens. `owner` is the tenant that computed the page; an existing node keeps its owner. Returns kNone and changes
  // nothing if `tokens` has 0 or more than 16 tokens, or if `page` is free or in another node.
  Node extend(Node parent, SpanView tokens, std::uint32_t page, std::uint32_t owner = kNone);

  Node parent(Node node) const { return nodes_[node].parent; }
  std::uint32_t depth(Node node) const { return nodes_[node].depth; }  // number of pages from the root; 0 for a root
  std::uint32_t page(Node node) const { return is_root(node) ? kNone : node; }
  // Writes the pages from the root to `node`, in order, to `out`, which has depth(node) entries.
  void path(Node node, std::span<std::uint32_t> out) const;

  // Evicts leaves, the least recently used first, until a page is free. If a slot also lists the page of an evicted
  // leaf, the page is removed from the tree but does not become free, and eviction continues. Returns false if no leaf
  // may be evicted.
  bool evict_one();
  // Returns how many nodes repeated calls of evict_one would remove: the nodes that are neither pinned nor ancestors of
  // a pinned node. As many pages become free, except pages that a slot lists without pinning their node.
  std::uint32_t n_evictable() const { return n_nodes_ - n_locked_; }
  std::uint32_t n_nodes() const { return n_nodes_; }  // returns the number of pages in all trees
  // Removes all nodes of a scope, or only those of one owner. Pinned nodes stay, and so do ancestors of a node that
  // stays. Returns how many pages the cache released. If a node of the owner must stay because of a child, the child's
  // owner becomes the node's owner.
  std::uint32_t flush(Node root, std::uint32_t owner = kNone);

  // Lends a free checkpoint. If none is free, takes the least recently used checkpoint from its node. Returns kNone if
  // the cache has no checkpoints or all are lent. The caller owns a lent id until attach or give_back. The checkpoint
  // that match() has just returned is taken last; use it before all others are lent.
  std::uint32_t lend_checkpoint();
  void give_back_checkpoint(std::uint32_t id);  // REQUIRES: the checkpoint is lent.
  // Attaches a lent checkpoint to the node. If the node already has a checkpoint, checkpoint `id` becomes free.
  // REQUIRES: checkpoint `id` is lent.
  void attach_checkpoint(Node node, std::uint32_t id);
  std::uint32_t checkpoint(Node node) const { return nodes_[node].checkpoint; }  // returns kNone if the node has none

  // Checks every link, count and reference, for tests and simulators. Returns a description of the first fault, or an
  // empty text.
  std::string check() const;

 private:
  struct Entry {
    PageSpans tokens;
    Node parent = kNone;  // kNone if this is a root, or is not in a tree
    // Siblings are linked in the order of their last use, latest first.
    Node first_child = kNone, next = kNone, previous = kNone;
    std::uint32_t depth = 0;
    std::uint32_t hash = 0;  // hash of (parent, tokens); set only if the node is full
    std::uint32_t pins = 0;
    std::uint32_t locks = 0;  // number of pins, plus number of children with locks
    std::uint32_t checkpoint = kNone;
    std::uint32_t owner = kNone;
    std::uint64_t used_at = 0;
  };
  struct Checkpoint {
    Node node = kNone;  // kNone if the checkpoint is free or lent
    bool is_lent = false;
    std::uint64_t used_at = 0;
  };
  struct Shared {
    Node node = kNone;
    std::uint32_t n_tokens = 0;
  };

  bool is_root(Node node) const { return node >= pool_.n_pages(); }
  bool is_full(Node node) const { return nodes_[node].tokens.size() == kPageTokens; }
  bool is_in_tree(Node node) const { return nodes_[node].parent != kNone; }
  bool is_evictable(Node node) const {
    return !is_root(node) && nodes_[node].first_child == kNone && nodes_[node].locks == 0;
  }
  SpanView tokens(Node node) const { return nodes_[node].tokens.view(); }
  std::uint32_t hash(Node parent, SpanView tokens) const;
  Node find(Node parent, SpanView tokens, std::uint32_t hash) const;
  // Returns the child whose tokens share the longest prefix with `tokens`. Looks at the kPartialLooks most recently
  // used children.
  Shared best_child(Node parent, SpanView tokens) const;

  void link_first(Node node);
  void unlink(Node node);
  void move_to_front(Node node);
  void use(Node node);
  void settle(Node node);  // adds the node to leaves_ if it is evictable, else removes it
  void lock(Node node);
  void unlock(Node node);
  Node grow(Node node, SpanView tokens, std::uint32_t hash);
  // Removes a node from the tree. Returns whether its page is free now. REQUIRES: the node is a leaf, and its `locks`
  // are 0.
  bool remove(Node node);
  void free_checkpoint(std::uint32_t id);
  std::string check_node(Node node) const;
  std::string check_checkpoints() const;

  PagePool& pool_;
  SipKey key_;
  std::uint32_t hash_mask_;
  std::vector<Entry> nodes_;  // one entry per page, then one per root
  // Ids of dropped roots, which add_scope() uses again.
  std::vector<Node> free_roots_;
  // Finds the full children of a node by the hash of (parent, tokens).
  ChildTable full_nodes_;
  LruHeap leaves_;                            // the leaves that may be evicted, by time of use
  std::uint32_t n_nodes_ = 0, n_locked_ = 0;  // number of nodes and of locked nodes; roots do not count
  std::uint64_t clock_ = 0;                   // number of uses so far, which serves as the time
  // Index: the checkpoint's id.
  std::vector<Checkpoint> checkpoints_;
  std::vector<std::uint32_t> free_checkpoints_;  // ids of free checkpoints, used as a stack
};

}  // namespace zinc_rt::mem

#include "mem/prefix_cache.h"

#include <algorithm>

#include "base/log.h"

namespace zinc_rt::mem {

PrefixCache::PrefixCache(PagePool& pool, SipKey key, std::uint32_t n_checkpoints, std::uint32_t hash_mask)
    : pool_(pool),
      key_(key),
      hash_mask_(hash_mask),
      nodes_(pool.n_pages()),
      full_nodes_(pool.n_pages()),
      leaves_(pool.n_pages()),
      checkpoints_(n_checkpoints) {
  free_checkpoints_.reserve(n_checkpoints);
  for (std::uint32_t id = n_checkpoints; id > 0; --id) free_checkpoints_.push_back(id - 1);
}

PrefixCache::Node PrefixCache::add_scope() {
  if (!free_roots_.empty()) {
    const Node root = free_roots_.back();
    free_roots_.pop_back();
    return root;
  }
  nodes_.emplace_back();
  free_roots_.reserve(nodes_.size() - pool_.n_pages());  // so that drop_scope never allocates
  return static_cast<Node>(nodes_.size() - 1);
}

void PrefixCache::drop_scope(Node root) {
  flush(root);
  if (nodes_[root].checkpoint != kNone) free_checkpoint(nodes_[root].checkpoint);
  nodes_[root] = {};
  free_roots_.push_back(root);
}

// The following functions find prefixes.

std::uint32_t PrefixCache::hash(Node parent, SpanView tokens) const {
  return static_cast<std::uint32_t>(tokens.page_hash(key_, parent)) & hash_mask_;
}

PrefixCache::Node PrefixCache::find(Node parent, SpanView tokens, std::uint32_t hash) const {
  return full_nodes_.find(hash,
                          [&](Node node) { return nodes_[node].parent == parent && this->tokens(node) == tokens; });
}

PrefixCache::Shared PrefixCache::best_child(Node parent, SpanView tokens) const {
  Shared best;
  std::uint32_t n_looks = 0;
  for (Node child = nodes_[parent].first_child;
       child != kNone && n_looks < kPartialLooks && best.n_tokens < tokens.size();
       child = nodes_[child].next, ++n_looks) {
    const std::uint32_t n = n_shared(this->tokens(child), tokens);
    if (n > best.n_tokens) best = {child, n};
  }
  return best;
}

PrefixCache::Match PrefixCache::look(Node root, SpanView tokens) const {
  Match match{.node = root};
  if (checkpoint(root) != kNone) match.state_node = root;
  while (tokens.size() >= kPageTokens) {
    const SpanView first = tokens.first(kPageTokens);
    const Node child = find(match.node, first, hash(match.node, first));
    if (child == kNone) break;
    match.node = child;
    ++match.n_pages;
    if (checkpoint(child) != kNone) {
      match.state_node = child;
      match.state_pages = match.n_pages;
    }
    tokens = tokens.from(kPageTokens);
  }
  // At most 15 tokens match, because a child with 16 equal tokens would have been found.
  if (const Shared best = best_child(match.node, tokens); best.node != kNone) {
    match.partial_page = best.node;
    match.partial_tokens = best.n_tokens;
  }
  return match;
}

PrefixCache::Match PrefixCache::match(Node root, SpanView tokens) {
  const Match match = look(root, tokens);
  for (Node node = match.node; node != root; node = parent(node)) move_to_front(node);
  use(match.node);
  if (match.state_node != kNone) checkpoints_[checkpoint(match.state_node)].used_at = ++clock_;
  if (match.partial_page != kNone) use(match.partial_page);
  return match;
}

void PrefixCache::path(Node node, std::span<std::uint32_t> out) const {
  for (; !is_root(node); node = nodes_[node].parent) out[nodes_[node].depth - 1] = node;
}

// The following functions maintain the links between nodes, the times of use and the heap.

void PrefixCache::link_first(Node node) {
  Entry& entry = nodes_[node];
  Entry& parent = nodes_[entry.parent];
  entry.previous = kNone;
  entry.next = parent.first_child;
  if (entry.next != kNone) nodes_[entry.next].previous = node;
  parent.first_child = node;
}

void PrefixCache::unlink(Node node) {
  const Entry& entry = nodes_[node];
  (entry.previous == kNone ? nodes_[entry.parent].first_child : nodes_[entry.previous].next) = entry.next;
  if (entry.next != kNone) nodes_[entry.next].previous = entry.previous;
}

void PrefixCache::move_to_front(Node node) {
  if (nodes_[node].previous == kNone) return;  // the node is the first child already, as it is in almost all calls
  unlink(node);
  link_first(node);
}

void PrefixCache::use(Node node) {
  nodes_[node].used_at = ++clock_;
  if (is_root(node)) return;
  move_to_front(node);
  if (leaves_.contains(node)) leaves_.use(node, clock_);
}

void PrefixCache::settle(Node node) {
  if (is_root(node) || is_evictable(node) == leaves_.contains(node)) return;
  if (leaves_.contains(node))
    leaves_.erase(node);
  else
    leaves_.push(node, nodes_[node].used_at);
}

// The following functions pin nodes.

void PrefixCache::lock(Node node) {
  for (; node != kNone && nodes_[node].locks++ == 0; node = nodes_[node].parent) {
    if (is_root(node)) return;
    ++n_locked_;
    settle(node);
  }
}

void PrefixCache::unlock(Node node) {
  for (; node != kNone && --nodes_[node].locks == 0; node = nodes_[node].parent) {
    if (is_root(node)) return;
    --n_locked_;
    settle(node);
  }
}

void PrefixCache::pin(Node node) {
  ++nodes_[node].pins;
  lock(node);
}

void PrefixCache::unpin(Node node) {
  use(node);
  --nodes_[node].pins;
  unlock(node);
}

// The following functions add nodes.

PrefixCache::Node PrefixCache::extend(Node parent, SpanView tokens, std::uint32_t page, std::uint32_t owner) {
  if (tokens.empty() || tokens.size() > kPageTokens) return kNone;
  if (page >= pool_.n_pages() || pool_.meta(page).ref_count == 0) return kNone;
  const std::uint32_t n = tokens.size();
  const std::uint32_t hash = n == kPageTokens ? this->hash(parent, tokens) : 0;
  const std::uint32_t n_there = is_in_tree(page) ? this->tokens(page).size() : 0;
  const bool continues = nodes_[page].parent == parent && n_shared(this->tokens(page), tokens) == std::min(n_there, n);

  if (n == kPageTokens) {
    if (const Node twin = find(parent, tokens, hash); twin != kNone) {
      use(twin);
      if (twin != page && n_there > 0 && continues) remove(page);
      return twin;
    }
  } else if (n_there == 0 || n <= n_there) {
    if (const Shared best = best_child(parent, tokens); best.n_tokens == n) {
      use(best.node);
      return parent;
    }
  }
  if (n_there > 0) return continues ? grow(page, tokens, hash) : kNone;

  if (const Status status = pool_.add_ref(page); !status) return kNone;
  nodes_[page].parent = parent;
  nodes_[page].depth = nodes_[parent].depth + 1;
  nodes_[page].owner = owner;
  link_first(page);
  settle(parent);
  ++n_nodes_;
  return grow(page, tokens, hash);
}

// Replaces the tokens of a partial node by `tokens`, which begin with the node's tokens. Returns what extend() must
// return.
PrefixCache::Node PrefixCache::grow(Node node, SpanView tokens, std::uint32_t hash) {
  Entry& entry = nodes_[node];
  if (tokens.size() > entry.tokens.size()) {
    entry.tokens.assign(tokens);
    entry.hash = hash;
    if (is_full(node)) full_nodes_.insert(hash, node);
  }
  use(node);
  settle(node);
  return tokens.size() == kPageTokens ? node : entry.parent;
}

// The following functions remove nodes.

bool PrefixCache::remove(Node node) {
  const Node parent = nodes_[node].parent;
  if (leaves_.contains(node)) leaves_.erase(node);
  if (is_full(node)) full_nodes_.erase(nodes_[node].hash, node);
  if (nodes_[node].checkpoint != kNone) free_checkpoint(nodes_[node].checkpoint);
  unlink(node);
  nodes_[node] = {};
  --n_nodes_;
  settle(parent);
  if (const Status status = pool_.release(node); !status) log().error("{}", status.error().message);
  return pool_.meta(node).ref_count == 0;
}

bool PrefixCache::evict_one() {
  while (leaves_.size() > 0)
    if (remove(leaves_.oldest())) return true;
  return false;
}

// Children are removed before their parents: a node is visited again when its last child has been removed.
std::uint32_t PrefixCache::flush(Node root, std::uint32_t owner) {
  const std::uint32_t n_before = n_nodes_;
  Node node = root;
  bool is_first_look = true;
  while (true) {
    if (is_first_look)
      while (nodes_[node].first_child != kNone) node = nodes_[node].first_child;
    if (node == root) return n_before - n_nodes_;
    const Node next = nodes_[node].next, parent = nodes_[node].parent;
    if (owner == kNone || nodes_[node].owner == owner) {
      if (is_evictable(node))
        remove(node);
      else if (const Node child = nodes_[node].first_child; child != kNone)
        nodes_[node].owner = nodes_[child].owner;
    }
    is_first_look = next != kNone;
    node = is_first_look ? next : parent;
  }
}

// The following functions lend, attach and free checkpoints.

std::uint32_t PrefixCache::lend_checkpoint() {
  if (free_checkpoints_.empty()) {
    std::uint32_t oldest = kNone;
    for (std::uint32_t id = 0; id < checkpoints_.size(); ++id)
      if (checkpoints_[id].node != kNone &&
          (oldest == kNone || checkpoints_[id].used_at < checkpoints_[oldest].used_at))
        oldest = id;
    if (oldest == kNone) return kNone;
    free_checkpoint(oldest);
  }
  const std::uint32_t id = free_checkpoints_.back();
  free_checkpoints_.pop_back();
  checkpoints_[id].is_lent = true;
  return id;
}

void PrefixCache::free_checkpoint(std::uint32_t id) {
  if (checkpoints_[id].node != kNone) nodes_[checkpoints_[id].node].checkpoint = kNone;
  checkpoints_[id] = {};
  free_checkpoints_.push_back(id);
}

void PrefixCache::give_back_checkpoint(std::uint32_t id) {
  free_checkpoint(id);
}

void PrefixCache::attach_checkpoint(Node node, std::uint32_t id) {
  if (nodes_[node].checkpoint != kNone) return free_checkpoint(id);
  nodes_[node].checkpoint = id;
  checkpoints_[id] = {.node = node, .is_lent = false, .used_at = ++clock_};
}

}  // namespace zinc_rt::mem

// Implements PrefixCache::check, which only tests and simulators call.
#include <fmt/format.h>

#include "mem/prefix_cache.h"

namespace zinc_rt::mem {

// Checks a root or a node of a tree, including the links of its children. Returns a description of the fault, or an
// empty text.
std::string PrefixCache::check_node(Node node) const {
  const Entry& entry = nodes_[node];
  std::uint32_t n_locked_children = 0, n_children = 0;
  Node previous = kNone;
  for (Node child = entry.first_child; child != kNone; previous = child, child = nodes_[child].next) {
    if (is_root(child) || ++n_children > n_nodes_) return fmt::format("the children of node {} do not end", node);
    if (nodes_[child].parent != node || nodes_[child].previous != previous)
      return fmt::format("child {} of node {} has parent {} and previous sibling {}", child, node, nodes_[child].parent,
                         nodes_[child].previous);
    if (nodes_[child].depth != entry.depth + 1)
      return fmt::format("child {} has depth {}, its parent {}", child, nodes_[child].depth, entry.depth);
    n_locked_children += nodes_[child].locks > 0;
  }
  if (entry.locks != entry.pins + n_locked_children)
    return fmt::format("node {} has {} locks, {} pins and {} locked children", node, entry.locks, entry.pins,
                       n_locked_children);
  if (entry.used_at > clock_) return fmt::format("node {} was used at {}, now is {}", node, entry.used_at, clock_);
  if (entry.checkpoint != kNone &&
      (entry.checkpoint >= checkpoints_.size() || checkpoints_[entry.checkpoint].node != node))
    return fmt::format("node {} holds checkpoint {}, which does not know it", node, entry.checkpoint);
  if (is_root(node)) return {};

  if (entry.tokens.empty() || entry.tokens.size() > kPageTokens)
    return fmt::format("node {} has {} tokens", node, entry.tokens.size());
  if (!is_full(node) && (n_children > 0 || entry.locks > 0))
    return fmt::format("partial leaf {} has {} children and {} locks", node, n_children, entry.locks);
  if (is_full(node) &&
      (entry.hash != hash(entry.parent, tokens(node)) || find(entry.parent, tokens(node), entry.hash) != node))
    return fmt::format("node {} is not what a look-up of its tokens finds", node);
  if (pool_.meta(node).ref_count == 0) return fmt::format("node {} has a page that is free", node);
  if (is_evictable(node) != leaves_.contains(node))
    return fmt::format("node {} with {} children and {} locks, among evictable leaves: {}", node, n_children,
                       entry.locks, leaves_.contains(node));
  if (leaves_.contains(node) && leaves_.used_at(node) != entry.used_at)
    return fmt::format("node {} was used at {}, the heap has {}", node, entry.used_at, leaves_.used_at(node));
  return {};
}

std::string PrefixCache::check_checkpoints() const {
  std::size_t n_held = 0, n_lent = 0;
  for (std::uint32_t id = 0; id < checkpoints_.size(); ++id) {
    const Checkpoint& one = checkpoints_[id];
    n_held += one.node != kNone;
    n_lent += one.is_lent;
    if (one.node != kNone && (one.is_lent || one.node >= nodes_.size() || nodes_[one.node].checkpoint != id))
      return fmt::format("checkpoint {} of node {} is lent or not the node's", id, one.node);
  }
  std::vector<bool> is_free(checkpoints_.size());
  for (const std::uint32_t id : free_checkpoints_) {
    if (id >= checkpoints_.size() || is_free[id] || checkpoints_[id].is_lent || checkpoints_[id].node != kNone)
      return fmt::format("checkpoint {} is among the free ones twice or wrongly", id);
    is_free[id] = true;
  }
  if (free_checkpoints_.size() + n_held + n_lent != checkpoints_.size())
    return fmt::format("{} checkpoints free, {} held, {} lent of {}", free_checkpoints_.size(), n_held, n_lent,
                       checkpoints_.size());
  return {};
}

std::string PrefixCache::check() const {
  std::uint32_t n_in_tree = 0, n_full = 0, n_locked = 0, n_evictable_leaves = 0, n_linked = 0;
  for (Node node = 0; node < nodes_.size(); ++node) {
    if (!is_root(node) && !is_in_tree(node)) {
      if (leaves_.contains(node) || nodes_[node].locks > 0 || nodes_[node].checkpoint != kNone)
        return fmt::format("page {} is in no tree and yet evictable, locked or with a checkpoint", node);
      continue;
    }
    if (std::string wrong = check_node(node); !wrong.empty()) return wrong;
    for (Node child = nodes_[node].first_child; child != kNone; child = nodes_[child].next) ++n_linked;
    if (is_root(node)) continue;
    ++n_in_tree;
    n_full += is_full(node);
    n_locked += nodes_[node].locks > 0;
    n_evictable_leaves += is_evictable(node);
  }
  // In a tree each node is the child of exactly one node, one level up. So if the three counts agree, every node is
  // below a root.
  if (n_in_tree != n_nodes_ || n_linked != n_nodes_)
    return fmt::format("{} nodes counted, {} in trees, {} linked", n_nodes_, n_in_tree, n_linked);
  if (n_locked != n_locked_) return fmt::format("{} locked nodes counted, {} there", n_locked_, n_locked);
  if (full_nodes_.size() != n_full) return fmt::format("{} full nodes, {} in the table", n_full, full_nodes_.size());
  if (leaves_.size() != n_evictable_leaves || !leaves_.is_sound())
    return fmt::format("{} evictable leaves, {} in the heap, or its order is wrong", n_evictable_leaves,
                       leaves_.size());
  for (const Node root : free_roots_)
    if (nodes_[root].first_child != kNone || nodes_[root].locks > 0)
      return fmt::format("root {} of a dropped scope has nodes or pins", root);
  return check_checkpoints();
}

}  // namespace zinc_rt::mem

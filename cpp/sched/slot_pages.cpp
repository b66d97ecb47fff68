// A slot's pages: those that it shares with the prefix cache, those that it takes from the pool, and those that it
// leaves to the cache.
#include <algorithm>

#include "sched/scheduler.h"

namespace zinc_rt::sched {

using mem::kPageTokens;
using Node = mem::PrefixCache::Node;

// Tenants of one isolation group count as one owner.
std::uint64_t Scheduler::owner_of(TenantId tenant) const {
  const std::uint32_t group = tenants_[tenant].quota.isolation_group;
  return group == kNone ? tenant : std::uint64_t{group} | std::uint64_t{1} << 32;
}

Node Scheduler::root_of(const Request& r) {
  return root_of(r.params.tenant, variant_of(r), r.params.cache_salt);
}

Node Scheduler::root_of(TenantId tenant, std::uint32_t variant, const std::string& salt) {
  const auto [it, is_new] = roots_.try_emplace({owner_of(tenant), variant, salt}, kNone);
  if (!is_new) return it->second;
  const Node root = it->second = prefixes_.add_scope();
  prefixes_.pin(root);
  if (roots_.size() > most_roots_) drop_unused_roots();
  prefixes_.unpin(root);
  return root;
}

// Clients choose the salts, so a scope must not outlive the prefixes in it.
void Scheduler::drop_unused_roots() {
  std::erase_if(roots_, [&](const auto& scope) {
    if (!prefixes_.is_unused(scope.second)) return false;
    prefixes_.drop_scope(scope.second);
    return true;
  });
  most_roots_ = std::max<std::size_t>(1024, 2 * roots_.size());
}

std::uint32_t Scheduler::flush_prefixes(TenantId tenant) {
  const auto lock = tenants_.lock();
  return flush_scopes(owner_of(tenant), tenant);
}

void Scheduler::forget_tenant(TenantId tenant) {
  const auto lock = tenants_.lock();
  flush_scopes(tenant, tenant);
  shares_.forget(tenant);
  if (all_shares_) all_shares_->forget(tenant);
}

// What the tenant brought into the scopes of an owner, which is itself or its group.
std::uint32_t Scheduler::flush_scopes(std::uint64_t owner, TenantId tenant) {
  std::uint32_t n = 0;
  for (auto it = roots_.lower_bound({owner, 0, {}}); it != roots_.end() && it->first.owner == owner; ++it)
    n += prefixes_.flush(it->second, tenant);
  tenants_.note_room();
  return n;
}

// How many pages the tenant could have now: free ones and those that only the cache refers to, less those that are
// reserved for others.
std::uint64_t Scheduler::available_pages(TenantId tenant) const {
  const std::uint64_t there = std::uint64_t{pages_.n_free()} + prefixes_.n_evictable();
  if (tenants_.total_reserved() == 0) return there;
  return there - std::min(there, tenants_.reserved_but_unused(tenant));
}

std::uint32_t Scheduler::take_page(const Request& r) {
  if (++page_takes_ == options_.fail_page_take || available_pages(r.params.tenant) == 0) return kNone;
  while (pages_.n_free() == 0 && prefixes_.evict_one()) ++stats_.page_evictions;
  return pages_.take(r.slot, r.params.tenant);
}

bool Scheduler::grow(Request& r, std::uint32_t n_tokens, bool may_preempt, Micros now) {
  while (slots_[r.slot].page_count * kPageTokens < n_tokens) {
    Tenant& tenant = tenants_[r.params.tenant];
    const bool is_over = tenant.pages >= tenant.quota.max_kv_pages;
    if (const std::uint32_t page = is_over ? kNone : take_page(r); page != kNone) {
      slots_.push_page(r.slot, page);
      ++r.n_charged;
      tenant.charge_page();
      continue;
    }
    if (!may_preempt) return false;
    Request* victim = victim_for_pages(r, is_over, now);
    preempt(*victim, false, now);
    if (victim == &r) return false;
  }
  return true;
}

// What a slot can start from of a match: with recurrent layers a checkpoint, and no part of a page.
mem::PrefixCache::Match Scheduler::usable(mem::PrefixCache::Match match, Node root) const {
  if (!options_.is_recurrent) return match;
  const bool has_state = match.state_node != kNone;
  match.node = has_state ? match.state_node : root;
  match.n_pages = has_state ? match.state_pages : 0;
  match.partial_page = kNone;
  match.partial_tokens = 0;
  return match;
}

std::uint32_t Scheduler::cached_tokens(TenantId tenant, const std::string& salt,
                                       std::span<const std::int32_t> prompt) const {
  const auto root = roots_.find({owner_of(tenant), variant_of(prompt.size()), salt});
  if (!options_.prefix_cache || root == roots_.end() || prompt.empty()) return 0;
  // The last token is always computed, since its logits are wanted.
  const auto match = usable(prefixes_.look(root->second, prompt.first(prompt.size() - 1)), root->second);
  return match.n_pages * kPageTokens + match.partial_tokens;
}

// Looks for pages for the request: its prefix, which is pinned in match_, and room for the rest of its tokens and one
// more.
Bind Scheduler::find_room(Request& r) {
  if (r.failed_epoch == tenants_.room_epoch()) return r.failed_bind;
  const auto known = static_cast<std::uint32_t>(r.tokens.size());
  r.root = root_of(r);
  match_ = {};
  match_.node = r.root;
  // The last token is always computed, and so is a token whose score is missing, since their logits are wanted.
  const std::uint32_t n_known_logits = r.is_scoring() ? r.n_scored : known - 1;
  if (options_.prefix_cache) match_ = prefixes_.match(r.root, std::span(r.tokens).first(n_known_logits));
  if (options_.is_recurrent) r.snapshot_pages = match_.n_pages > match_.state_pages ? match_.n_pages : 0;
  match_ = usable(match_, r.root);
  prefixes_.pin(match_.node);
  const std::uint32_t needed = mem::pages_for(std::min(known + 1, r.n_limit)) - match_.n_pages;
  const Tenant& tenant = tenants_[r.params.tenant];
  const bool is_reserved = tenant.pages + needed <= tenant.quota.reserved_kv_pages;
  const std::uint64_t kept =
      n_running_ > 0 && !is_reserved ? static_cast<std::uint64_t>(options_.prefix_part * options_.n_pages) : 0;
  Bind bind = Bind::kDone;
  if (tenant.pages + needed > tenant.quota.max_kv_pages)
    bind = Bind::kOverQuota;
  else if (const auto there = available_pages(r.params.tenant); needed + kept > there) {
    bind = Bind::kNoPages;
    r.n_missing = static_cast<std::uint32_t>(needed - std::min<std::uint64_t>(needed, there));
  }
  if (bind != Bind::kDone) prefixes_.unpin(match_.node);
  r.failed_epoch = bind == Bind::kDone ? 0 : tenants_.room_epoch();
  r.failed_bind = bind;
  return bind;
}

// Takes a slot and what find_room found. REQUIRES: a free slot.
void Scheduler::bind(Request& r) {
  r.slot = slots_.take();
  slot_requests_[r.slot] = &r;
  r.node = match_.node;
  slots_.set_rope_variant(r.slot, variant_of(r));
  for (std::uint32_t i = 0; i < match_.n_pages; ++i) slots_.push_page(r.slot, 0);
  const auto pages = slots_.pages(r.slot);
  prefixes_.path(r.node, pages);
  for (const std::uint32_t page : pages)
    if (const auto status = pages_.add_ref(page); !status) ++stats_.internal_errors;
  slots_[r.slot].prefix_match_pages = match_.n_pages;
  r.n_done = match_.n_pages * kPageTokens;
  if (options_.is_recurrent && match_.n_pages > 0)
    plan_.restores.push_back({r.slot, slots_.size() + prefixes_.checkpoint(r.node), r.slot});
  if (match_.partial_page == kNone) return;
  // Another slot may append to that page, so this slot goes on in a copy.
  if (!pages_.add_ref(match_.partial_page)) return;
  const std::uint32_t page = take_page(r);
  if (page == kNone) {
    if (!pages_.release(match_.partial_page)) ++stats_.internal_errors;
    return;
  }
  slots_.push_page(r.slot, page);
  ++r.n_charged;
  tenants_[r.params.tenant].charge_page();
  plan_.page_copies.push_back({r.slot, match_.partial_page, page});
  r.copy_pending = true;
  r.n_done += match_.partial_tokens;
}

// Called after tokens [first, n_done): full pages go into the cache, so that others share them while this request runs.
void Scheduler::publish_pages(Request& r, std::uint32_t first) {
  const auto pages = slots_.pages(r.slot);
  for (std::uint32_t i = first / kPageTokens; i * kPageTokens < r.n_done; ++i)
    pages_.set_token_count(pages[i], std::min(kPageTokens, r.n_done - i * kPageTokens));
  if (!options_.prefix_cache) return;
  std::uint32_t depth = prefixes_.depth(r.node);
  for (; (depth + 1) * kPageTokens <= r.n_done; ++depth) {
    const auto tokens = std::span(r.tokens).subspan(std::size_t{depth} * kPageTokens, kPageTokens);
    const Node node = prefixes_.extend(r.node, tokens, pages[depth], r.params.tenant);
    if (node == kNone) {
      ++stats_.internal_errors;
      return;
    }
    prefixes_.pin(node);
    prefixes_.unpin(r.node);
    r.node = node;
    if (prefixes_.page(node) != pages[depth]) replace_page(r, depth, prefixes_.page(node));
  }
  if (r.checkpoint != kNone && r.n_done <= r.n_prompt && r.checkpoint_pages * kPageTokens == r.n_done) {
    prefixes_.attach_checkpoint(r.node, r.checkpoint);
    r.checkpoint = kNone;
  }
  if (r.n_done == r.n_prompt) publish_tail(r);
}

void Scheduler::publish_lease(std::uint32_t slot, TenantId tenant, const std::string& salt,
                              std::span<const std::int32_t> tokens) {
  const auto lock = tenants_.lock();
  Node node = root_of(tenant, variant_of(tokens.size()), salt);
  prefixes_.pin(node);
  const auto pages = slots_.pages(slot);
  for (std::size_t i = 0; i * kPageTokens < tokens.size(); ++i) {
    pages_.set_token_count(pages[i], kPageTokens);
    const Node next = prefixes_.extend(node, tokens.subspan(i * kPageTokens, kPageTokens), pages[i], tenant);
    if (next == kNone) {
      ++stats_.internal_errors;
      break;
    }
    prefixes_.pin(next);
    prefixes_.unpin(node);
    node = next;
  }
  prefixes_.unpin(node);
  tenants_.note_room();
}

// The cache already has the same tokens in another page. The slot goes on with that page, which its path pins anyway,
// and frees its own. If it kept both, a text that is computed again could need twice its pages and never get them.
void Scheduler::replace_page(Request& r, std::uint32_t index, std::uint32_t page) {
  std::uint32_t& mine = slots_.pages(r.slot)[index];
  if (!pages_.add_ref(page)) ++stats_.internal_errors;
  pages_.set_owner(mine, kNone);
  if (!pages_.release(mine)) ++stats_.internal_errors;
  mine = page;
  --r.n_charged;
  --tenants_[r.params.tenant].pages;
  tenants_.note_room();
}

// Gives the cache the last page, which is not full: what it holds now never changes, so others may copy it.
void Scheduler::publish_tail(Request& r) {
  const std::uint32_t depth = prefixes_.depth(r.node), n = r.n_done - depth * kPageTokens;
  if (options_.is_recurrent || n == 0 || n >= kPageTokens || depth >= slots_[r.slot].page_count) return;
  const auto tokens = std::span(r.tokens).subspan(std::size_t{depth} * kPageTokens, n);
  if (prefixes_.extend(r.node, tokens, slots_.pages(r.slot)[depth], r.params.tenant) == kNone) ++stats_.internal_errors;
}

void Scheduler::drop_moves(Request& r) {
  std::erase_if(plan_.page_copies, [&](const PageMove& copy) {
    if (copy.slot != r.slot) return false;
    if (!pages_.release(copy.from)) ++stats_.internal_errors;
    return true;
  });
  const auto is_own = [&](const StateMove& move) { return move.slot == r.slot; };
  std::erase_if(plan_.restores, is_own);
  std::erase_if(plan_.saves, is_own);
  if (r.copy_pending) r.n_done = slots_[r.slot].prefix_match_pages * kPageTokens;
  r.copy_pending = false;
}

// Releases the slot's pages: those that the cache holds stay there, the rest go to the pool.
void Scheduler::release_pages(Request& r, bool keep) {
  drop_moves(r);
  if (keep && options_.prefix_cache) publish_tail(r);
  if (r.checkpoint != kNone) {
    Node node = r.node;
    const bool is_there = keep && r.checkpoint_pages > 0 && prefixes_.depth(node) >= r.checkpoint_pages;
    while (is_there && prefixes_.depth(node) > r.checkpoint_pages) node = prefixes_.parent(node);
    is_there ? prefixes_.attach_checkpoint(node, r.checkpoint) : prefixes_.give_back_checkpoint(r.checkpoint);
    r.checkpoint = kNone;
  }
  prefixes_.unpin(r.node);
  r.node = kNone;
  for (const std::uint32_t page : slots_.pages(r.slot)) {
    if (pages_.meta(page).owner_slot == r.slot) pages_.set_owner(page, kNone);
    if (!pages_.release(page)) ++stats_.internal_errors;
  }
  slots_.clear_pages(r.slot);
  tenants_[r.params.tenant].pages -= r.n_charged;
  r.n_charged = r.n_done = r.checkpoint_pages = r.snapshot_pages = 0;
  tenants_.note_room();
}

void Scheduler::release_slot(Request& r, bool keep) {
  release_pages(r, keep);
  slots_.give_back(r.slot);
  slot_requests_[r.slot] = nullptr;
  r.slot = kNone;
  --tenants_[r.params.tenant].slots;
  note_running(r, -1);
  --n_running_;
  if (r.protected_until > 0) --n_protected_;
  r.protected_until = 0;
}

// A text that has outgrown the range of its position encoding is computed again with the next variant
// (Options::rope_limits).
void Scheduler::restart(Request& r) {
  release_pages(r, true);
  slots_.set_rope_variant(r.slot, variant_of(r));
  slots_[r.slot].position = slots_[r.slot].prefix_match_pages = 0;
  r.root = r.node = root_of(r);
  prefixes_.pin(r.node);
  if (slots_[r.slot].state != SlotState::kPrefill) move(r.slot, SlotState::kPrefill);
}

}  // namespace zinc_rt::sched

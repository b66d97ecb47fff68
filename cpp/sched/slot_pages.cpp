#include "sched/slot_pages.h"

#include <algorithm>

#include "base/error.h"

namespace zinc_rt::sched {

// Returns the owner of a tenant's cached prefixes. All tenants of an isolation group have the same owner.
std::uint64_t SlotPages::owner_of(TenantId tenant) const {
  const std::uint32_t group = tenants_[tenant].quota.isolation_group;
  return group == kNone ? tenant : std::uint64_t{group} | std::uint64_t{1} << 32;
}

SlotPages::Node SlotPages::root_of(const Request& r) {
  return root_of(r.params.tenant, variant_of(r), r.params.cache_salt);
}

SlotPages::Node SlotPages::root_of(TenantId tenant, std::uint32_t variant, const std::string& salt) {
  const auto [it, is_new] = roots_.try_emplace({owner_of(tenant), variant, salt}, kNone);
  if (!is_new) return it->second;
  const Node root = it->second = prefixes_.add_scope();
  prefixes_.pin(root);
  if (roots_.size() > most_roots_) drop_unused_roots();
  prefixes_.unpin(root);
  return root;
}

// Each salt has a scope of its own, and clients choose salts, so they could create any number of scopes. Therefore a
// scope without cached prefixes is dropped.
void SlotPages::drop_unused_roots() {
  std::erase_if(roots_, [&](const auto& scope) {
    if (!prefixes_.is_unused(scope.second)) return false;
    prefixes_.drop_scope(scope.second);
    return true;
  });
  most_roots_ = std::max<std::size_t>(1024, 2 * roots_.size());
}

std::uint32_t SlotPages::flush(TenantId tenant, bool with_group) {
  const std::uint64_t owner = with_group ? owner_of(tenant) : tenant;
  std::uint32_t n = 0;
  for (auto it = roots_.lower_bound({owner, 0, {}}); it != roots_.end() && it->first.owner == owner; ++it)
    n += prefixes_.flush(it->second, tenant);
  tenants_.note_room();
  return n;
}

// Returns how many pages the tenant could get now: free pages and pages that only the cache refers to, less the pages
// reserved for other tenants.
std::uint64_t SlotPages::available(TenantId tenant) const {
  const std::uint64_t there = std::uint64_t{pool_.n_free()} + prefixes_.n_evictable();
  if (tenants_.total_reserved() == 0) return there;
  return there - std::min(there, tenants_.reserved_but_unused(tenant));
}

std::uint32_t SlotPages::take_page(const Request& r) {
  if (++n_takes_ == options_.fail_page_take || available(r.params.tenant) == 0) return kNone;
  while (pool_.n_free() == 0 && prefixes_.evict_one()) ++stats_.page_evictions;
  return pool_.take(r.slot, r.params.tenant);
}

Bind SlotPages::grow(Request& r, std::uint32_t n_tokens) {
  while (slots_[r.slot].page_count * kPageTokens < n_tokens) {
    Tenant& tenant = tenants_[r.params.tenant];
    if (tenant.pages >= tenant.quota.max_kv_pages) return Bind::kOverQuota;
    const std::uint32_t page = take_page(r);
    if (page == kNone) return Bind::kNoPages;
    slots_.push_page(r.slot, page);
    ++r.n_charged;
    tenant.charge_page();
  }
  return Bind::kDone;
}

void SlotPages::lend(Request& r, std::uint32_t n_tokens) {
  const Tenant& tenant = tenants_[r.params.tenant];
  while (slots_[r.slot].page_count * kPageTokens < n_tokens) {
    if (tenant.pages + r.n_lent >= tenant.quota.max_kv_pages) return;
    if (pool_.n_free() == 0 || pool_.n_free() <= tenants_.reserved_but_unused(r.params.tenant)) return;
    slots_.push_page(r.slot, pool_.take(r.slot, r.params.tenant));
    ++r.n_lent;
  }
}

std::uint32_t SlotPages::settle(Request& r, std::uint32_t n_tokens) {
  Tenant& tenant = tenants_[r.params.tenant];
  const std::uint32_t n_own = slots_[r.slot].page_count - r.n_lent;
  const std::uint32_t wanted = std::max(mem::pages_for(n_tokens), n_own) - n_own;
  const std::uint32_t allowed = tenant.quota.max_kv_pages - std::min(tenant.quota.max_kv_pages, tenant.pages);
  const std::uint32_t n_kept = std::min({wanted, allowed, r.n_lent});
  for (; r.n_lent > n_kept; --r.n_lent) {
    const std::uint32_t page = slots_.pop_page(r.slot);
    pool_.set_owner(page, kNone);
    expect(pool_.release(page));
  }
  for (; r.n_lent > 0; --r.n_lent) {
    ++r.n_charged;
    tenant.charge_page();
  }
  return slots_[r.slot].page_count * kPageTokens;
}

// A decoding slot has one checkpoint and overwrites it as the text grows. Checkpoints made within prompts stay with
// their prefixes in the cache.
void SlotPages::save_state(Request& r, PlanItem& item, StepPlan& plan) {
  const std::uint32_t end =
      item.begin + item.n - item.n_drafts;  // tokens that the slot's state includes after the step
  const std::uint32_t at = end / kPageTokens * kPageTokens;
  if (at + item.n_replayed <= item.begin || (at > item.begin && at < end)) return;
  if (r.checkpoint == kNone) r.checkpoint = prefixes_.lend_checkpoint();
  if (r.checkpoint == kNone) return;
  r.checkpoint_pages = at / kPageTokens;
  const std::uint32_t entry = slots_.size() + r.checkpoint;
  if (at == end)
    plan.saves.push_back({r.slot, r.slot, entry});
  else
    item.save_at = at, item.save_to = entry;
}

// Reduces a match to what a slot can start from. With recurrent layers that needs a checkpoint, and excludes partly
// filled pages.
mem::PrefixCache::Match SlotPages::usable(mem::PrefixCache::Match match, Node root) const {
  if (!options_.is_recurrent) return match;
  const bool has_state = match.state_node != kNone;
  match.node = has_state ? match.state_node : root;
  match.n_pages = has_state ? match.state_pages : 0;
  match.partial_page = kNone;
  match.partial_tokens = 0;
  return match;
}

std::uint32_t SlotPages::cached_tokens(TenantId tenant, const std::string& salt, mem::SpanView prompt) const {
  const auto root = roots_.find({owner_of(tenant), options_.variant_of(prompt.size()), salt});
  if (!options_.prefix_cache || root == roots_.end() || prompt.empty()) return 0;
  // The last token is always computed, because its logits are needed.
  const auto match = usable(prefixes_.look(root->second, prompt.first(prompt.size() - 1)), root->second);
  return match.n_pages * kPageTokens + match.partial_tokens;
}

Bind SlotPages::find_room(Request& r, bool others_run) {
  if (r.failed_epoch == tenants_.room_epoch()) return r.failed_bind;
  const std::uint32_t known = r.tokens.size();
  r.root = root_of(r);
  found_ = {};
  found_.node = r.root;
  // The last token is always computed, because its logits are needed. Every token whose score is still missing is
  // computed too.
  const std::uint32_t n_known_logits = r.is_scoring() ? r.n_scored : known - 1;
  if (options_.prefix_cache) found_ = prefixes_.match(r.root, r.tokens.view().first(n_known_logits));
  if (options_.is_recurrent) r.snapshot_pages = found_.n_pages > found_.state_pages ? found_.n_pages : 0;
  found_ = usable(found_, r.root);
  prefixes_.pin(found_.node);
  const std::uint32_t needed = mem::pages_for(std::min(known + 1, r.n_limit)) - found_.n_pages;
  const Tenant& tenant = tenants_[r.params.tenant];
  const bool is_reserved = tenant.pages + needed <= tenant.quota.reserved_kv_pages;
  const std::uint64_t kept =
      others_run && !is_reserved ? static_cast<std::uint64_t>(options_.prefix_part * options_.n_pages) : 0;
  Bind bind = Bind::kDone;
  if (tenant.pages + needed > tenant.quota.max_kv_pages)
    bind = Bind::kOverQuota;
  else if (const auto there = available(r.params.tenant); needed + kept > there) {
    bind = Bind::kNoPages;
    r.n_missing = static_cast<std::uint32_t>(needed - std::min<std::uint64_t>(needed, there));
  }
  if (bind != Bind::kDone) prefixes_.unpin(found_.node);
  r.failed_epoch = bind == Bind::kDone ? 0 : tenants_.room_epoch();
  r.failed_bind = bind;
  return bind;
}

void SlotPages::bind(Request& r, StepPlan& plan) {
  r.node = found_.node;
  slots_.set_rope_variant(r.slot, variant_of(r));
  for (std::uint32_t i = 0; i < found_.n_pages; ++i) slots_.push_page(r.slot, 0);
  const auto pages = slots_.pages(r.slot);
  prefixes_.path(r.node, pages);
  for (const std::uint32_t page : pages) expect(pool_.add_ref(page));
  slots_[r.slot].prefix_match_pages = found_.n_pages;
  r.n_done = found_.n_pages * kPageTokens;
  if (options_.is_recurrent && found_.n_pages > 0)
    plan.restores.push_back({r.slot, slots_.size() + prefixes_.checkpoint(r.node), r.slot});
  if (found_.partial_page == kNone) return;
  // Another slot may append to the partly filled page, so this slot continues in a copy of it.
  if (!pool_.add_ref(found_.partial_page)) return;
  const std::uint32_t page = take_page(r);
  if (page == kNone) {
    expect(pool_.release(found_.partial_page));
    return;
  }
  slots_.push_page(r.slot, page);
  ++r.n_charged;
  tenants_[r.params.tenant].charge_page();
  plan.page_copies.push_back({r.slot, found_.partial_page, page});
  r.copy_pending = true;
  r.n_done += found_.partial_tokens;
}

void SlotPages::publish(Request& r, std::uint32_t first) {
  const auto pages = slots_.pages(r.slot);
  for (std::uint32_t i = first / kPageTokens; i * kPageTokens < r.n_done; ++i)
    pool_.set_token_count(pages[i], std::min(kPageTokens, r.n_done - i * kPageTokens));
  if (!options_.prefix_cache) return;
  std::uint32_t depth = prefixes_.depth(r.node);
  for (; (depth + 1) * kPageTokens <= r.n_done; ++depth) {
    const auto tokens = r.tokens.part(std::size_t{depth} * kPageTokens, kPageTokens);
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

void SlotPages::publish(std::uint32_t slot, TenantId tenant, const std::string& salt, mem::SpanView tokens) {
  Node node = root_of(tenant, options_.variant_of(tokens.size()), salt);
  prefixes_.pin(node);
  const auto pages = slots_.pages(slot);
  for (std::size_t i = 0; i * kPageTokens < tokens.size(); ++i) {
    pool_.set_token_count(pages[i], kPageTokens);
    const Node next = prefixes_.extend(node, tokens.part(i * kPageTokens, kPageTokens), pages[i], tenant);
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

// The cache already has the same tokens in another page. The slot switches to the cache's page, which the slot's path
// in the cache pins anyway, and frees its own page. Otherwise a text that is computed again could need twice its pages
// and never get them.
void SlotPages::replace_page(Request& r, std::uint32_t index, std::uint32_t page) {
  std::uint32_t& mine = slots_.pages(r.slot)[index];
  expect(pool_.add_ref(page));
  pool_.set_owner(mine, kNone);
  expect(pool_.release(mine));
  mine = page;
  --r.n_charged;
  --tenants_[r.params.tenant].pages;
  tenants_.note_room();
}

// Gives the cache the slot's last, partly filled page. The tokens in it never change, so other slots may copy it.
void SlotPages::publish_tail(Request& r) {
  const std::uint32_t depth = prefixes_.depth(r.node), n = r.n_done - depth * kPageTokens;
  if (options_.is_recurrent || n == 0 || n >= kPageTokens || depth >= slots_[r.slot].page_count) return;
  const auto tokens = r.tokens.part(std::size_t{depth} * kPageTokens, n);
  if (prefixes_.extend(r.node, tokens, slots_.pages(r.slot)[depth], r.params.tenant) == kNone) ++stats_.internal_errors;
}

void SlotPages::drop_moves(Request& r, StepPlan& plan) {
  std::erase_if(plan.page_copies, [&](const PageMove& copy) {
    if (copy.slot != r.slot) return false;
    expect(pool_.release(copy.from));
    return true;
  });
  const auto is_own = [&](const StateMove& move) { return move.slot == r.slot; };
  std::erase_if(plan.restores, is_own);
  std::erase_if(plan.saves, is_own);
  if (r.copy_pending) r.n_done = slots_[r.slot].prefix_match_pages * kPageTokens;
  r.copy_pending = false;
}

void SlotPages::release(Request& r, bool keep, StepPlan& plan) {
  drop_moves(r, plan);
  r.tokens.drop_guess();
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
    if (pool_.meta(page).owner_slot == r.slot) pool_.set_owner(page, kNone);
    expect(pool_.release(page));
  }
  slots_.clear_pages(r.slot);
  tenants_[r.params.tenant].pages -= r.n_charged;
  r.n_charged = r.n_lent = r.n_done = r.n_unapplied = r.checkpoint_pages = r.snapshot_pages = 0;
  tenants_.note_room();
}

void SlotPages::begin_again(Request& r, StepPlan& plan) {
  release(r, true, plan);
  slots_.set_rope_variant(r.slot, variant_of(r));
  slots_[r.slot].prefix_match_pages = 0;
  r.root = r.node = root_of(r);
  prefixes_.pin(r.node);
}

void SlotPages::finish_copies(StepPlan& plan) {
  for (const PageMove& copy : plan.page_copies) expect(pool_.release(copy.from));
  plan.page_copies.clear();
  plan.restores.clear();
}

Status SlotPages::make_free(std::uint32_t n_pages) {
  while (pool_.n_free() < n_pages && prefixes_.evict_one()) ++stats_.page_evictions;
  if (pool_.n_free() >= n_pages) return {};
  return fail(StatusCode::kExhausted, "[page_pool] needs {} pages, {} free of {}", n_pages, pool_.n_free(),
              pool_.n_pages());
}

void SlotPages::take(std::uint32_t slot, std::uint32_t n_pages) {
  for (std::uint32_t i = 0; i < n_pages; ++i) slots_.push_page(slot, pool_.take(slot, kNone));
}

void SlotPages::give_back(std::uint32_t slot) {
  for (const auto page : slots_.pages(slot)) expect(pool_.release(page));
  slots_.clear_pages(slot);
  tenants_.note_room();
}

}  // namespace zinc_rt::sched

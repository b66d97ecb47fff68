#include "sched/sim/invariants.h"

#include <fmt/format.h>

#include <algorithm>

namespace zinc_rt::sched::sim {

namespace {

// A queue longer than kShortQueue is checked only in every kLookEvery-th turn of the simulator, because the check
// visits all requests in it.
constexpr std::uint32_t kShortQueue = 256, kLookEvery = 32;

}  // namespace

Invariants::Invariants(const Scheduler& scheduler, const TenantBook& tenants, bool is_alone)
    : s_(scheduler),
      tenants_(tenants),
      is_alone_(is_alone),
      lines_(tenants.size()),
      slot_since_(scheduler.slots().size()),
      n_listed_(scheduler.pages().n_pages()) {
  for (auto* counts : {&n_slots_, &n_pages_, &n_waiting_, &last_pages_, &last_slots_}) counts->resize(tenants.size());
  leases.reserve(s_.slots().size());
}

void Invariants::report(std::string_view rule, std::string text) {
  if (!violation_) violation_ = Violation{std::string(rule), std::move(text)};
}

bool Invariants::is_held_by_leader(const Request& r) const {
  const Request* leader = r.params.after != 0 ? s_.find(r.params.after) : nullptr;
  return leader != nullptr && !leader->prompt_done;
}

bool Invariants::may_start(const Request& r, Micros now) const {
  const Tenant& t = tenants_[r.params.tenant];
  return t.slots < t.quota.max_concurrent_slots && t.pages < t.quota.max_kv_pages && t.prefill.has_any(now) &&
         t.decode.has_any(now) && !is_held_by_leader(r);
}

// Returns whether the request may exceed its tenant's page quota. The prefix cache, which may save some pages, is not
// considered.
bool Invariants::may_be_over_quota(const Request& r) const {
  const Tenant& t = tenants_[r.params.tenant];
  const auto n = std::min(r.tokens.size() + 1, r.n_limit);
  return t.pages + mem::pages_for(n) > t.quota.max_kv_pages;
}

void Invariants::before_admit(Micros now) {
  waiting_.clear();
  looks_at_queue_ = s_.n_waiting() <= kShortQueue || ++n_turns_ % kLookEvery == 0;
  if (!looks_at_queue_) return;
  bool is_head_seen = false;
  s_.queue().for_each([&](const Request& r) {
    const bool is_first =
        waiting_.empty() || waiting_.back().tenant != r.params.tenant || waiting_.back().qos != r.params.qos;
    if (is_first) is_head_seen = false;
    const bool is_held = is_held_by_leader(r);
    waiting_.push_back({r.id, r.params.tenant, r.params.qos, r.order, is_held, !is_held && !is_head_seen,
                        now - std::max(r.queued_at, line_of(r).admitted_at) >= s_.options().starvation, false});
    if (!is_held) is_head_seen = true;
  });
}

void Invariants::count_listed() {
  std::ranges::fill(n_listed_, 0);
  for (std::uint32_t slot = 0; slot < s_.slots().size(); ++slot)
    for (const std::uint32_t page : s_.slots().pages(slot)) {
      if (page >= n_listed_.size()) return report("pages", fmt::format("slot {} lists page {}", slot, page));
      ++n_listed_[page];
    }
}

void Invariants::check_write(std::uint32_t slot, std::uint32_t page) {
  if (n_listed_[page] != 1 || s_.pages().meta(page).owner_slot != slot)
    report("writes", fmt::format("slot {} writes page {}, which {} slots list and slot {} owns", slot, page,
                                 n_listed_[page], s_.pages().meta(page).owner_slot));
}

// Checks that the plan holds copies of its requests' tokens and rows, so that the step need not read the requests.
void Invariants::check_contents(const StepPlan& plan) {
  std::uint32_t first = 0, n_rows = 0;  // index of the item's first token in the step; rows so far
  for (const PlanItem& item : plan.items) {
    const Request& r = *s_.in_slot(item.slot);
    const mem::SpanView tokens = r.tokens.with_guess().part(item.begin, item.n);
    const bool has_tokens = first + item.n <= plan.tokens.size() && n_rows + item.n_picks <= plan.rows.size() &&
                            plan.tokens.part(first, item.n) == tokens;
    if (!has_tokens || item.request != r.id || item.user != r.params.user ||
        item.ends_text != (item.n - item.n_drafts == r.n_left()))
      return report("plan", fmt::format("slot {}: the plan has other tokens than its request", item.slot));
    for (std::uint32_t i = item.n - item.n_picks; i < item.n; ++i) {
      const PlanRow& row = plan.rows[n_rows++];
      if (row.request != r.id || row.user != r.params.user || row.output.token_index != first + i ||
          row.output.position != item.begin + i + 1 || row.text.data() != r.tokens.ids().data() ||
          row.text.size() != row.output.position)
        return report("plan", fmt::format("slot {}: output row {} is not after token {}", item.slot, n_rows - 1, i));
    }
    first += item.n;
  }
  // No simulated request scores its prompt, so the plan has no further rows.
  if (first != plan.tokens.size() || n_rows != plan.rows.size())
    report("plan", fmt::format("{} ids and {} rows are planned, {} and {} are of items", plan.tokens.size(),
                               plan.rows.size(), first, n_rows));
}

void Invariants::after_plan_ahead(const StepPlan& plan) {
  count_listed();
  if (violation_) return;
  if (s_.n_waiting() > 0 && ++n_ahead_ > 8) report("ahead", fmt::format("{} steps while others wait", n_ahead_));
  const auto n = static_cast<std::uint32_t>(plan.items.size());
  if (n == 0 || plan.n_tokens != n || plan.n_decode != n || plan.n_outputs != n || plan.n_drafts != 0 ||
      plan.tokens.size() != n || plan.rows.size() != n || !plan.page_copies.empty() || !plan.restores.empty() ||
      !plan.saves.empty())
    return report("ahead",
                  fmt::format("{} tokens, {} rows and {} items are planned", plan.tokens.size(), plan.rows.size(), n));
  for (std::uint32_t slot = 0; slot < s_.slots().size(); ++slot)
    if (s_.in_slot(slot) != nullptr && s_.slots()[slot].state != SlotState::kDecode)
      report("ahead", fmt::format("slot {} is {}", slot, to_string(s_.slots()[slot].state)));
  for (std::uint32_t i = 0; i < n; ++i) {
    const PlanItem& item = plan.items[i];
    const PlanRow& row = plan.rows[i];
    const Request* r = s_.in_slot(item.slot);
    if (r == nullptr || item.request != r->id || item.user != r->params.user || item.begin != r->n_done + 1 ||
        item.begin != r->tokens.size() || item.n != 1 || item.n_picks != 1 || !item.is_decode ||
        plan.tokens.ids()[i] != kLastPick || row.output.token_index != i || row.output.position != item.begin + 1 ||
        row.request != r->id || item.begin + 1 >= r->n_limit || (i > 0 && item.slot <= plan.items[i - 1].slot))
      return report("ahead", fmt::format("slot {}: token {} is planned", item.slot, item.begin));
    const auto pages = s_.slots().pages(item.slot);
    if (item.begin / kPageTokens >= pages.size())
      return report("ahead",
                    fmt::format("slot {} is to write token {} in {} pages", item.slot, item.begin, pages.size()));
    check_write(item.slot, pages[item.begin / kPageTokens]);
  }
}

void Invariants::after_plan(const StepPlan& plan) {
  n_ahead_ = 0;
  std::uint32_t n_tokens = 0, n_decode = 0, n_drafts = 0, n_outputs = 0, next = 0;
  if (!plan.empty()) count_listed();
  if (violation_) return;
  for (const PageMove& copy : plan.page_copies) check_write(copy.slot, copy.to);
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const PlanItem& item = plan.items[i];
    const Request* r = s_.in_slot(item.slot);
    if (r == nullptr) return report("plan", fmt::format("slot {} is planned and has no request", item.slot));
    n_tokens += item.n;
    n_decode += item.is_decode;
    n_drafts += item.n_drafts;
    n_outputs += item.n_picks;
    const std::uint32_t n = item.n - item.n_drafts;
    const bool is_whole = item.begin == r->n_done && n > 0 &&
                          item.n_picks == (n == r->n_left() ? 1 + item.n_drafts : 0u) &&
                          (item.is_decode ? n == 1 : item.n <= s_.options().prefill_cap && item.n_drafts == 0) &&
                          item.n_drafts == r->tokens.n_guessed() * (item.is_decode ? 1 : 0) &&
                          item.n_drafts <= r->params.speculation.most;
    // A draft leads to one pick more than it has tokens, and all rows of the draft use the same variant of the position
    // encoding.
    const bool is_within = item.begin + item.n + 1 <= r->n_limit || item.n_drafts == 0;
    const auto& limits = s_.options().rope_limits;
    const std::uint32_t variant = s_.slots()[item.slot].rope_variant;
    const bool is_one_variant =
        item.n_drafts == 0 || variant >= limits.size() || item.begin + item.n <= limits[variant];
    if (!is_whole || !is_within || !is_one_variant || n > r->n_left())
      return report("plan", fmt::format("slot {}: tokens {} to {} planned, {} of {} are done", item.slot, item.begin,
                                        item.begin + item.n, r->n_done, r->tokens.size()));
    for (std::size_t j = 0; j < i; ++j)
      if (plan.items[j].slot == item.slot) return report("plan", fmt::format("slot {} is planned twice", item.slot));
    if (item.is_decode && i >= plan.n_decode) return report("plan", "a decoding slot comes after a prefill chunk");
    const auto pages = s_.slots().pages(item.slot);
    for (std::uint32_t p = item.begin / kPageTokens; p * kPageTokens < item.begin + item.n; ++p) {
      if (p >= pages.size())
        return report("plan", fmt::format("slot {} is to write page {} of {}", item.slot, p, pages.size()));
      check_write(item.slot, pages[p]);
    }
  }
  if (n_tokens != plan.n_tokens || n_decode != plan.n_decode || n_drafts != plan.n_drafts ||
      n_outputs != plan.n_outputs || n_tokens > s_.options().chunk_cap)
    report("plan",
           fmt::format("{} tokens, {} decoding, {} outputs; the plan says {}, {}, {}, the cap {}", n_tokens, n_decode,
                       n_outputs, plan.n_tokens, plan.n_decode, plan.n_outputs, s_.options().chunk_cap));
  check_contents(plan);
  for (const auto& [slot, id] : decoding_) {
    while (next < plan.n_decode && plan.items[next].slot < slot) ++next;  // both lists are in the order of slots
    const Request* r = s_.in_slot(slot);
    if (r != nullptr && r->id == id && (next >= plan.n_decode || plan.items[next].slot != slot))
      report("decode", fmt::format("slot {} decodes and is not in the plan of {} slots", slot, plan.n_decode));
  }
}

void Invariants::check_pages() {
  count_listed();
  if (violation_) return;
  std::uint32_t n_cached = 0, n_free = 0;
  for (std::uint32_t page = 0; page < n_listed_.size(); ++page) {
    const std::uint32_t refs = s_.pages().meta(page).ref_count;
    if (refs != n_listed_[page] && refs != n_listed_[page] + 1)
      return report("pages", fmt::format("page {} has {} references, {} slots list it", page, refs, n_listed_[page]));
    n_cached += refs - n_listed_[page];
    n_free += refs == 0;
  }
  if (n_cached != s_.prefixes().n_nodes() || n_free != s_.pages().n_free())
    report("pages", fmt::format("{} pages cached and {} free by their references, the cache has {}, the pool {}",
                                n_cached, n_free, s_.prefixes().n_nodes(), s_.pages().n_free()));
}

void Invariants::check_slots() {
  for (auto* counts : {&n_slots_, &n_pages_, &n_waiting_}) std::ranges::fill(*counts, 0);
  std::uint32_t n_free = 0;
  for (std::uint32_t i = 0; i < s_.slots().size(); ++i) {
    const Slot& slot = s_.slots()[i];
    const Request* r = s_.in_slot(i);
    if (r == nullptr) {
      const bool is_leased = std::ranges::find(leases, i) != leases.end();
      n_free += !is_leased;
      if (slot.state != (is_leased ? SlotState::kAdmitted : SlotState::kFree) || (!is_leased && slot.page_count > 0))
        report("slots", fmt::format("slot {} has no request, is {} and has {} pages", i, to_string(slot.state),
                                    slot.page_count));
      continue;
    }
    ++n_slots_[r->params.tenant];
    n_pages_[r->params.tenant] += r->n_charged;
    const bool is_running = slot.state == SlotState::kPrefill || slot.state == SlotState::kDecode;
    if (!is_running || r->slot != i || r->is_waiting || r->copy_pending)
      report("slots", fmt::format("slot {} ({}) disagrees with its request {:#x} in slot {} at {}", i,
                                  to_string(slot.state), r->id, r->slot, r->n_done));
    const auto is_own = [&](std::uint32_t page) { return s_.pages().meta(page).owner_slot == i; };
    const auto n_own = static_cast<std::uint32_t>(std::ranges::count_if(s_.slots().pages(i), is_own));
    if (r->n_done >= r->tokens.size() || slot.page_count * kPageTokens < r->n_done || n_own != r->n_charged ||
        r->n_lent != 0)
      report("slots", fmt::format("slot {}: {} of {} tokens done in {} pages, {} its own and {} charged", i, r->n_done,
                                  r->tokens.size(), slot.page_count, n_own, r->n_charged));
  }
  if (n_free != s_.slots().n_free())
    report("slots", fmt::format("{} slots are empty, {} count as free", n_free, s_.slots().n_free()));
}

void Invariants::check_tenants() {
  if (looks_at_queue_) s_.queue().for_each([&](const Request& r) { ++n_waiting_[r.params.tenant]; });
  for (TenantId id = 0; id < tenants_.size(); ++id) {
    const Tenant& t = tenants_[id];
    if (t.slots != n_slots_[id] || t.pages != n_pages_[id] || (looks_at_queue_ && t.waiting != n_waiting_[id]))
      report("quota", fmt::format("tenant {} has {} slots, {} pages, {} waiting; the book says {}, {}, {}", id,
                                  n_slots_[id], n_pages_[id], n_waiting_[id], t.slots, t.pages, t.waiting));
    if (t.slots > std::max(t.quota.max_concurrent_slots, last_slots_[id]) ||
        t.pages > std::max(t.quota.max_kv_pages, last_pages_[id]))
      report("quota", fmt::format("tenant {} has {} slots and {} pages, its quota is {} and {}", id, t.slots, t.pages,
                                  t.quota.max_concurrent_slots, t.quota.max_kv_pages));
    // If the tenant took pages beyond its reservation, the reservations of all other tenants must still be available.
    // The cache counts the partly filled page of a slot as evictable although it is not. Each slot has at most one such
    // page, so n_running pages are added.
    const bool took_floating = t.pages > last_pages_[id] && t.pages > t.quota.reserved_kv_pages;
    const std::uint64_t there = std::uint64_t{s_.pages().n_free()} + s_.prefixes().n_evictable() + s_.n_running();
    if (took_floating && checks_reserved && leases.empty() && tenants_.reserved_but_unused(id) > there)
      report("reserved", fmt::format("tenant {} took pages, {} are left and {} reserved for others", id, there,
                                     tenants_.reserved_but_unused(id)));
    last_slots_[id] = t.slots;
    last_pages_[id] = t.pages;
  }
}

void Invariants::after_step() {
  check_pages();
  check_slots();
  if (is_alone_) check_tenants();
  if (s_.stats().internal_errors > 0) report("internal", fmt::format("{} internal errors", s_.stats().internal_errors));
}

void Invariants::check_cache() {
  if (auto wrong = s_.prefixes().check(); !wrong.empty()) report("cache", std::move(wrong));
}

void Invariants::at_end(bool is_flushed) {
  check_cache();
  after_step();
  const std::uint32_t n_free = s_.pages().n_free(), n_cached = s_.prefixes().n_nodes();
  if (s_.slots().n_free() != s_.slots().size() || n_free + n_cached != s_.pages().n_pages())
    report("end", fmt::format("{} of {} slots are free; {} pages free, {} cached of {}", s_.slots().n_free(),
                              s_.slots().size(), n_free, n_cached, s_.pages().n_pages()));
  if (s_.prefixes().n_evictable() != n_cached)
    report("end", fmt::format("{} pages cached, {} evictable", n_cached, s_.prefixes().n_evictable()));
  if (is_flushed && n_cached > 0) report("end", fmt::format("{} pages are left after a flush", n_cached));
}

}  // namespace zinc_rt::sched::sim

#include "sched/sim/invariants.h"

#include <fmt/format.h>

#include <algorithm>

namespace zinc_rt::sched::sim {

using mem::kPageTokens;

namespace {

// A longer queue is walked now and then only.
constexpr std::uint32_t kShortQueue = 256, kLookEvery = 32;

}  // namespace

Invariants::Invariants(const Scheduler& scheduler, const TenantBook& tenants)
    : s_(scheduler),
      tenants_(tenants),
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

// Without looking into the prefix cache, which may spare it some pages.
bool Invariants::may_be_over_quota(const Request& r) const {
  const Tenant& t = tenants_[r.params.tenant];
  const auto n = std::min<std::size_t>(r.tokens.size() + 1, r.n_limit);
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

void Invariants::check_fifo(const Request& r) {
  for (const Waiting& w : waiting_) {
    if (w.tenant != r.params.tenant || w.qos != r.params.qos || w.order >= r.order || w.is_held || w.is_admitted)
      continue;
    if (s_.find(w.id) == nullptr) continue;
    report("fifo", fmt::format("request {:#x} (arrived as number {}) was admitted before request {:#x} (number {}) of "
                               "the same tenant {} and class",
                               r.id, r.order, w.id, w.order, w.tenant));
  }
}

void Invariants::check_share(const Request& r, const Request& w, Micros now) {
  const Tenant& mine = tenants_[r.params.tenant];
  const double weight = qos_weight(r.params.qos);
  const double now_dominant = tenants_.dominant_share(r.params.tenant, now);
  const double then =
      std::max({(mine.slots - 1.0) / mine.quota.max_concurrent_slots,
                (static_cast<double>(mine.pages) - r.n_charged) / mine.quota.max_kv_pages, mine.decode.used(now)}) /
      mine.quota.weight;
  const double before = tenants_.standing(r.params.tenant, r.params.qos, now) - (now_dominant - then) / weight;
  const double theirs = tenants_.standing(w.params.tenant, w.params.qos, now);
  if (before > theirs + 1e-9)
    report("share", fmt::format("tenant {} was given a slot at a standing of {}, tenant {} waits at {}",
                                r.params.tenant, before, w.params.tenant, theirs));
}

void Invariants::check_order(const Request& r, bool is_aged, bool is_last_of_tenant, bool did_preempt, Micros now) {
  for (const Waiting& before : waiting_) {
    const Request* w = before.is_head ? s_.find(before.id) : nullptr;
    if (w == nullptr || !w->is_waiting || before.is_admitted || !may_start(*w, now) || may_be_over_quota(*w)) continue;
    // A sibling before it may have lost its leader in this admission, and be the head of its queue since.
    const auto is_before_it = [&](const Waiting& other) {
      if (other.tenant != before.tenant || other.qos != before.qos || other.order >= before.order) return false;
      const Request* o = s_.find(other.id);
      return o != nullptr && o->is_waiting && !is_held_by_leader(*o);
    };
    if (std::ranges::any_of(waiting_, is_before_it)) continue;
    // Its tenant gave up a slot in this admission: it may have come to be able to start only after others.
    const auto is_of_tenant = [&](const Event& e) {
      return e.kind == EventKind::kPreempted && e.tenant == before.tenant;
    };
    if (did_preempt && std::ranges::any_of(s_.events(), is_of_tenant)) continue;
    const bool is_more_urgent = r.params.qos < w->params.qos;
    if (before.is_aged && line_of(*w).admitted_at < now) {
      if (r.order > w->order && !is_aged && !(is_more_urgent && did_preempt))
        report("starvation",
               fmt::format("request {:#x} has waited {} us and was overtaken by the younger request {:#x}", w->id,
                           w->waited_at(now), r.id));
      continue;
    }
    if (is_aged) continue;
    const bool is_first_class = r.params.qos == Qos::kInteractive, theirs = w->params.qos == Qos::kInteractive;
    if (theirs && !is_first_class)
      report("class",
             fmt::format("request {:#x} was admitted while the interactive request {:#x} could start and waits", r.id,
                         w->id));
    if (theirs == is_first_class && is_last_of_tenant && !did_preempt && r.params.tenant != w->params.tenant)
      check_share(r, *w, now);
  }
}

void Invariants::note_admitted(const Event& e, Micros now) {
  slot_since_[e.slot] = now;
  const Request* r = s_.find(e.request);
  if (r == nullptr) return;
  line_of(*r).admitted_at = now;
  longest_turn_ = std::max(longest_turn_, r->turn_ends - now);
}

void Invariants::check_yield(const Event& e, Micros now) {
  const Micros had = now - slot_since_[e.slot];
  if (had < s_.options().turn)
    report("turns", fmt::format("slot {} yields after {} us, a turn is {} us", e.slot, had, s_.options().turn));
  const Request* r = s_.find(e.request);
  if (r == nullptr) return;
  bool had_more = false;
  for (std::size_t level = 0; level <= static_cast<std::size_t>(r->params.qos); ++level) {
    const auto q = static_cast<Qos>(level);
    had_more |= s_.shares().running(e.tenant, q) + 1 > s_.shares().share(e.tenant, q);
  }
  if (!had_more) report("turns", fmt::format("tenant {} yields slot {} and has less than its share", e.tenant, e.slot));
}

// After admission: who still waits.
void Invariants::check_bound(Micros now) {
  const Micros step = now - last_admit_;
  last_admit_ = now;
  if (!checks_bound) return;
  longest_step_ = std::max(longest_step_, step);
  for (auto& lines : lines_)
    for (Line& line : lines) line.owed_us += line.since == kNever ? 0 : line.share * static_cast<double>(step);
  // Of requests of a level: slots that they have, and lines that have or want some.
  std::array<double, kQosCount> n_slots{}, n_lines{};
  for (TenantId t = 0; t < lines_.size(); ++t)
    for (std::size_t level = 0; level < kQosCount; ++level) {
      const auto q = static_cast<Qos>(level);
      const auto n_active = [&](Qos least) { return s_.shares().running(t, least) + s_.shares().waiting(t, least); };
      n_slots[level] += s_.shares().running(t, q);
      for (std::size_t c = level; c < kQosCount; ++c) {
        const std::uint32_t below = c + 1 < kQosCount ? n_active(static_cast<Qos>(c + 1)) : 0;
        n_lines[level] += n_active(static_cast<Qos>(c)) > below;
      }
    }
  std::vector<std::array<bool, kQosCount>>& is_waiting = line_waits_;
  is_waiting.assign(lines_.size(), {});
  if (leases.empty())
    s_.queue().for_each([&](const Request& r) {
      if (s_.shares().running(r.params.tenant, r.params.qos) > 0 || !may_start(r, now) || may_be_over_quota(r)) return;
      is_waiting[r.params.tenant][static_cast<std::size_t>(r.params.qos)] = true;
    });
  for (TenantId t = 0; t < lines_.size(); ++t)
    for (std::size_t c = 0; c < kQosCount; ++c) {
      Line& line = lines_[t][c];
      const Micros allowed_wait = s_.options().turn_after[c];
      if (!is_waiting[t][c]) line.since = kNever;
      if (line.since == kNever) {
        line.owed_us = 0;
        if (is_waiting[t][c]) line.since = now;
      }
      line.share = line.since != kNever && now - line.since >= allowed_wait
                       ? std::min({1.0, s_.shares().share(t, static_cast<Qos>(c)), n_slots[c] / n_lines[c]})
                       : 0;
      const double allowed = 3.0 * static_cast<double>(longest_turn_) + 4.0 * static_cast<double>(longest_step_);
      if (allowed > 0) bound_used = std::max(bound_used, line.owed_us / allowed);
      if (line.owed_us > allowed)
        report("bound", fmt::format("tenant {} waits {} us for a slot of class {} and is owed {:.0f} us of one, a turn "
                                    "is {} us",
                                    t, now - line.since, c, line.owed_us, longest_turn_));
    }
}

void Invariants::after_admit(Micros now) {
  bool did_preempt = false;
  std::uint32_t n_first = 0;
  for (const Event& e : s_.events()) {
    did_preempt |= e.kind == EventKind::kPreempted;
    if (e.kind == EventKind::kPreempted && e.is_turn) check_yield(e, now);
    if (e.kind != EventKind::kAdmitted) continue;
    note_admitted(e, now);
    ++n_first;
    for (Waiting& w : waiting_) w.is_admitted |= w.id == e.request;
    if (const Request* r = s_.find(e.request); r != nullptr && e.is_first) check_fifo(*r);
  }
  const auto events = s_.events();
  for (std::size_t i = 0; n_first > 0 && i < events.size(); ++i) {
    const Event& e = events[i];
    const Request* r = e.kind == EventKind::kAdmitted && e.is_first ? s_.find(e.request) : nullptr;
    if (r == nullptr || r->slot == kNone) continue;
    const bool is_last = std::none_of(
        events.begin() + static_cast<std::ptrdiff_t>(i) + 1, events.end(),
        [&](const Event& later) { return later.kind == EventKind::kAdmitted && later.tenant == e.tenant; });
    const bool is_aged =
        std::ranges::any_of(waiting_, [&](const Waiting& w) { return w.id == e.request && w.is_aged; });
    if (!e.is_turn) check_order(*r, is_aged, is_last, did_preempt, now);
  }
  check_bound(now);
  decoding_.clear();
  for (std::uint32_t slot = 0; slot < s_.slots().size(); ++slot) {
    const Request* r = s_.in_slot(slot);
    if (r != nullptr && s_.slots()[slot].state == SlotState::kDecode && s_.slots()[slot].output_backpressure == 0 &&
        tenants_[r->params.tenant].decode.has_any(now))
      decoding_.push_back({slot, r->id});
  }
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

void Invariants::after_plan(const StepPlan& plan) {
  std::uint32_t n_tokens = 0, n_decode = 0, n_outputs = 0, next = 0;
  if (!plan.empty()) count_listed();
  if (violation_) return;
  for (const PageMove& copy : plan.page_copies) check_write(copy.slot, copy.to);
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const PlanItem& item = plan.items[i];
    const Request* r = s_.in_slot(item.slot);
    if (r == nullptr) return report("plan", fmt::format("slot {} is planned and has no request", item.slot));
    n_tokens += item.n;
    n_decode += item.is_decode;
    n_outputs += item.samples;
    const bool is_whole = item.begin == r->n_done && item.n > 0 && item.samples == (item.n == r->n_left()) &&
                          (item.is_decode ? item.n == 1 && item.samples : item.n <= s_.options().prefill_cap);
    if (!is_whole || item.n > r->n_left())
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
  if (n_tokens != plan.n_tokens || n_decode != plan.n_decode || n_outputs != plan.n_outputs ||
      n_tokens > s_.options().chunk_cap)
    report("plan",
           fmt::format("{} tokens, {} decoding, {} outputs; the plan says {}, {}, {}, the cap {}", n_tokens, n_decode,
                       n_outputs, plan.n_tokens, plan.n_decode, plan.n_outputs, s_.options().chunk_cap));
  for (const auto& [slot, id] : decoding_) {
    while (next < plan.n_decode && plan.items[next].slot < slot) ++next;  // both in order of slots
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
    if (!is_running || r->slot != i || slot.request_handle != r->id || slot.tenant_id != r->params.tenant ||
        slot.position != r->n_done || slot.generated_len != r->n_generated() || r->is_waiting || r->copy_pending)
      report("slots", fmt::format("slot {} ({}) at {} disagrees with its request {:#x} in slot {} at {}", i,
                                  to_string(slot.state), slot.position, r->id, r->slot, r->n_done));
    const auto is_own = [&](std::uint32_t page) { return s_.pages().meta(page).owner_slot == i; };
    const auto n_own = static_cast<std::uint32_t>(std::ranges::count_if(s_.slots().pages(i), is_own));
    if (r->n_done >= r->tokens.size() || slot.page_count * kPageTokens < r->n_done || n_own != r->n_charged)
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
    // Pages that it took beyond its reservation left the others theirs. A page of a slot that is in the cache as a
    // partial leaf counts as evictable and is not: one a slot at most.
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
  check_tenants();
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

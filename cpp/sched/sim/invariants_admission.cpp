// Checks the rules about who gets a slot: fifo, class, starvation, share, turns and bound (invariants.h).
#include <fmt/format.h>

#include <algorithm>

#include "sched/sim/invariants.h"

namespace zinc_rt::sched::sim {

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
    // The leader of a sibling that arrived earlier may have ended in this admission. The sibling is then the first of
    // the queue.
    const auto is_before_it = [&](const Waiting& other) {
      if (other.tenant != before.tenant || other.qos != before.qos || other.order >= before.order) return false;
      const Request* o = s_.find(other.id);
      return o != nullptr && o->is_waiting && !is_held_by_leader(*o);
    };
    if (std::ranges::any_of(waiting_, is_before_it)) continue;
    // If the tenant lost a slot in this admission, its request may have become able to start only after other requests
    // were admitted.
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
    for (const Shares* shares : {&s_.shares(), &s_.shares_everywhere()})
      had_more |= shares->running(e.tenant, q) + 1 > shares->share(e.tenant, q);
  }
  if (!had_more) report("turns", fmt::format("tenant {} yields slot {} and has less than its share", e.tenant, e.slot));
}

// Called after each admission. Checks that no remaining request has waited longer than rule bound allows.
void Invariants::check_bound(Micros now) {
  const Micros step = now - last_admit_;
  last_admit_ = now;
  if (!checks_bound) return;
  longest_step_ = std::max(longest_step_, step);
  for (auto& lines : lines_)
    for (Line& line : lines) line.owed_us += line.since == kNever ? 0 : line.share * static_cast<double>(step);
  // n_slots[level]: slots held by requests of the level. n_lines[level]: lines (tenant and class) of the level that
  // hold or want slots.
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
      if (s_.shares_everywhere().running(r.params.tenant, r.params.qos) > 0 || !may_start(r, now) ||
          may_be_over_quota(r))
        return;
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
    if (r != nullptr && s_.slots()[slot].state == SlotState::kDecode && !s_.slots()[slot].is_held_up &&
        tenants_[r->params.tenant].decode.has_any(now))
      decoding_.push_back({slot, r->id});
  }
}

}  // namespace zinc_rt::sched::sim

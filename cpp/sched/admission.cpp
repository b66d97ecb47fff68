// Admission: which waiting request gets the next free slot. The requests of a tenant and class form a queue. The first
// requests of all queues are compared by these rules, in this order:
//   1 Requests come first if no request of their tenant and class got a slot for the time `starvation` or longer. Among
//     such requests the one that waited longest wins. So nobody starves.
//   2 Interactive requests come before others.
//   3 Requests come next if their tenant is owed a slot (turns.cpp) and their class got no slot for the time
//     `turn_after`. Among such requests the one that waited longest wins.
//   4 The lowest standing of the tenant wins. It is the dominant share divided by the weight of the class, plus the
//     lead in service over the least served tenant.
//   5 The earliest arrival wins.
// If the first request finds no slot or no pages and may not preempt, all other requests wait too, so that large
// requests are not overtaken for ever. Only two kinds of request may pass the first one: a more urgent request that
// preempts, and a request that is owed a slot.
#include <algorithm>

#include "sched/scheduler.h"

namespace zinc_rt::sched {

void Scheduler::apply_cancels(Micros now) {
  for (const RequestId id : cancelled_)
    if (Request* r = get(id); r != nullptr) finish(*r, r->cancel, now);
  cancelled_.clear();
  if (n_deadlines_ == 0) return;
  for (const auto& r : requests_)
    if (r != nullptr && r->params.deadline <= now) finish(*r, Finish::kDeadline, now);
}

bool Scheduler::may_start(const Request& r, Micros now) const {
  const Tenant& tenant = tenants_[r.params.tenant];
  if (tenant.slots >= tenant.quota.max_concurrent_slots || tenant.pages >= tenant.quota.max_kv_pages) return false;
  if (!tenant.prefill.has_any(now) || !tenant.decode.has_any(now)) return false;
  const Request* leader = r.params.after != 0 ? get(r.params.after) : nullptr;
  return leader == nullptr || leader->prompt_done;
}

bool Scheduler::comes_before(const Request& a, const Request& b, Micros now) const {
  const Micros a_wait = line_wait(a, now), b_wait = line_wait(b, now);
  const auto by_wait = [&] { return a_wait != b_wait ? a_wait > b_wait : a.order < b.order; };
  const bool a_aged = a_wait >= options_.starvation, b_aged = b_wait >= options_.starvation;
  if (a_aged != b_aged) return a_aged;
  if (a_aged) return by_wait();
  const bool a_first = a.params.qos == Qos::kInteractive, b_first = b.params.qos == Qos::kInteractive;
  if (a_first != b_first) return a_first;
  const bool a_owed = is_owed(a, now), b_owed = is_owed(b, now);
  if (a_owed != b_owed) return a_owed;
  if (a_owed) return by_wait();
  const double a_standing = tenants_.standing(a.params.tenant, a.params.qos, now);
  const double b_standing = tenants_.standing(b.params.tenant, b.params.qos, now);
  return a_standing != b_standing ? a_standing < b_standing : a.order < b.order;
}

// Returns the first request of a queue that may start now, or null. The siblings of a prompt with n choices wait until
// their leader has computed it. They are skipped, so that they do not delay requests behind them.
Request* Scheduler::first_startable(Request& head, Micros now) const {
  Request* r = &head;
  while (r != nullptr && r->params.after != 0 && r->skipped_in != round_ && get(r->params.after) != nullptr &&
         !get(r->params.after)->prompt_done)
    r = r->next;
  return r == nullptr || r->skipped_in == round_ || !may_start(*r, now) ? nullptr : r;
}

// Returns the request that admission tries next, or null. `blocked` is a request that found no room, or null. Only
// requests that are more urgent than it may pass.
Request* Scheduler::best_candidate(const Request* blocked, Micros now) {
  Request* best = nullptr;
  waiting_.for_each_head([&](Request& head) {
    Request* r = first_startable(head, now);
    if (r == nullptr || (blocked != nullptr && r->params.qos >= blocked->params.qos)) return;
    if (best == nullptr || comes_before(*r, *best, now)) best = r;
  });
  return best;
}

void Scheduler::start(Request& r, bool is_turn, Micros now) {
  waiting_.remove(r, now);
  Tenant& tenant = tenants_[r.params.tenant];
  note_waiting(r, -1);
  note_running(r, 1);
  shares_.note_admitted(r.params.tenant, r.params.qos, now);
  r.n_before_turn = r.tokens.size();
  r.turn_ends = now + turn_of(r);
  --tenant.waiting;
  ++tenant.slots;
  ++n_running_;
  ++stats_.admissions;
  r.admitted_order = next_admission_++;
  // A request that was preempted often or waited long may not be preempted for a while, so that it makes progress. At
  // most a quarter of the slots is protected in this way, so that urgent requests still find slots.
  constexpr std::uint32_t kQuantum = 32, kPreemptedOften = 2;
  const bool was_unlucky = r.n_preempted >= kPreemptedOften || r.waited >= options_.starvation;
  r.protected_until = 0;
  if (was_unlucky && n_protected_ < std::max(1u, slots_.size() / 4)) {
    r.protected_until = stats_.steps + kQuantum;
    ++n_protected_;
  }
  // If the cache has all tokens of a preempted request except the last, the request goes on decoding at once.
  move(r.slot, r.n_generated() > 0 && r.n_left() == 1 ? SlotState::kDecode : SlotState::kPrefill);
  Event e = event(EventKind::kAdmitted, r);
  e.is_first = !r.was_admitted;
  e.is_turn = is_turn;
  e.waited = r.waited;
  if (!r.was_admitted) {
    r.cached_tokens = std::min(r.n_done, r.n_prompt);
    stats_.prompt_tokens += r.n_prompt;
    stats_.cached_tokens += r.cached_tokens;
  }
  e.cached_tokens = r.cached_tokens;
  r.was_admitted = true;
  events_.push_back(e);
}

// Tries to give the request a slot. If slots or pages are missing, preempts the requests that must yield to this one.
// Returns kSkipped if the tenant's quota is the limit, and kBlocked if there is no room.
Scheduler::Outcome Scheduler::try_admit(Request& r, Ground ground, bool must_preempt, Micros now) {
  const bool is_turn = ground == Ground::kShare || is_owed(r, now);
  if (must_preempt && victim_for(r, ground, now) == nullptr) return Outcome::kBlocked;
  for (;;) {
    const Bind room = pages_.find_room(r, n_running_ > 0);
    if (room == Bind::kDone && !must_preempt) {
      take_slot(r);
      start(r, is_turn, now);
      return Outcome::kAdmitted;
    }
    if (room == Bind::kDone) pages_.let_go();
    if (room == Bind::kOverQuota) return Outcome::kSkipped;
    if (room == Bind::kNoPages && r.n_missing > victim_pages(r, ground, now))
      // Even preempting every possible victim would not free enough pages, so nobody is preempted.
      return Outcome::kBlocked;
    Request* victim = victim_for(r, ground, now);
    if (victim == nullptr) return Outcome::kBlocked;
    preempt(*victim, ground == Ground::kShare, now);
    must_preempt = false;
  }
}

void Scheduler::admit(Micros now) {
  const auto lock = tenants_.lock();
  apply_cancels(now);
  tenants_.refresh();
  shares_.settle(now);
  if (all_shares_) all_shares_->settle(now);
  ++round_;
  const Request* blocked = nullptr;
  while (Request* r = best_candidate(blocked, now)) {
    // While a more urgent request finds no room (`blocked`), request r may be admitted only by preempting another
    // request.
    const bool must_preempt = slots_.n_free() == 0 || (blocked != nullptr && n_running_ + n_leases_ > 0);
    const Outcome outcome = try_admit(*r, Ground::kClass, must_preempt, now);
    if (outcome == Outcome::kAdmitted) continue;
    // No other request runs, so waiting would not help. The quota, or the reservations of others, have changed since
    // the request arrived.
    const bool is_alone = outcome == Outcome::kBlocked ? n_running_ + n_leases_ == 0
                                                       : blocked == nullptr && tenants_[r->params.tenant].slots == 0;
    if (is_alone) {
      finish(*r, Finish::kOutOfPages, now);
      continue;
    }
    r->skipped_in = round_;
    // From here on, only requests that are more urgent than r are tried.
    if (outcome == Outcome::kBlocked) blocked = r;
  }
  give_turns(now);
}

}  // namespace zinc_rt::sched

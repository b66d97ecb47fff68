// Chooses the running requests that lose their slots to others. Requests are preempted only between two steps. The
// tokens of a preempted request stay, and the request returns to its position in the queue. Its pages stay in the
// prefix cache until other requests need them, so it can usually continue without computing its text again.
#include <algorithm>

#include "sched/scheduler.h"

namespace zinc_rt::sched {

// Returns whether a is preempted before b. A request of a less urgent class is preempted first. Within a class, it is a
// request of the tenant with the higher standing, because the tenant with the lower standing goes first
// (TenantBook::standing). Otherwise it is the request that was admitted later.
bool Scheduler::is_worse(const Request& a, const Request& b, Micros now) const {
  if (a.params.qos != b.params.qos) return a.params.qos > b.params.qos;
  if (a.params.tenant != b.params.tenant) {
    const double a_standing = tenants_.standing(a.params.tenant, a.params.qos, now);
    const double b_standing = tenants_.standing(b.params.tenant, b.params.qos, now);
    if (a_standing != b_standing) return a_standing > b_standing;
  }
  return a.admitted_order > b.admitted_order;
}

// Returns the running request that is preempted for a waiting one, or null. An interactive request displaces any other
// class. A standard request displaces a batch request only while its tenant's standing is lower, so that both tenants
// settle at shares by their weights.
Request* Scheduler::victim_for(const Request& candidate, Ground ground, Micros now) const {
  if (ground == Ground::kShare) return yielder_for(candidate, now);
  Request* victim = nullptr;
  for (Request* r : slot_requests_) {
    if (r == nullptr || r->params.qos <= candidate.params.qos || r->protected_until > stats_.steps) continue;
    if (victim == nullptr || is_worse(*r, *victim, now)) victim = r;
  }
  if (victim == nullptr || candidate.params.qos == Qos::kInteractive) return victim;
  const double mine = tenants_.standing(candidate.params.tenant, candidate.params.qos, now);
  return mine < tenants_.standing(victim->params.tenant, victim->params.qos, now) ? victim : nullptr;
}

// Returns how many pages would be freed at most if every request that the candidate may displace were preempted.
std::uint64_t Scheduler::victim_pages(const Request& candidate, Ground ground, Micros now) const {
  const auto gives_way = [&](const Request& r) {
    return ground == Ground::kShare ? may_yield(r, candidate, now)
                                    : r.params.qos > candidate.params.qos && r.protected_until <= stats_.steps;
  };
  std::uint64_t n = 0;
  for (const Request* r : slot_requests_)
    if (r != nullptr && gives_way(*r)) n += slots_[r->slot].page_count;
  return n;
}

// Returns the request that is preempted because the running request `grower` needs a page. Among the requests that are
// no more urgent than `grower`, it is the first in the order of is_worse(). It may be `grower` itself. If the tenant's
// quota is the limit, only that tenant's requests are considered. An interactive request is preempted only for its own
// tenant.
Request* Scheduler::victim_for_pages(const Request& grower, bool same_tenant, Micros now) const {
  Request* victim = slot_requests_[grower.slot];
  for (Request* r : slot_requests_) {
    if (r == nullptr || r->params.qos < grower.params.qos) continue;
    const bool is_own = r->params.tenant == grower.params.tenant;
    if (same_tenant ? !is_own : !is_own && r->params.qos == Qos::kInteractive) continue;
    if (is_worse(*r, *victim, now)) victim = r;
  }
  return victim;
}

void Scheduler::preempt(Request& r, bool is_turn, Micros now) {
  Event e = event(EventKind::kPreempted, r);
  e.is_turn = is_turn;
  events_.push_back(e);
  r.n_vain_turns = r.tokens.size() > r.n_before_turn ? 0 : r.n_vain_turns + 1;
  r.n_cached = r.n_done;
  move(r.slot, SlotState::kPreempted);
  release_slot(r, true);
  is_turn ? void(++stats_.turns) : void(++r.n_preempted);
  ++stats_.preemptions;
  ++tenants_[r.params.tenant].waiting;
  note_waiting(r, 1);
  waiting_.push(r, now);
}

}  // namespace zinc_rt::sched

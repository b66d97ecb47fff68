// Who gives way (design 18.5, 18.8), at step boundaries only. A preempted request goes back to its place in the queue
// with its tokens; its pages stay in the prefix cache while nobody needs them, so that it goes on where it was.
#include <algorithm>

#include "sched/scheduler.h"

namespace zinc_rt::sched {

// Whether a gives way before b: the lower class, then the tenant of higher standing, then the later admission.
bool Scheduler::is_worse(const Request& a, const Request& b, Micros now) const {
  if (a.params.qos != b.params.qos) return a.params.qos > b.params.qos;
  if (a.params.tenant != b.params.tenant) {
    const double a_standing = tenants_.standing(a.params.tenant, a.params.qos, now);
    const double b_standing = tenants_.standing(b.params.tenant, b.params.qos, now);
    if (a_standing != b_standing) return a_standing > b_standing;
  }
  return a.admitted_order > b.admitted_order;
}

// For a waiting request: an interactive one displaces any other class; a standard one displaces batch while its
// tenant's standing is the lower, so that the two settle at their weights.
Request* Scheduler::victim_for(const Request& candidate, Micros now) const {
  Request* victim = nullptr;
  for (Request* r : slot_requests_) {
    if (r == nullptr || r->params.qos <= candidate.params.qos || r->protected_until > stats_.steps) continue;
    if (victim == nullptr || is_worse(*r, *victim, now)) victim = r;
  }
  if (victim == nullptr || candidate.params.qos == Qos::kInteractive) return victim;
  const double mine = tenants_.standing(candidate.params.tenant, candidate.params.qos, now);
  return mine < tenants_.standing(victim->params.tenant, victim->params.qos, now) ? victim : nullptr;
}

// The most pages that could come back if all those gave way.
std::uint64_t Scheduler::victim_pages(const Request& candidate) const {
  std::uint64_t n = 0;
  for (const Request* r : slot_requests_)
    if (r != nullptr && r->params.qos > candidate.params.qos && r->protected_until <= stats_.steps)
      n += slots_[r->slot].page_count;
  return n;
}

// For a running request that needs a page: of those no more urgent than itself (its tenant's, when the tenant's quota
// is the limit) the first to give way, which may be itself. Interactive requests yield to none but their own tenant.
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

void Scheduler::preempt(Request& r, Micros now) {
  events_.push_back(event(EventKind::kPreempted, r));
  move(r.slot, SlotState::kPreempted);
  release_slot(r, true);
  ++r.n_preempted;
  ++stats_.preemptions;
  ++tenants_[r.params.tenant].waiting;
  waiting_.push(r, now);
}

}  // namespace zinc_rt::sched

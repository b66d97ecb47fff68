// Turns: how tenants share slots over time (docs/tenancy.md, "Turns"). Admission only gives out free slots, so long
// requests would hold their slots to the end. Therefore a tenant with more slots than its share yields a slot between
// two steps. The slot goes to a request that has waited long enough for its class and whose tenant has less than its
// share (the tenant "is owed" a slot). The rules:
//   - A request holds its slot for at least a turn, because giving a slot to another request costs time. A turn is four
//     times as long as computing the part of the text that was not in the prefix cache, but at least Options::turn and
//     at most four times Options::turn. If no token was picked in a turn (pages were evicted, or a recurrent state
//     began far back), the request's next turn is twice as long. So every request makes progress.
//   - A tenant yields only slots above its share, and never to itself.
//   - If a model has several replicas, shares are counted over the slots of all replicas together. A slot is yielded on
//     the replica where the request waits.
//   - If the tenants of several requests are owed a slot, the request whose tenant and class got no slot for longest is
//     next.
#include <algorithm>

#include "sched/scheduler.h"

namespace zinc_rt::sched {
namespace {

// A turn lasts this many times as long as it takes to compute the missing part of the request's text. The missing part
// is the part that was not in the prefix cache when the turn began.
constexpr double kWorthwhile = 4;
// A turn is vain if no token was picked in it. Each vain turn in a row doubles the request's next turn once more. There
// are at most this many doublings.
constexpr std::uint32_t kMostVainTurns = 8;

}  // namespace

// Returns the most urgent class from which this request may take a slot. It is the request's own class, or standard if
// it is a batch request that starves.
Qos Scheduler::level_of(const Request& r, Micros now) const {
  return r.params.qos == Qos::kBatch && is_aged(r, now) ? Qos::kStandard : r.params.qos;
}

// Returns whether the request's tenant and class have waited so long for a slot that admission compares shares before
// standings.
bool Scheduler::is_owed(const Request& r, Micros now) const {
  return line_wait(r, now) >= options_.turn_after[static_cast<std::size_t>(r.params.qos)] &&
         shares_everywhere().is_owed(r.params.tenant, level_of(r, now));
}

Micros Scheduler::turn_of(const Request& r) const {
  StepSize missing;
  missing.add(r.n_done, r.n_left());
  const double least = static_cast<double>(options_.turn), begin_us = cost().is_known() ? cost().step_us(missing) : 0;
  const double us = std::clamp(kWorthwhile * begin_us, least, kWorthwhile * least);
  return static_cast<Micros>(us) << std::min(r.n_vain_turns, kMostVainTurns);
}

bool Scheduler::may_yield(const Request& r, const Request& candidate, const Shares& shares, Micros now) const {
  const Qos level = level_of(candidate, now);
  const TenantId tenant = r.params.tenant;
  return r.params.qos >= level && r.turn_ends <= now && tenant != candidate.params.tenant &&
         shares.has_too_much(tenant, level);
}

// Returns whether `r` may yield its slot to the candidate. Its tenant must have more than its share over all replicas,
// or more than its share of this replica's slots alone. The second case counts even if the tenant has no more than its
// share over all replicas. So nobody waits longer than if this replica were the only one.
bool Scheduler::may_yield(const Request& r, const Request& candidate, Micros now) const {
  return may_yield(r, candidate, shares_everywhere(), now) || (all_shares_ && may_yield(r, candidate, shares_, now));
}

// Returns the request that yields its slot to the candidate, or null. The least urgent request yields first. Of equally
// urgent requests, one of the tenant furthest above its share yields, and of this tenant's requests the last admitted.
Request* Scheduler::yielder_for(const Request& candidate, const Shares& shares, Micros now) const {
  const Qos level = level_of(candidate, now);
  Request* yielder = nullptr;
  for (Request* r : slot_requests_) {
    if (r == nullptr || !may_yield(*r, candidate, shares, now)) continue;
    const auto comes_first = [&](const Request& a, const Request& b) {
      if (a.params.qos != b.params.qos) return a.params.qos > b.params.qos;
      const double a_arrears = shares.arrears(a.params.tenant, level),
                   b_arrears = shares.arrears(b.params.tenant, level);
      return a_arrears != b_arrears ? a_arrears < b_arrears : a.admitted_order > b.admitted_order;
    };
    if (yielder == nullptr || comes_first(*r, *yielder)) yielder = r;
  }
  return yielder;
}

Request* Scheduler::yielder_for(const Request& candidate, Micros now) const {
  Request* yielder = yielder_for(candidate, shares_everywhere(), now);
  return yielder != nullptr || !all_shares_ ? yielder : yielder_for(candidate, shares_, now);
}

Request* Scheduler::most_owed(Micros now) const {
  Request* most = nullptr;
  waiting_.for_each_head([&](Request& head) {
    Request* r = first_startable(head, now);
    if (r == nullptr || now - r->queued_at < options_.turn_after[static_cast<std::size_t>(r->params.qos)]) return;
    if (!shares_everywhere().is_owed(r->params.tenant, level_of(*r, now))) return;
    const auto comes_first = [&](const Request& a, const Request& b) {
      if (a.params.qos != b.params.qos) return a.params.qos < b.params.qos;
      const Micros a_wait = line_wait(a, now), b_wait = line_wait(b, now);
      return a_wait != b_wait ? a_wait > b_wait : a.order < b.order;
    };
    if (most == nullptr || comes_first(*r, *most)) most = r;
  });
  return most;
}

void Scheduler::give_turns(Micros now) {
  shares_.rest_if_nobody_waits();
  if (all_shares_) all_shares_->rest_if_nobody_waits();
  if (waiting_.size() == 0) return;
  shares_.share_out(tenants_, now);
  if (all_shares_) all_shares_->share_out(tenants_, now);
  ++round_;
  while (Request* r = most_owed(now)) {
    if (try_admit(*r, Ground::kShare, slots_.n_free() == 0, now) != Outcome::kAdmitted) r->skipped_in = round_;
  }
}

}  // namespace zinc_rt::sched

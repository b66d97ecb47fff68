#include "sched/shares.h"

#include <algorithm>

namespace zinc_rt::sched {
namespace {

constexpr double kTiny = 1e-9;
constexpr std::array<Qos, kQosCount> kLevels = {Qos::kInteractive, Qos::kStandard, Qos::kBatch};

// Returns how many more slots the tenant's quota allows it at this moment.
std::uint32_t may_add(const Tenant& t, Micros now) {
  const bool is_held = t.pages >= t.quota.max_kv_pages || !t.prefill.has_any(now) || !t.decode.has_any(now);
  return is_held ? 0 : t.quota.max_concurrent_slots - std::min(t.quota.max_concurrent_slots, t.slots);
}

}  // namespace

std::uint32_t Shares::running(TenantId tenant, Qos level) const {
  std::int64_t n = 0;
  for (std::size_t c = index(level); c < kQosCount; ++c) n += at(tenant).lines[c].running;
  return static_cast<std::uint32_t>(n);
}

std::uint32_t Shares::waiting(TenantId tenant, Qos level) const {
  std::int64_t n = 0;
  for (std::size_t c = index(level); c < kQosCount; ++c) n += at(tenant).lines[c].waiting;
  return static_cast<std::uint32_t>(n);
}

bool Shares::is_owed(TenantId tenant, Qos level) const {
  return is_contended_ && running(tenant, level) + kTiny < share(tenant, level) && arrears(tenant, level) > 0;
}

bool Shares::has_too_much(TenantId tenant, Qos level) const {
  return is_contended_ && running(tenant, level) > share(tenant, level) + kTiny;
}

void Shares::settle(Micros now) {
  const double seconds = is_contended_ ? 1e-6 * static_cast<double>(std::max<Micros>(0, now - settled_at_)) : 0;
  settled_at_ = std::max(settled_at_, now);  // the clocks of replicas may differ by some microseconds
  if (seconds == 0) return;
  for (TenantId t = 0; t < accounts_.size(); ++t)
    for (const Qos level : kLevels) {
      double& arrears = accounts_[t].arrears[index(level)];
      const std::uint32_t n = running(t, level);
      // A tenant with nothing to run does not save up time.
      const double most = n + waiting(t, level) > 0 ? most_arrears_ : 0;
      arrears = std::clamp(arrears + seconds * (share(t, level) - n), -most_arrears_, most);
    }
}

void Shares::share_out(const TenantBook& tenants, Micros now) {
  is_contended_ = true;
  for (const Qos level : kLevels) share_out_level(level, tenants, now);
}

// Divides the slots of a level between tenants in proportion to their weights. Slots that a tenant has no requests for
// are divided between the other tenants.
void Shares::share_out_level(Qos level, const TenantBook& tenants, Micros now) {
  claims_.clear();
  double left = 0, weights = 0;
  for (TenantId t = 0; t < accounts_.size(); ++t) {
    const std::uint32_t n_running = running(t, level), n_waiting = waiting(t, level);
    accounts_[t].share[index(level)] = 0;
    if (n_running + n_waiting == 0) continue;
    std::size_t c = index(level);  // index of the level's most urgent class, which names the level
    while (accounts_[t].lines[c].running + accounts_[t].lines[c].waiting == 0) ++c;
    const Tenant& tenant = tenants[t];
    const double wanted = n_running + std::min(n_waiting, may_add(tenant, now));
    claims_.push_back({t, tenant.quota.weight * qos_weight(static_cast<Qos>(c)), wanted});
    left += n_running;
    weights += claims_.back().weight;
  }
  for (bool is_settled = false; !is_settled && !claims_.empty();) {
    is_settled = true;
    const double part = left / weights;
    std::erase_if(claims_, [&](const Claim& claim) {
      if (claim.wanted > part * claim.weight) return false;
      accounts_[claim.tenant].share[index(level)] = claim.wanted;
      left -= claim.wanted;
      weights -= claim.weight;
      is_settled = false;
      return true;
    });
  }
  for (const Claim& claim : claims_)
    accounts_[claim.tenant].share[index(level)] = std::max(0.0, left) / weights * claim.weight;
}

}  // namespace zinc_rt::sched

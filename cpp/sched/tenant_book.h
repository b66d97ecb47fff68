// What each tenant may use, is using and has used, over all models of an engine and all their replicas. So quotas hold
// across them.
// Thread rule: the thread that holds lock(); any thread may call lock(). Schedulers that share a book lock it in their
// calls between steps, never during a step. What they show to other threads is written under this lock.
#pragma once

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

#include "sched/types.h"

namespace zinc_rt::sched {

// A token bucket: tokens flow in at a rate, up to the amount of five seconds. It may be overdrawn. Then its tenant
// waits until the debt is repaid, so the rate is a soft limit, averaged over a window.
class TokenBucket {
 public:
  static constexpr double kWindowSeconds = 5;

  void set_rate(double tokens_per_s, Micros now);
  void take(double tokens, Micros now);
  bool has_any(Micros now) const { return level(now) > 0; }
  // How much of the window is used: 0 when unused, 1 when all of it is, more when the bucket is in debt.
  double used(Micros now) const { return 1 - level(now) / (rate_ * kWindowSeconds); }
  // When has_any() will be true.
  Micros ready_at(Micros now) const;

 private:
  double level(Micros now) const;
  double rate_ = 1, level_ = 0;
  Micros filled_at_ = 0;
  bool is_new_ = true;
};

struct Tenant {
  Quota quota;
  std::uint32_t slots = 0;    // in use now
  std::uint32_t pages = 0;    // charged now: pages that its slots took from the pool, without prefix hits
  std::uint32_t waiting = 0;  // requests
  std::uint32_t pages_peak = 0;
  TokenBucket decode, prefill;
  // Tokens served divided by weight. A prompt token counts once, a generated token twice: the virtual counter of VTC
  // (Sheng et al., OSDI 2024).
  double service = 0;
  void charge_page() { pages_peak = std::max(pages_peak, ++pages); }
  bool is_active() const { return slots > 0 || waiting > 0; }
};

class TenantBook {
 public:
  // Not recursive. REQUIRES: no other lock is waited for while it is held.
  [[nodiscard]] std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }

  TenantId add(const Quota& quota, Micros now);  // may give an id that was removed
  // REQUIRES: the tenant has nothing waiting, running or cached.
  void remove(TenantId id);
  void set_quota(TenantId id, const Quota& quota, Micros now);
  Tenant& operator[](TenantId id) { return tenants_[id]; }
  const Tenant& operator[](TenantId id) const { return tenants_[id]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(tenants_.size()); }

  // The dominant share (DRF), divided by the weight. It is the largest of three fractions of the tenant's quota: slots
  // in use, pages in use, and the used part of its decode window.
  double dominant_share(TenantId id, Micros now) const;
  // The number that admission and preemption compare: the dominant share, plus the tenant's lead in service over the
  // least served active tenant, in units of kServiceScale. The lead counts up to kMostAhead units, so a tenant that was
  // served while others asked for little is not behind them for long. The dominant share balances tenants at once,
  // service balances them over time.
  double standing(TenantId id, Qos qos, Micros now) const;
  void serve(TenantId id, Qos qos, std::uint32_t prefill_tokens, std::uint32_t decode_tokens, Micros now);
  // Rows that gave nothing, as wrong drafts: they count as a prompt's tokens do, but no rate is charged for them.
  void serve_in_vain(TenantId id, Qos qos, std::uint32_t n_rows);
  // Makes a tenant that was idle as much served as the least served active tenant, so that nobody saves up service.
  void note_arrival(TenantId id);
  // Called once a step: finds the least service among active tenants.
  void refresh();
  // Rises when pages are freed in any model, or a quota changes. A request that found no room may then find some.
  std::uint64_t room_epoch() const { return room_epoch_; }
  void note_room() { ++room_epoch_; }
  std::uint64_t total_reserved() const { return total_reserved_; }
  std::uint64_t reserved_but_unused(TenantId except) const;

  static constexpr double kServiceScale = 8192, kMostAhead = 4;

 private:
  mutable std::mutex mutex_;
  std::deque<Tenant> tenants_;
  std::vector<TenantId> removed_;
  double least_service_ = 0;
  std::uint64_t total_reserved_ = 0;  // pages
  std::uint64_t room_epoch_ = 1;
};

}  // namespace zinc_rt::sched

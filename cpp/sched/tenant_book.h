// TenantBook records, for each tenant, its quota, what it uses now, and what it was served. All models of an engine and
// all their replicas share one book, so that a quota holds for all of them together.
// Thread rule: only the thread that holds lock() may use it; any thread may call lock(). The schedulers that share a
// book lock it in their calls between steps, and never during a step. Data that they show to other threads is written
// under this lock.
#pragma once

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

#include "sched/types.h"

namespace zinc_rt::sched {

// A token bucket limits the rate of a tenant's tokens. The bucket gains tokens at the rate, up to the tokens of five
// seconds. Its level may become negative. The tenant then waits until the level is positive again. So the rate is a
// soft limit, averaged over a window of five seconds.
class TokenBucket {
 public:
  static constexpr double kWindowSeconds = 5;

  void set_rate(double tokens_per_s, Micros now);
  void take(double tokens, Micros now);
  bool has_any(Micros now) const { return has_after(0, now); }
  // Returns whether has_any() would be true after take(tokens).
  bool has_after(double tokens, Micros now) const { return level(now) > tokens; }
  // Returns the used fraction of the window's tokens: 0 if the bucket is full, 1 if it is empty, more than 1 if its
  // level is negative.
  double used(Micros now) const { return 1 - level(now) / (rate_ * kWindowSeconds); }
  // Returns the first moment at which has_any() will be true.
  Micros ready_at(Micros now) const;

 private:
  double level(Micros now) const;
  double rate_ = 1, level_ = 0;
  Micros filled_at_ = 0;
  bool is_new_ = true;
};

struct Tenant {
  Quota quota;
  std::uint32_t slots = 0;  // slots that its requests hold now
  // Pages that are charged now: pages that its slots took from the pool, but not pages found in the prefix cache.
  std::uint32_t pages = 0;
  std::uint32_t waiting = 0;  // requests that wait for a slot
  std::uint32_t pages_peak = 0;
  TokenBucket decode, prefill;
  // The tokens that the tenant was served, divided by its weight. A prompt token counts once, a generated token twice.
  // This is the virtual counter of VTC (Sheng et al., OSDI 2024).
  double service = 0;
  void charge_page() { pages_peak = std::max(pages_peak, ++pages); }
  bool is_active() const { return slots > 0 || waiting > 0; }
};

class TenantBook {
 public:
  // Locks the book. The lock is not recursive. REQUIRES: no thread waits for another lock while it holds this one.
  [[nodiscard]] std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }

  // Returns the new tenant's id, which may be a removed tenant's former id.
  TenantId add(const Quota& quota, Micros now);
  // Frees the id for another tenant. REQUIRES: the tenant has no waiting or running request and no cached prefix.
  void remove(TenantId id);
  void set_quota(TenantId id, const Quota& quota, Micros now);
  Tenant& operator[](TenantId id) { return tenants_[id]; }
  const Tenant& operator[](TenantId id) const { return tenants_[id]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(tenants_.size()); }

  // Returns the dominant share of the tenant (DRF), divided by its weight. The dominant share is the largest of three
  // fractions of the tenant's quota: slots in use, pages in use, and the used part of its decode window.
  double dominant_share(TenantId id, Micros now) const;
  // Returns the number by which admission and preemption compare tenants; the tenant with the lower number goes first.
  // The number is the dominant share plus the tenant's lead in service over the least served active tenant, in units of
  // kServiceScale. The lead counts up to kMostAhead units, so that a tenant that was served while other tenants had few
  // requests is not put last for long. The dominant share balances tenants at once; service balances them over time.
  double standing(TenantId id, Qos qos, Micros now) const;
  void serve(TenantId id, Qos qos, std::uint32_t prefill_tokens, std::uint32_t decode_tokens, Micros now);
  // Counts rows that a step computed for nothing, such as wrong drafts. Such rows add to the tenant's service like
  // prompt tokens, but do not count for its rate limits.
  void serve_in_vain(TenantId id, Qos qos, std::uint32_t n_rows);
  // Called when a request arrives. If the tenant was idle, raises its service to that of the least served active
  // tenant, so that no tenant gains an advantage by having been idle.
  void note_arrival(TenantId id);
  // Finds the least service among the active tenants. The scheduler calls it once per step.
  void refresh();
  // A counter that rises when pages are freed in any model or a quota changes. A request that found no room tries again
  // only after it has risen.
  std::uint64_t room_epoch() const { return room_epoch_; }
  void note_room() { ++room_epoch_; }
  std::uint64_t total_reserved() const { return total_reserved_; }
  std::uint64_t reserved_but_unused(TenantId except) const;

  static constexpr double kServiceScale = 8192, kMostAhead = 4;

 private:
  mutable std::mutex mutex_;
  // Index: the tenant's id. removed_ lists ids that may be used again.
  std::deque<Tenant> tenants_;
  std::vector<TenantId> removed_;
  double least_service_ = 0;
  std::uint64_t total_reserved_ = 0;  // pages reserved by all quotas together
  // Rises whenever slots or pages become free, so that a request that found no room is tried again.
  std::uint64_t room_epoch_ = 1;
};

}  // namespace zinc_rt::sched

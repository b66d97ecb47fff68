#include "sched/tenant_book.h"

#include <algorithm>
#include <cmath>

namespace zinc_rt::sched {

const char* to_string(Finish reason) {
  static constexpr const char* kNames[kFinishCount] = {
      "stop",         "length",   "cancelled",    "deadline",   "client_too_slow", "sink_failed",
      "device_fault", "shutdown", "out_of_pages", "bad_logits", "processor_failed"};
  return kNames[static_cast<std::size_t>(reason)];
}

void TokenBucket::set_rate(double tokens_per_s, Micros now) {
  // Unused credit is kept as a fraction of the window, so that it survives a change of the rate. Debt is kept in tokens
  // and repaid at the new rate.
  const double before = is_new_ ? 0 : used(now);
  const double debt = is_new_ ? 0 : std::max(0.0, -level(now));
  rate_ = tokens_per_s;
  level_ = before > 1 ? -debt : (1 - before) * rate_ * kWindowSeconds;
  filled_at_ = now;
  is_new_ = false;
}

double TokenBucket::level(Micros now) const {
  const double filled = level_ + rate_ * static_cast<double>(std::max<Micros>(0, now - filled_at_)) * 1e-6;
  return std::min(filled, rate_ * kWindowSeconds);
}

void TokenBucket::take(double tokens, Micros now) {
  level_ = level(now) - tokens;
  filled_at_ = std::max(filled_at_, now);
}

Micros TokenBucket::ready_at(Micros now) const {
  const double missing = -level(now);
  if (missing < 0) return now;
  return now + 1 + static_cast<Micros>(std::min(1e15, std::ceil(missing / rate_ * 1e6)));
}

TenantId TenantBook::add(const Quota& quota, Micros now) {
  TenantId id = size();
  if (removed_.empty()) {
    tenants_.emplace_back();
  } else {
    id = removed_.back();
    removed_.pop_back();
  }
  tenants_[id].service = least_service_;
  set_quota(id, quota, now);
  return id;
}

void TenantBook::remove(TenantId id) {
  total_reserved_ -= tenants_[id].quota.reserved_kv_pages;
  tenants_[id] = {};
  note_room();
  removed_.push_back(id);
}

void TenantBook::set_quota(TenantId id, const Quota& quota, Micros now) {
  Tenant& tenant = tenants_[id];
  total_reserved_ += quota.reserved_kv_pages;
  total_reserved_ -= tenant.quota.reserved_kv_pages;
  tenant.quota = quota;
  note_room();
  tenant.decode.set_rate(quota.decode_tokens_per_s, now);
  tenant.prefill.set_rate(quota.prefill_tokens_per_s, now);
}

double TenantBook::dominant_share(TenantId id, Micros now) const {
  const Tenant& t = tenants_[id];
  const double slots = static_cast<double>(t.slots) / t.quota.max_concurrent_slots;
  const double pages = static_cast<double>(t.pages) / t.quota.max_kv_pages;
  return std::max({slots, pages, t.decode.used(now)}) / t.quota.weight;
}

double TenantBook::standing(TenantId id, Qos qos, Micros now) const {
  const double ahead = std::max(0.0, tenants_[id].service - least_service_);
  return dominant_share(id, now) / qos_weight(qos) + std::min(ahead / kServiceScale, kMostAhead);
}

void TenantBook::serve(TenantId id, Qos qos, std::uint32_t prefill_tokens, std::uint32_t decode_tokens, Micros now) {
  Tenant& t = tenants_[id];
  if (prefill_tokens > 0) t.prefill.take(prefill_tokens, now);
  if (decode_tokens > 0) t.decode.take(decode_tokens, now);
  t.service += (prefill_tokens + 2.0 * decode_tokens) / (t.quota.weight * qos_weight(qos));
}

void TenantBook::serve_in_vain(TenantId id, Qos qos, std::uint32_t n_rows) {
  Tenant& t = tenants_[id];
  t.service += n_rows / (t.quota.weight * qos_weight(qos));
}

void TenantBook::note_arrival(TenantId id) {
  Tenant& t = tenants_[id];
  if (!t.is_active()) t.service = std::max(t.service, least_service_);
}

void TenantBook::refresh() {
  double least = INFINITY;
  for (const Tenant& t : tenants_)
    if (t.is_active()) least = std::min(least, t.service);
  if (least != INFINITY) least_service_ = least;
}

std::uint64_t TenantBook::reserved_but_unused(TenantId except) const {
  std::uint64_t sum = 0;
  for (TenantId id = 0; id < size(); ++id)
    if (id != except)
      sum += tenants_[id].quota.reserved_kv_pages - std::min(tenants_[id].quota.reserved_kv_pages, tenants_[id].pages);
  return sum;
}

}  // namespace zinc_rt::sched

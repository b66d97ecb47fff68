// The scheduler's basic types: ids, times, classes of urgency, quotas, and reasons for the end of a request. These
// types depend on no model, device or clock.
// Thread rule: plain values.
#pragma once

#include <cstdint>

#include "base/speculate.h"
#include "mem/page_pool.h"

namespace zinc_rt::sched {

using mem::kNone;
using TenantId = std::uint32_t;
using RequestId = std::uint64_t;  // 0 means no request
using Micros = std::int64_t;      // microseconds since a fixed moment, which the caller of the scheduler chooses

inline constexpr Micros kNever = INT64_MAX;
inline constexpr std::uint32_t kMostDrafts = kMostGuesses;

// The class of a request: how urgent it is. A lower value is more urgent.
enum class Qos : std::uint8_t { kInteractive, kStandard, kBatch };
inline constexpr std::size_t kQosCount = 3;

// A batch request counts four times as much against its tenant as a request of another class, in its share and in its
// service.
inline double qos_weight(Qos qos) {
  return qos == Qos::kBatch ? 0.25 : 1.0;
}

struct Quota {
  std::uint32_t max_concurrent_slots = 4;
  std::uint32_t max_kv_pages = 4096;
  std::uint32_t reserved_kv_pages = 0;  // pages that only this tenant may take
  std::uint32_t max_context_tokens = 128000;
  // The two rate limits are averaged over TokenBucket::kWindowSeconds (5 s).
  double decode_tokens_per_s = 1000;
  double prefill_tokens_per_s = 100000;
  double weight = 1;  // relative to other tenants: twice the weight, twice the share
  Qos qos = Qos::kStandard;
  // Tenants with the same group share cached prefixes; kNone: the tenant shares none.
  std::uint32_t isolation_group = kNone;
};

enum class Finish : std::uint8_t {
  kStop,
  kLength,
  kCancelled,
  kDeadline,
  kClientTooSlow,
  kSinkFailed,
  kFault,
  kShutdown,
  kOutOfPages,
  kBadLogits,  // no token could be picked because the largest logit was not finite
  kProcessorFailed,
};
inline constexpr std::size_t kFinishCount = 11;
const char* to_string(Finish reason);

}  // namespace zinc_rt::sched

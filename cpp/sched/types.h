// The types of the scheduler: ids, times, classes and quotas. None depends on a model, a device or a clock.
// Thread rule: plain values.
#pragma once

#include <cstdint>

#include "base/speculate.h"
#include "mem/page_pool.h"

namespace zinc_rt::sched {

using mem::kNone;
using TenantId = std::uint32_t;
using RequestId = std::uint64_t;  // 0: none
using Micros = std::int64_t;      // since any fixed moment

inline constexpr Micros kNever = INT64_MAX;
inline constexpr std::uint32_t kMostDrafts = kMostGuesses;

// Lower is more urgent.
enum class Qos : std::uint8_t { kInteractive, kStandard, kBatch };
inline constexpr std::size_t kQosCount = 3;

// A batch request counts four times against its tenant, in shares and in service.
inline double qos_weight(Qos qos) {
  return qos == Qos::kBatch ? 0.25 : 1.0;
}

struct Quota {
  std::uint32_t max_concurrent_slots = 4;
  std::uint32_t max_kv_pages = 4096;
  std::uint32_t reserved_kv_pages = 0;  // kept free for this tenant, whatever others do
  std::uint32_t max_context_tokens = 128000;
  double decode_tokens_per_s = 1000;  // both rates are smoothed over kRateWindow
  double prefill_tokens_per_s = 100000;
  double weight = 1;  // of its share, relative to other tenants
  Qos qos = Qos::kStandard;
  std::uint32_t isolation_group = kNone;  // tenants of one group share prefixes
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
  kBadLogits,  // no token could be picked: the largest logit was no finite number
  kProcessorFailed,
};
inline constexpr std::size_t kFinishCount = 11;
const char* to_string(Finish reason);

}  // namespace zinc_rt::sched

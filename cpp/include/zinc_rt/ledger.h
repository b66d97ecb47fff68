// TenantLedger says what a tenant has used, and how long its requests waited.
// Thread rule: plain values.
#pragma once

#include <cstdint>

namespace zinc_rt {

// Counters and latencies cover the time since the tenant's first request. Latencies come from a histogram, so each
// quantile is within 1.6 % of a measured latency. A latency is 0 until something was measured.
struct TenantLedger {
  std::uint64_t tokens_prompted = 0;  // prompt tokens of admitted requests, including cached tokens
  std::uint64_t tokens_generated = 0;
  std::uint64_t tokens_cached = 0;    // the part of tokens_prompted whose KV was in the prefix cache
  std::uint64_t slots_admitted = 0;   // how often a request got a slot, including after a preemption
  std::uint64_t slots_preempted = 0;  // how often a request lost its slot
  // Counts how requests ended. Requests that were cancelled, failed or too slow may have ended before they got a slot.
  std::uint64_t requests_finished = 0;   // ended by an end token, a stop string or a length limit
  std::uint64_t requests_cancelled = 0;  // ended by the client or by their deadline
  std::uint64_t requests_failed = 0;     // ended by a fault of the engine
  std::uint64_t requests_rejected = 0;   // refused before they got a slot
  std::uint64_t requests_too_slow = 0;   // ended because the client did not read its tokens
  double p50_ttft_ms = 0;                // time from the request to its first token; p50 is the median
  double p99_ttft_ms = 0;
  double p50_decode_ms = 0;  // time from one token to the next
  double p99_decode_ms = 0;
  double p50_queue_ms = 0;  // time from the request to its first slot
  double p99_queue_ms = 0;
  std::uint32_t kv_pages_now = 0;
  std::uint32_t kv_pages_peak = 0;
  std::uint32_t slots_now = 0;
  std::uint32_t waiting_now = 0;  // number of requests without a slot
  double prefix_hit_rate = 0;     // cached tokens / prompt tokens, over about the last 64 requests
  double service = 0;             // for fair sharing: tokens served / weight; a generated token counts as two
};

}  // namespace zinc_rt

// What a tenant has used.
#pragma once

#include <cstdint>

namespace zinc_rt {

struct TenantLedger {
  std::uint64_t tokens_prompted = 0;
  std::uint64_t tokens_generated = 0;
  std::uint64_t slots_admitted = 0;
  std::uint64_t slots_preempted = 0;
  std::uint64_t requests_rejected = 0;  // refused before they got a slot
  double p50_ttft_ms = 0;               // from the request to its first token, over the last 1,024 requests
  double p99_ttft_ms = 0;
  double p50_decode_ms = 0;  // from one token to the next, over the last 1,024 tokens
  double p99_decode_ms = 0;
  std::uint32_t kv_pages_peak = 0;
  double prefix_hit_rate = 0;  // 0 until there is a prefix cache
};

}  // namespace zinc_rt

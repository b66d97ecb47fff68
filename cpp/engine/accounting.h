// Counts and measures what a tenant's requests did, for its ledger.
// Thread rule: the caller holds the mutex of the tenant's TenantState.
#pragma once

#include "base/latency_sketch.h"
#include "zinc_rt/ledger.h"

namespace zinc_rt {

enum class RequestEnd : std::uint8_t { kFinished, kCancelled, kFailed, kTooSlow };

// What a tenant holds now, according to the scheduler.
struct TenantUsage {
  std::uint32_t slots = 0;
  std::uint32_t waiting = 0;
  std::uint32_t kv_pages = 0, kv_pages_peak = 0;
  double service = 0;
};

class Accounting {
 public:
  // Called once for each request, when it gets its first slot. `ms`: how long it waited.
  void queued(double ms) { queue_ms_.record(ms); }
  void admitted(std::uint32_t prompt_tokens);
  void readmitted() { ++ledger_.slots_admitted; }  // after a preemption; admitted() has counted its prompt
  // Counts how many of a prompt's tokens were read from the prefix cache. Called once for each request that may use the
  // prefix cache, also if the number is 0.
  void cached(std::uint32_t tokens, std::uint32_t prompt_tokens);
  void rejected() { ++ledger_.requests_rejected; }
  void first_token(double ms);
  void next_token(double ms);
  void preempted() { ++ledger_.slots_preempted; }
  void finished(RequestEnd kind);
  TenantLedger ledger(const TenantUsage& usage) const;

  // Read by EngineCore to merge the latencies of all tenants.
  const LatencySketch& ttft_ms() const { return ttft_ms_; }
  const LatencySketch& decode_ms() const { return decode_ms_; }
  const LatencySketch& queue_ms() const { return queue_ms_; }

 private:
  TenantLedger ledger_;
  LatencySketch ttft_ms_, decode_ms_, queue_ms_;
  // sums over requests, in which a request has 63/64 of the weight of the one after it
  double recent_cached_ = 0, recent_prompted_ = 0;
};

}  // namespace zinc_rt

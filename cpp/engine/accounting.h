// Accounting counts what the requests of one tenant did, and measures their latencies. Session::ledger() and the
// metrics report it.
// Thread rule: the caller holds the mutex of the tenant's TenantState.
#pragma once

#include "base/latency_sketch.h"
#include "zinc_rt/ledger.h"

namespace zinc_rt {

enum class RequestEnd : std::uint8_t { kFinished, kCancelled, kFailed, kTooSlow };

// TenantUsage tells how many slots and pages a tenant holds at this moment, as the scheduler counts them. It becomes a
// part of the tenant's ledger.
struct TenantUsage {
  std::uint32_t slots = 0;
  std::uint32_t waiting = 0;
  std::uint32_t kv_pages = 0, kv_pages_peak = 0;
  double service = 0;
};

class Accounting {
 public:
  // Called once per request, when it gets its first slot. `ms` is how long the request waited.
  void queued(double ms) { queue_ms_.record(ms); }
  void admitted(std::uint32_t prompt_tokens);
  // Called when a preempted request gets a slot again; admitted() has counted its prompt already.
  void readmitted() { ++ledger_.slots_admitted; }
  // Counts how many tokens of a prompt the prefix cache supplied. Called once per request that may use the prefix
  // cache, even if the number is 0.
  void cached(std::uint32_t tokens, std::uint32_t prompt_tokens);
  void rejected() { ++ledger_.requests_rejected; }
  void first_token(double ms);
  void next_token(double ms);
  void preempted() { ++ledger_.slots_preempted; }
  void finished(RequestEnd kind);
  TenantLedger ledger(const TenantUsage& usage) const;

  // Return the latencies of this tenant's requests. EngineCore merges the latencies of all tenants for the engine's
  // statistics.
  const LatencySketch& ttft_ms() const { return ttft_ms_; }
  const LatencySketch& decode_ms() const { return decode_ms_; }
  const LatencySketch& queue_ms() const { return queue_ms_; }

 private:
  TenantLedger ledger_;
  LatencySketch ttft_ms_, decode_ms_, queue_ms_;
  // Prompt tokens from the cache, and all prompt tokens, summed over requests for the recent hit rate. Each new request
  // first multiplies both sums by 63/64, so that old requests count less.
  double recent_cached_ = 0, recent_prompted_ = 0;
};

}  // namespace zinc_rt

// Keeps the ledger of a tenant.
// Thread rule: under the lock of its owner.
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
  void queued(double ms) { queue_ms_.record(ms); }  // once for each request, when it gets its first slot
  void admitted(std::uint32_t prompt_tokens);
  void readmitted() { ++ledger_.slots_admitted; }  // after a preemption; its prompt was charged before
  // The number of a prompt's tokens that were cached. Called once per request that may use the prefix cache, also with
  // 0.
  void cached(std::uint32_t tokens, std::uint32_t prompt_tokens);
  void rejected() { ++ledger_.requests_rejected; }
  void first_token(double ms);
  void next_token(double ms);
  void preempted() { ++ledger_.slots_preempted; }
  void finished(RequestEnd kind);
  TenantLedger ledger(const TenantUsage& usage) const;

  // For merging over tenants.
  const LatencySketch& ttft_ms() const { return ttft_ms_; }
  const LatencySketch& decode_ms() const { return decode_ms_; }
  const LatencySketch& queue_ms() const { return queue_ms_; }

 private:
  TenantLedger ledger_;
  LatencySketch ttft_ms_, decode_ms_, queue_ms_;
  double recent_cached_ = 0, recent_prompted_ = 0;  // sums over requests; each counts 63/64 of the one after it
};

}  // namespace zinc_rt

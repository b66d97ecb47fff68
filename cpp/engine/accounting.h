// A tenant's ledger as it grows.
// Thread rule: the owner's lock.
#pragma once

#include "base/latency_sketch.h"
#include "zinc_rt/ledger.h"

namespace zinc_rt {

enum class RequestEnd : std::uint8_t { kFinished, kCancelled, kFailed, kTooSlow };

// What a tenant holds at the moment, as the scheduler knows it.
struct TenantUsage {
  std::uint32_t slots = 0;
  std::uint32_t waiting = 0;
  std::uint32_t kv_pages = 0;
  double service = 0;
};

class Accounting {
 public:
  void queued(double ms) { queue_ms_.record(ms); }  // once a request, when it gets its first slot
  void admitted(std::uint32_t prompt_tokens, std::uint32_t pages_in_use);
  void readmitted() { ++ledger_.slots_admitted; }  // a slot again after a preemption; its prompt is charged already
  // Of a request's prompt; once a request that may look into the prefix cache, with 0 tokens where it had none.
  void cached(std::uint32_t tokens, std::uint32_t prompt_tokens);
  void rejected() { ++ledger_.requests_rejected; }
  void first_token(double ms);
  void next_token(double ms);
  void preempted() { ++ledger_.slots_preempted; }
  void finished(RequestEnd kind);
  void holds(const TenantUsage& usage);
  TenantLedger ledger() const;

  // To be merged over tenants.
  const LatencySketch& ttft_ms() const { return ttft_ms_; }
  const LatencySketch& decode_ms() const { return decode_ms_; }
  const LatencySketch& queue_ms() const { return queue_ms_; }

 private:
  TenantLedger ledger_;
  LatencySketch ttft_ms_, decode_ms_, queue_ms_;
  double recent_cached_ = 0, recent_prompted_ = 0;  // sums that forget: each request counts 63/64 of the next
};

}  // namespace zinc_rt

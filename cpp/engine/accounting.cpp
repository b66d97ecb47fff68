#include "engine/accounting.h"

#include <algorithm>

namespace zinc_rt {

void Accounting::admitted(std::uint32_t prompt_tokens, std::uint32_t pages_in_use) {
  ++ledger_.slots_admitted;
  ledger_.tokens_prompted += prompt_tokens;
  ledger_.kv_pages_peak = std::max(ledger_.kv_pages_peak, pages_in_use);
}

void Accounting::cached(std::uint32_t tokens, std::uint32_t prompt_tokens) {
  constexpr double kKept = 63.0 / 64;
  ledger_.tokens_cached += tokens;
  recent_cached_ = recent_cached_ * kKept + tokens;
  recent_prompted_ = recent_prompted_ * kKept + prompt_tokens;
  ledger_.prefix_hit_rate = recent_prompted_ > 0 ? recent_cached_ / recent_prompted_ : 0;
}

void Accounting::first_token(double ms) {
  ++ledger_.tokens_generated;
  ttft_ms_.record(ms);
}

void Accounting::next_token(double ms) {
  ++ledger_.tokens_generated;
  decode_ms_.record(ms);
}

void Accounting::finished(RequestEnd kind) {
  switch (kind) {
    case RequestEnd::kFinished: ++ledger_.requests_finished; break;
    case RequestEnd::kCancelled: ++ledger_.requests_cancelled; break;
    case RequestEnd::kFailed: ++ledger_.requests_failed; break;
    case RequestEnd::kTooSlow: ++ledger_.requests_too_slow; break;
  }
}

void Accounting::holds(const TenantUsage& usage) {
  ledger_.slots_now = usage.slots;
  ledger_.waiting_now = usage.waiting;
  ledger_.kv_pages_now = usage.kv_pages;
  ledger_.kv_pages_peak = std::max(ledger_.kv_pages_peak, usage.kv_pages);
  ledger_.service = usage.service;
}

TenantLedger Accounting::ledger() const {
  TenantLedger ledger = ledger_;
  ledger.p50_ttft_ms = ttft_ms_.quantile(0.50);
  ledger.p99_ttft_ms = ttft_ms_.quantile(0.99);
  ledger.p50_decode_ms = decode_ms_.quantile(0.50);
  ledger.p99_decode_ms = decode_ms_.quantile(0.99);
  ledger.p50_queue_ms = queue_ms_.quantile(0.50);
  ledger.p99_queue_ms = queue_ms_.quantile(0.99);
  return ledger;
}

}  // namespace zinc_rt

#include "engine/accounting.h"

#include <algorithm>
#include <vector>

namespace zinc_rt {

void Window::add(double value) {
  values_[count_++ % kSize] = value;
}

double Window::percentile(double p) const {
  std::vector<double> sorted(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(std::min(count_, kSize)));
  if (sorted.empty()) return 0;
  const auto index = static_cast<std::ptrdiff_t>(p * static_cast<double>(sorted.size() - 1) + 0.5);
  std::ranges::nth_element(sorted, sorted.begin() + index);
  return sorted[static_cast<std::size_t>(index)];
}

void Accounting::admitted(std::uint32_t prompt_tokens, std::uint32_t pages_in_use) {
  ++ledger_.slots_admitted;
  ledger_.tokens_prompted += prompt_tokens;
  ledger_.kv_pages_peak = std::max(ledger_.kv_pages_peak, pages_in_use);
}

void Accounting::first_token(double ms) {
  ++ledger_.tokens_generated;
  ttft_ms_.add(ms);
}

void Accounting::next_token(double ms) {
  ++ledger_.tokens_generated;
  decode_ms_.add(ms);
}

TenantLedger Accounting::ledger() const {
  TenantLedger ledger = ledger_;
  ledger.p50_ttft_ms = ttft_ms_.percentile(0.50);
  ledger.p99_ttft_ms = ttft_ms_.percentile(0.99);
  ledger.p50_decode_ms = decode_ms_.percentile(0.50);
  ledger.p99_decode_ms = decode_ms_.percentile(0.99);
  return ledger;
}

}  // namespace zinc_rt

// A tenant's ledger as it grows.
// Thread rule: the owner's lock.
#pragma once

#include <array>
#include <cstddef>

#include "zinc_rt/ledger.h"

namespace zinc_rt {

// The last kSize values; a percentile of them is asked for rarely, so it sorts then.
class Window {
 public:
  void add(double value);
  double percentile(double p) const;  // 0 when empty

 private:
  static constexpr std::size_t kSize = 1024;
  std::array<double, kSize> values_{};
  std::size_t count_ = 0;
};

class Accounting {
 public:
  void admitted(std::uint32_t prompt_tokens, std::uint32_t pages_in_use);
  void rejected() { ++ledger_.requests_rejected; }
  void first_token(double ms);
  void next_token(double ms);
  TenantLedger ledger() const;

 private:
  TenantLedger ledger_;
  Window ttft_ms_, decode_ms_;
};

}  // namespace zinc_rt

// A Tenant is a customer, team or job that sends requests. It has a quota and a ledger of what it has used.
// Thread rule: any thread.
#pragma once

#include <memory>
#include <string>

#include "zinc_rt/ledger.h"
#include "zinc_rt/session.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

struct TenantQuota {
  std::uint32_t max_concurrent_slots = 4;  // number of requests that may run at once; others wait
  std::uint32_t max_kv_pages = 4096;       // pages of 16 tokens; pages that were found in the prefix cache do not count
  std::uint32_t reserved_kv_pages = 0;     // number of pages that are always kept available for this tenant
  std::uint32_t max_context_tokens = 128000;
  double decode_tokens_per_s = 1000;  // both rates are smoothed over 5 s; work that exceeds a rate waits
  double prefill_tokens_per_s = 100000;
  double weight = 1;                   // weight of the tenant's fair share, relative to other tenants
  std::string qos_class = "standard";  // "interactive", "standard" or "batch"
  // Tenants with the same group share cached prefixes; if empty, this tenant shares with none.
  std::string isolation_group;
  // How many tokens a step may guess for the tenant's requests: "auto", "off" or a number, up to what the model allows
  // (EngineOptions::speculate). If empty, the model's own setting holds.
  std::string speculate;
};

class Tenant {
 public:
  Tenant(std::shared_ptr<EngineCore> engine, std::shared_ptr<TenantState> state);

  const std::string& name() const;
  TenantQuota quota() const;
  // Replaces the quota; it takes effect at the next step. Errors: kInvalidArgument for impossible numbers; kExhausted
  // if the pages to reserve are not available.
  Status set_quota(const TenantQuota& quota);
  TenantLedger ledger() const;
  // Removes the prefixes that this tenant computed and that no request uses now. Returns how many KV pages were freed.
  // Prefixes that other members of the isolation group computed stay, and so do the prefixes that these extend.
  Result<std::uint32_t> flush_prefix_cache() const;
  Result<Session> session(std::string system = {}) const;

 private:
  std::shared_ptr<EngineCore> engine_;
  std::shared_ptr<TenantState> state_;
};

}  // namespace zinc_rt

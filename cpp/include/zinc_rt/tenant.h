// A tenant: whose work it is, what it may use and what it has used.
// Thread rule: any thread.
#pragma once

#include <memory>
#include <string>

#include "zinc_rt/ledger.h"
#include "zinc_rt/session.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

struct TenantQuota {
  std::uint32_t max_concurrent_slots = 4;
  std::uint32_t max_kv_pages = 4096;
  std::uint32_t max_context_tokens = 128000;
  // Recorded and shown; this version serves requests in the order of their calls and does not enforce them, which the
  // log says.
  double decode_tokens_per_s = 1000;
  double prefill_tokens_per_s = 100000;
  std::string qos_class = "standard";  // interactive, standard or batch
  std::string isolation_group;         // empty: none
};

class Tenant {
 public:
  Tenant(std::shared_ptr<EngineCore> engine, std::shared_ptr<TenantState> state);

  const std::string& name() const;
  TenantQuota quota() const;
  Status set_quota(const TenantQuota& quota);
  TenantLedger ledger() const;
  Result<Session> session(std::string system = {}) const;

 private:
  std::shared_ptr<EngineCore> engine_;
  std::shared_ptr<TenantState> state_;
};

}  // namespace zinc_rt

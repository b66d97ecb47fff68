// A tenant as the engine's threads share it.
// Thread rule: `mutex` guards what follows it; name and id never change.
#pragma once

#include <mutex>
#include <string>

#include "engine/accounting.h"
#include "sched/types.h"
#include "zinc_rt/tenant.h"

namespace zinc_rt {

struct TenantState {
  std::string name;
  sched::TenantId id = 0;
  mutable std::mutex mutex;
  TenantQuota quota;
  Accounting accounting;
};

// Errors: kInvalidArgument for a quota that cannot be.
Status check_quota(const TenantQuota& quota);
Result<sched::Qos> parse_qos(const std::string& name);

}  // namespace zinc_rt

// TenantState holds what the engine's threads share of a tenant: its name, id, quota and accounting.
// Thread rule: `mutex` guards the members declared after it; name and id never change. FreeTenants: any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/accounting.h"
#include "sched/types.h"
#include "zinc_rt/tenant.h"

namespace zinc_rt {

// FreeTenants collects the ids of tenants to which no handle, session or generation refers any more.
class FreeTenants {
 public:
  void add(sched::TenantId id) {
    const std::lock_guard lock(mutex_);
    ids_.push_back(id);
  }
  std::vector<sched::TenantId> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(ids_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<sched::TenantId> ids_;
};

struct TenantState {
  TenantState(std::string name, sched::TenantId id, const TenantQuota& quota, std::shared_ptr<FreeTenants> free)
      : name(std::move(name)), id(id), quota(quota), free_(std::move(free)) {}
  // Runs on the thread that releases the last reference. That may be the drainer, so it must not wait for anything.
  ~TenantState() { free_->add(id); }
  TenantState(const TenantState&) = delete;
  TenantState& operator=(const TenantState&) = delete;

  const std::string name;
  const sched::TenantId id;
  mutable std::mutex mutex;
  TenantQuota quota;
  Accounting accounting;

 private:
  const std::shared_ptr<FreeTenants> free_;  // may outlive the engine
};

// Checks the numbers of a quota. Errors: kInvalidArgument if a number is outside its limits; the message contains the
// number and the limit.
Status check_quota(const TenantQuota& quota);
Result<sched::Qos> parse_qos(const std::string& name);

}  // namespace zinc_rt

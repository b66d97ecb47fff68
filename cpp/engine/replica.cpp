#include "engine/replica.h"

#include <utility>

#include "engine/step_loop.h"
#include "model/fingerprint.h"

namespace zinc_rt {

Replica::Replica(std::uint32_t device, std::unique_ptr<Executor> executor)
    : device{executor->info().tier, device},
      info(executor->info()),
      allocated_bytes(executor->allocated_bytes()),
      executor_(std::move(executor)) {}

Replica::~Replica() = default;

void Replica::join(StepLoop& loop, const sched::Options& options, sched::TenantBook& tenants,
                   std::shared_ptr<sched::Shares> all_shares, Timeline& timeline) {
  loop_ = &loop;
  runner_ = std::make_unique<ModelRunner>(*executor_, options, tenants, std::move(all_shares), timeline, loop.number());
}

std::string Replica::fingerprint() const {
  return zinc_rt::fingerprint(executor_->weights());
}

void Replica::unload(const sched::TenantBook& tenants) {
  std::unique_ptr<ModelRunner> runner;
  {
    const auto lock = tenants.lock();
    runner = std::move(runner_);
  }
  runner.reset();
  executor_.reset();
}

}  // namespace zinc_rt

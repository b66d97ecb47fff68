#include "engine/replica.h"

#include <utility>

#include "engine/draft_model.h"
#include "engine/step_loop.h"
#include "model/fingerprint.h"

namespace zinc_rt {

Replica::Replica(std::uint32_t device, std::unique_ptr<Executor> executor, std::unique_ptr<DraftModel> draft)
    : device{executor->info().tier, device},
      info(executor->info()),
      allocated_bytes(executor->allocated_bytes() + (draft ? draft->executor().allocated_bytes() : 0)),
      executor_(std::move(executor)),
      draft_(std::move(draft)) {}

Replica::~Replica() = default;

void Replica::join(StepLoop& loop, const sched::Options& options, sched::TenantBook& tenants,
                   std::shared_ptr<sched::Shares> all_shares, Timeline& timeline) {
  loop_ = &loop;
  runner_ = std::make_unique<ModelRunner>(*executor_, options, tenants, std::move(all_shares), timeline, loop.number(),
                                          draft_.get());
}

std::string Replica::fingerprint() const {
  return zinc_rt::fingerprint(executor_->weights());
}

void Replica::unload(const sched::TenantBook& tenants) {
  std::unique_ptr<ModelRunner> runner;
  std::unique_ptr<DraftModel> draft;
  {
    const auto lock = tenants.lock();
    runner = std::move(runner_);
    draft = std::move(draft_);
  }
  runner.reset();
  draft.reset();
  executor_.reset();
}

}  // namespace zinc_rt

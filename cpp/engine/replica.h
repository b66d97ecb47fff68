// Replica is a loaded model on one device, with its own weights, KV pages, scheduler and prefix cache. The replicas of
// a model share its description (engine/model.h).
// Thread rule: any thread may read the const members and the atomic. Only the thread that holds the Turn
// (engine/turn.h) of the device's step loop may call runner(). A replica is loaded and unloaded while both this Turn
// and the lock of the tenant book are held. So a thread that holds one of the two may call is_loaded().
#pragma once

#include <atomic>
#include <memory>

#include "engine/runner.h"
#include "executor/executor.h"

namespace zinc_rt {

class DraftModel;
class StepLoop;

// Names a device of a tier. Each device has its own step thread.
struct DeviceId {
  std::string tier;
  std::uint32_t index = 0;
  bool operator==(const DeviceId&) const = default;
};

class Replica {
 public:
  // `draft` is null if no draft model guesses for the replica.
  Replica(std::uint32_t device, std::unique_ptr<Executor> executor, std::unique_ptr<DraftModel> draft = nullptr);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // Called once, before another thread can see the replica. `loop` will run its steps.
  void join(StepLoop& loop, const sched::Options& options, sched::TenantBook& tenants,
            std::shared_ptr<sched::Shares> all_shares, Timeline& timeline);
  // Frees the runner and the executor. REQUIRES: the caller holds the step loop's Turn; no request of the replica runs
  // or waits.
  void unload(const sched::TenantBook& tenants);
  // REQUIRES: the caller holds the step loop's Turn, or the lock of the tenant book.
  bool is_loaded() const { return runner_ != nullptr; }
  ModelRunner& runner() { return *runner_; }
  const DraftModel* draft() const { return draft_.get(); }  // null if there is none, or the replica is not loaded
  StepLoop& loop() { return *loop_; }                       // REQUIRES: join() was called
  bool has_no_loop() const { return loop_ == nullptr; }
  // Returns a name for the model's content (model/fingerprint.h). REQUIRES: the caller holds the step loop's Turn; the
  // replica is loaded.
  std::string fingerprint() const;

  const DeviceId device;
  const ExecutorInfo info;
  const std::uint64_t allocated_bytes;  // with the draft model's
  // Prompt tokens of requests that were sent to this replica but have not reached its scheduler yet.
  std::atomic<std::uint64_t> tokens_on_their_way{0};

 private:
  StepLoop* loop_ = nullptr;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<DraftModel> draft_;
  std::unique_ptr<ModelRunner> runner_;
};

}  // namespace zinc_rt

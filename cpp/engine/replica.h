// A loaded model on one device, with its own weights, KV pages, scheduler and prefix cache. A model's replicas share
// its description (engine/model.h). Thread rule: const members and the atomic one from any thread; runner() belongs to
// the thread that holds the turn of the device's step loop. The replica is made and freed under both that turn and the
// lock of the tenant book, so a thread that holds either may check whether it exists.
#pragma once

#include <atomic>
#include <memory>

#include "engine/runner.h"
#include "executor/executor.h"

namespace zinc_rt {

class StepLoop;

// A device of a tier. One step thread runs it.
struct DeviceId {
  std::string tier;
  std::uint32_t index = 0;
  bool operator==(const DeviceId&) const = default;
};

class Replica {
 public:
  Replica(std::uint32_t device, std::unique_ptr<Executor> executor);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // Called once, before any thread knows the replica. `loop` will run its steps.
  void join(StepLoop& loop, const sched::Options& options, sched::TenantBook& tenants,
            std::shared_ptr<sched::Shares> all_shares, Timeline& timeline);
  // Frees the runner and the executor. REQUIRES: the turn; no request of it runs or waits.
  void unload(const sched::TenantBook& tenants);
  bool is_loaded() const { return runner_ != nullptr; }  // REQUIRES: the turn, or the lock of the tenant book
  ModelRunner& runner() { return *runner_; }
  StepLoop& loop() { return *loop_; }  // REQUIRES: it has joined
  bool has_no_loop() const { return loop_ == nullptr; }
  // Identifies the model's content: a hash of all tensors' names, types and shapes, and of a sample of their bytes.
  // REQUIRES: the turn, loaded.
  std::string fingerprint() const;

  const DeviceId device;
  const ExecutorInfo info;
  const std::uint64_t allocated_bytes;
  // Prompt tokens that were sent here but that the scheduler has not seen yet.
  std::atomic<std::uint64_t> tokens_on_their_way{0};

 private:
  StepLoop* loop_ = nullptr;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<ModelRunner> runner_;
};

}  // namespace zinc_rt

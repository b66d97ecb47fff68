// An executor that is no ring and runs no graph: after token t it picks the token t + 1 of the vocabulary. It stands
// for the executors that bring a whole engine of their own. Thread rule: one thread at a time.
#pragma once

#include "arch/family.h"
#include "executor/executor.h"
#include "executor/step_check.h"

namespace zinc_rt {

class PeerExecutor final : public Executor {
 public:
  static Result<std::unique_ptr<Executor>> open(const std::string& path, const ExecutorOptions& options);

  const ExecutorInfo& info() const override { return info_; }
  const ModelConfig& config() const override { return config_; }
  const Weights& weights() const override { return *weights_; }
  const MemoryPlan& plan() const override { return plan_; }
  std::uint64_t allocated_bytes() const override { return kv_.size(); }
  Status begin(const StepInput& input) override;
  Status finish(StepOutput& output) override;
  Status copy_state(std::span<const StateCopy> copies) override { return check_.check(copies); }
  Status copy_pages(std::span<const PageCopy> copies) override { return check_.check(copies); }
  std::uint32_t rope_variant(std::uint64_t n_tokens) const override;
  Result<std::vector<float>> hidden(const StepInput& input, int layer) override;

 private:
  std::unique_ptr<Weights> weights_;
  ModelConfig config_;
  const arch::Family* family_ = nullptr;
  ExecutorInfo info_;
  MemoryPlan plan_;
  std::vector<std::byte> kv_;
  std::vector<float> logits_;
  StepCheck check_;
  const StepInput* input_ = nullptr;  // of the step that has begun
};

}  // namespace zinc_rt

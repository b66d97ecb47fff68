// VulkanExecutor is a peer backend. It runs a model on a Vulkan device by itself, without graphs and rings, and
// computes the same bits as T-CPU (docs/arithmetic.md).
// Thread rule: one thread at a time, as for Executor.
#pragma once

#include "executor/executor.h"
#include "executor/step_check.h"
#include "vulkan/forward.h"
#include "vulkan/sample.h"

namespace zinc_rt::vulkan {

class VulkanExecutor final : public Executor {
 public:
  static Result<std::unique_ptr<Executor>> open(const std::string& path, const ExecutorOptions& options);
  // Opens a model on an open device. First frees the memory of an earlier model on the device. REQUIRES: Device::use()
  // has set how the device's kernels compute a fused multiply-add (Fma), and no other model is in use on the device.
  static Result<std::unique_ptr<Executor>> open_on(std::shared_ptr<Device> device, const std::string& path,
                                                   const ExecutorOptions& options);
  VulkanExecutor(const VulkanExecutor&) = delete;

  const ExecutorInfo& info() const override { return info_; }
  const ModelConfig& config() const override { return config_; }
  const Weights& weights() const override { return *weights_; }
  const MemoryPlan& plan() const override { return memory_.plan; }
  std::uint64_t allocated_bytes() const override { return device_->allocated_bytes(); }
  Status begin(const StepInput& input) override;
  Status finish(StepOutput& output) override;
  Status copy_state(std::span<const StateCopy> copies) override;
  Status copy_pages(std::span<const PageCopy> copies) override;
  Status read_pages(std::span<const std::uint32_t> pages, std::span<std::byte> to) override;
  Status write_pages(std::span<const std::uint32_t> pages, std::span<const std::byte> from) override;
  std::uint32_t rope_variant(std::uint64_t n_tokens) const override { return vulkan::rope_variant(shape_, n_tokens); }
  Result<std::vector<float>> hidden(const StepInput& input, int layer) override;
  const Device& device() const { return *device_; }

 private:
  VulkanExecutor() = default;
  Status load(const ExecutorOptions& options);
  void fill_body(const StepInput& input);
  // Submits commands_, followed by the commands for the group of output rows that begins with row `first`.
  Status begin_group(std::size_t first);
  std::size_t group_size(std::size_t first) const;
  std::span<float> logits_row(std::size_t i) const;
  Status pick(const StepInput& input, std::size_t first, std::size_t count, StepOutput& output);
  void give_logits(const StepInput& input, std::size_t first, std::size_t count) const;
  Status check_pages(std::span<const std::uint32_t> pages, std::size_t n_bytes) const;

  std::unique_ptr<Weights> weights_;
  ModelConfig config_;
  ModelShape shape_;
  ModelTensors tensors_;
  Sizes sizes_;
  ExecutorInfo info_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<MemoryRequest> request_;  // refers to the members above
  ModelMemory memory_;
  Forward forward_;
  StepCheck check_;
  Sampler sampler_;
  const StepInput* input_ = nullptr;       // input of the step that begin() started; valid until finish() returns
  StepRows rows_;                          // numbers of rows of this step
  std::vector<VkCommandBuffer> commands_;  // scratch: the commands of one submission
  std::vector<float> processed_;           // scratch: rows of logits that the caller changed
};

}  // namespace zinc_rt::vulkan

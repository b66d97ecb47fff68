// A ring on an AMD GPU, by whichever driver its device object speaks to. A submission becomes one buffer of packets,
// written anew for each step: arguments, then for each op the registers that change and a dispatch, with a barrier
// where an edge wants one. The queue itself gets an INDIRECT_BUFFER of it and a fence.
#pragma once

#include <chrono>
#include <memory>
#include <unordered_map>

#include "ring/amd/amd_memory.h"
#include "ring/amd/images.h"
#include "ring/amd/packet_queue.h"
#include "ring/amd/plan.h"
#include "ring/ring.h"

namespace zinc_rt::ring {

class AmdRing final : public Ring {
 public:
  // limit: how long a step may take before the device counts as lost.
  static Result<std::unique_ptr<Ring>> make(std::unique_ptr<AmdDevice> device, std::span<const AmdImage> images,
                                            std::chrono::milliseconds limit);
  ~AmdRing() override;

  Result<Fence> submit(const Submission& submission) override;
  Status wait(Fence fence) override;
  Result<std::span<std::byte>> map(const Buffer& buffer) override { return memory_.map(buffer); }
  Result<Buffer> alloc_bo(std::uint64_t bytes, Heap heap) override { return memory_.alloc(bytes, heap); }
  void free_bo(const Buffer& buffer) override { memory_.free(buffer); }
  Status write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> data) override;
  Result<std::span<const std::byte>> read(const Buffer& from, std::uint64_t offset, std::uint64_t bytes) override;
  Result<std::optional<DeviceMemory>> device_memory() const override;
  std::uint64_t scratch_bytes(const PacketBatch& batch, StepDims most) const override;
  Status use_scratch(const Buffer& buffer) override;
  Status upload(const Buffer& to, std::uint64_t offset, const WeightMatrix& matrix) override;
  Result<Kernel> load_kernel(std::span<const std::byte> zrt) override;
  const kernel::KernelTable& kernels() const override { return table_; }
  std::span<const std::string_view> joins() const override { return amd_join_patterns(); }
  RingStats stats() const override;
  std::string describe() const override { return device_->describe(); }

 private:
  // The memory of a step that may be in flight: packets and arguments.
  struct Step {
    AmdDevice::Memory packets, arguments;
    std::uint64_t submission = 0;  // the last one that used it
  };
  struct Code {
    KernelCode kernel;
    std::uint64_t image;  // on the device
  };
  AmdRing(std::unique_ptr<AmdDevice> device, std::chrono::milliseconds limit)
      : device_(std::move(device)), limit_(limit), table_(device_->target()), memory_(*device_) {}
  Status open(std::span<const AmdImage> images);
  Status load_images(std::span<const AmdImage> images);
  Status fits(const Submission& submission) const;
  Status reserve(AmdDevice::Memory& memory, std::uint64_t bytes);
  // plan_submission. has_memory: buffer objects exist.
  std::uint64_t plan(const Submission& submission, std::uint64_t scratch, bool has_memory,
                     std::vector<AmdLaunch>& launches) const;
  Status grow_scratch(std::uint64_t bytes);
  Status write_packets(Step& step);

  std::unique_ptr<AmdDevice> device_;
  std::chrono::milliseconds limit_;
  kernel::KernelTable table_;
  AmdMemory memory_;
  std::unique_ptr<PacketQueue> queue_;
  AmdDevice::Memory fence_, code_;
  std::unordered_map<std::string, Code> functions_;
  std::vector<AmdKernel> kernels_;  // id - 1
  Step steps_[4];
  PacketBuilder builder_;
  std::vector<AmdLaunch> launches_;
  std::vector<std::byte> read_back_;
  std::uint64_t scratch_va_ = 0, scratch_bytes_ = 0;
  AmdDevice::Memory own_scratch_;  // where a buffer object was not given, or is too small
  std::uint64_t submissions_ = 0, dispatches_ = 0, first_value_ = 0;
};

}  // namespace zinc_rt::ring

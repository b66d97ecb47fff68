// AmdRing is the ring of the AMD tiers t1 and t2, whichever driver they use. It writes each submission as one buffer of
// packets. For each op the buffer has the registers that change and a dispatch, with a barrier before it if an edge
// requires one. The last packet sets the fence. The buffer is the same on every path to the device. The device's own
// ring only holds 4 dwords per buffer, which point to it.
#pragma once

#include <memory>
#include <unordered_map>

#include "ring/amd/amd_memory.h"
#include "ring/amd/images.h"
#include "ring/amd/packet_log.h"
#include "ring/amd/plan.h"
#include "ring/amd/proven_device.h"
#include "ring/ring.h"

namespace zinc_rt::ring {

class AmdRing final : public Ring {
 public:
  static Result<std::unique_ptr<Ring>> make(ProvenDevice proven, std::span<const CodeImage> images);
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
  std::string describe() const override { return device_.describe(); }

 private:
  // Step is the memory of a step that may be in flight: its packets, and the arguments of its kernels. The arguments
  // are in device memory, because every wave reads them.
  struct Step {
    AmdDevice::Memory packets, arguments;
    std::uint64_t submission = 0;  // number of the last submission that used this memory
  };
  // Code is a kernel of the embedded images. load_images() copies the images to the device and fills these.
  struct Code {
    KernelCode kernel;
    std::uint64_t image;  // address of its image on the device
  };
  explicit AmdRing(ProvenDevice proven)
      : proven_(std::move(proven)),
        device_(proven_.device()),
        queue_(proven_.queue()),
        table_(make_amd_table(device_.target())),
        memory_(device_),
        first_value_(proven_.last_fence) {}
  Status load_images(std::span<const CodeImage> images);
  Status reserve(AmdDevice::Memory& memory, std::uint64_t bytes, AmdDevice::Domain domain);
  // Plans the launches of a submission, and returns how much scratch memory they take. has_memory: the submission's
  // buffer objects exist already.
  std::uint64_t plan(const Submission& submission, std::uint64_t scratch, bool has_memory,
                     std::vector<AmdLaunch>& launches) const;
  Status grow_scratch(std::uint64_t bytes);
  Status write_packets(Step& step);
  std::vector<LoggedRegion> logged_regions() const;
  // Submits the packets in builder_. When they have run, the fence's value is `value`.
  Status run(const Step& step, std::uint64_t value);

  ProvenDevice proven_;
  AmdDevice& device_;
  PacketQueue& queue_;
  kernel::KernelTable table_;
  AmdMemory memory_;
  AmdDevice::Memory code_;
  std::unordered_map<std::string, Code> functions_;
  std::vector<AmdKernel> kernels_;  // index: id - 1
  Step steps_[4];
  PacketBuilder builder_;
  std::unique_ptr<PacketRecorder> recorder_;  // null if ZINC_RT_PACKET_LOG is not set
  std::size_t body_end_ = 0;                  // dwords in the builder before the packet that sets the fence
  std::vector<AmdLaunch> launches_;
  std::vector<std::byte> read_back_;
  std::uint64_t scratch_va_ = 0, scratch_bytes_ = 0;
  AmdDevice::Memory own_scratch_;  // used if no scratch buffer was given or the given buffer is too small
  std::uint64_t submissions_ = 0, dispatches_ = 0;
  std::uint64_t first_value_;  // the fence's value before the first submission
};

}  // namespace zinc_rt::ring

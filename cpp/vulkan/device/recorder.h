// Writes dispatches into a command buffer. Dispatches between two barriers may run in any order or at once.
// Thread rule: one thread; it lives while its commands are recorded.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "vulkan/device/stopwatch.h"

namespace zinc_rt::vulkan {

// The most bytes of push constants that a kernel may have. Every device has room for them.
inline constexpr std::uint32_t kPushBytes = 128;

// Faults that a test gives a device, to see that a comparison notices them.
struct Faults {
  bool undecorated = false;        // kernels as glslc compiled them (strict.h)
  bool shuffled = false;           // what may run in any order is recorded backwards
  std::uint32_t lost_barrier = 0;  // of each so many barriers one is left out; 0: none
  // These are not faults; the bits must stay the same:
  bool more_barriers = false;     // one after each dispatch
  bool timed = false;             // and a timestamp
  bool matrices_by_hand = false;  // kernels with matrices, by what invocations make (kernels/vulkan/matrices.glsl)
};

class Recorder {
 public:
  Recorder(const Api& api, VkCommandBuffer commands, VkPipelineLayout layout, const Faults& faults,
           Stopwatch* stopwatch)
      : api_(api), commands_(commands), layout_(layout), faults_(faults), stopwatch_(stopwatch) {
    if (stopwatch_ != nullptr) stopwatch_->mark(api_, commands_, nullptr);
  }

  // The commands read the three numbers of workgroups from `counts` when they run.
  template <class Push>
  void dispatch(VkPipeline pipeline, const Push& push, VkBuffer counts, std::uint64_t offset) {
    static_assert(sizeof(Push) <= kPushBytes && sizeof(Push) % 4 == 0);
    Dispatch d{pipeline, {}, sizeof(Push), counts, offset};
    std::memcpy(d.push.data(), &push, sizeof(Push));
    waiting_.push_back(d);
    if (faults_.more_barriers || stopwatch_ != nullptr) barrier();
  }
  // Later dispatches see everything written before.
  void barrier();
  void copy(VkBuffer from, VkBuffer to, const VkBufferCopy& part);
  // After the last call.
  void finish();

  // The beginning and end of all commands: submissions do not overlap, and the host sees what was written.
  static void full_barrier(const Api& api, VkCommandBuffer commands);

 private:
  struct Dispatch {
    VkPipeline pipeline;
    std::array<std::byte, kPushBytes> push;
    std::uint32_t push_bytes;
    VkBuffer counts;
    std::uint64_t offset;
  };
  void write_waiting();

  const Api& api_;
  VkCommandBuffer commands_;
  VkPipelineLayout layout_;
  const Faults& faults_;
  Stopwatch* stopwatch_;           // null: nobody wants it
  std::vector<Dispatch> waiting_;  // since the last barrier
  VkPipeline bound_ = nullptr;
  std::uint32_t n_barriers_ = 0;
};

}  // namespace zinc_rt::vulkan

// Recorder writes dispatches into a command buffer. Dispatches between two barriers may run in any order or at the same
// time.
// Thread rule: one thread. The object lives only while its commands are recorded.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "vulkan/device/stopwatch.h"

namespace zinc_rt::vulkan {

// The most bytes of push constants of a kernel. Every Vulkan device supports 128.
inline constexpr std::uint32_t kPushBytes = 128;

// Faults are errors that a test injects, to prove that its comparison detects them.
struct Faults {
  bool undecorated = false;        // uses kernels as glslc compiled them, without strict.h
  bool shuffled = false;           // records dispatches between two barriers in reverse order
  std::uint32_t lost_barrier = 0;  // n: every n-th barrier is not recorded; 0: all are recorded
  // The next three are not faults, so the bits must stay the same.
  bool more_barriers = false;  // adds a barrier after each dispatch
  bool timed = false;          // adds a barrier and a timestamp after each dispatch
  // If true, matrix kernels multiply without cooperative matrices (kernels/vulkan/matrices.glsl).
  bool matrices_by_hand = false;
};

class Recorder {
 public:
  Recorder(const Api& api, VkCommandBuffer commands, VkPipelineLayout layout, const Faults& faults,
           Stopwatch* stopwatch)
      : api_(api), commands_(commands), layout_(layout), faults_(faults), stopwatch_(stopwatch) {
    if (stopwatch_ != nullptr) stopwatch_->mark(api_, commands_, nullptr);
  }

  // Records a dispatch. When the commands run, its three numbers of workgroups are read from `counts`.
  template <class Push>
  void dispatch(VkPipeline pipeline, const Push& push, VkBuffer counts, std::uint64_t offset) {
    static_assert(sizeof(Push) <= kPushBytes && sizeof(Push) % 4 == 0);
    Dispatch d{pipeline, {}, sizeof(Push), counts, offset};
    std::memcpy(d.push.data(), &push, sizeof(Push));
    waiting_.push_back(d);
    if (faults_.more_barriers || stopwatch_ != nullptr) barrier();
  }
  // Makes later dispatches see everything that was written before.
  void barrier();
  void copy(VkBuffer from, VkBuffer to, const VkBufferCopy& part);
  // Ends the recording. No other call may follow.
  void finish();

  // Writes the barrier with which all commands begin and end. Because of this barrier, submissions do not overlap, and
  // the host sees what they wrote.
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
  Stopwatch* stopwatch_;           // null if times are not measured
  std::vector<Dispatch> waiting_;  // dispatches since the last barrier
  VkPipeline bound_ = nullptr;
  std::uint32_t n_barriers_ = 0;
};

}  // namespace zinc_rt::vulkan

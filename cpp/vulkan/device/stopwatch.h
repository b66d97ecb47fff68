// Stopwatch measures how a step's time is spent: it writes a timestamp after each dispatch.
// Thread rule: one thread at a time, as for Device.
#pragma once

#include <string>
#include <vector>

#include "vulkan/device/loader.h"

namespace zinc_rt::vulkan {

class Stopwatch {
 public:
  // Creates the timestamps. Errors: kUnavailable for a device without timestamps.
  static Result<Stopwatch> make(const Api& api, VkPhysicalDevice physical, VkDevice device);
  void destroy(const Api& api, VkDevice device) const { api.DestroyQueryPool(device, pool_, nullptr); }

  // Called while commands are recorded, after each dispatch. If `pipeline` is null, it marks the beginning of the
  // commands.
  void mark(const Api& api, VkCommandBuffer commands, VkPipeline pipeline);
  // Call reset() before each submission and collect() after it.
  void reset(const Api& api, VkDevice device) const { api.ResetQueryPool(device, pool_, 0, kMarks); }
  void collect(const Api& api, VkDevice device);

  struct Span {
    VkPipeline pipeline;
    double seconds;
  };
  // Returns the times of the last submission's dispatches.
  const std::vector<Span>& spans() const { return spans_; }

 private:
  static constexpr std::uint32_t kMarks = 16384;
  VkQueryPool pool_ = nullptr;
  double seconds_a_tick_ = 0;
  std::vector<VkPipeline> marks_;
  std::vector<Span> spans_;
};

}  // namespace zinc_rt::vulkan

// Measures where a step's time goes: it adds a barrier and a timestamp after each dispatch.
// Thread rule: as Device.
#pragma once

#include <string>
#include <vector>

#include "vulkan/device/loader.h"

namespace zinc_rt::vulkan {

class Stopwatch {
 public:
  // Errors: kUnavailable for a device without timestamps.
  static Result<Stopwatch> make(const Api& api, VkPhysicalDevice physical, VkDevice device);
  void destroy(const Api& api, VkDevice device) const { api.DestroyQueryPool(device, pool_, nullptr); }

  // Marks the end of a dispatch while commands are recorded. pipeline null: marks the beginning of the commands.
  void mark(const Api& api, VkCommandBuffer commands, VkPipeline pipeline);
  // Call reset() before a submission and collect() after it.
  void reset(const Api& api, VkDevice device) const { api.ResetQueryPool(device, pool_, 0, kMarks); }
  void collect(const Api& api, VkDevice device);

  struct Span {
    VkPipeline pipeline;
    double seconds;
  };
  // The dispatches of the last submission.
  const std::vector<Span>& spans() const { return spans_; }

 private:
  static constexpr std::uint32_t kMarks = 16384;
  VkQueryPool pool_ = nullptr;
  double seconds_a_tick_ = 0;
  std::vector<VkPipeline> marks_;
  std::vector<Span> spans_;
};

}  // namespace zinc_rt::vulkan

#include "vulkan/device/stopwatch.h"

#include "base/error.h"

namespace zinc_rt::vulkan {

Result<Stopwatch> Stopwatch::make(const Api& api, VkPhysicalDevice physical, VkDevice device) {
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  api.GetPhysicalDeviceProperties2(physical, &properties);
  const auto& limits = properties.properties.limits;
  if (limits.timestampComputeAndGraphics != VK_TRUE)
    return fail(StatusCode::kUnavailable, "[vulkan] {} has no timestamps", properties.properties.deviceName);
  Stopwatch stopwatch;
  stopwatch.seconds_a_tick_ = static_cast<double>(limits.timestampPeriod) * 1e-9;
  VkQueryPoolCreateInfo wanted{};
  wanted.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  wanted.queryType = VK_QUERY_TYPE_TIMESTAMP;
  wanted.queryCount = kMarks;
  if (const auto result = api.CreateQueryPool(device, &wanted, nullptr, &stopwatch.pool_); result != VK_SUCCESS)
    return fail(StatusCode::kInternal, "[vulkan] a query pool: {}", to_string(result));
  return stopwatch;
}

// Marks the end of a dispatch. When all timestamps are used up, further dispatches are not timed.
void Stopwatch::mark(const Api& api, VkCommandBuffer commands, VkPipeline pipeline) {
  if (marks_.size() == kMarks) return;
  api.CmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, pool_,
                         static_cast<std::uint32_t>(marks_.size()));
  marks_.push_back(pipeline);
}

void Stopwatch::collect(const Api& api, VkDevice device) {
  struct Entry {
    std::uint64_t ticks, is_there;
  };
  std::vector<Entry> entries(marks_.size());
  spans_.clear();
  if (entries.empty()) return;
  api.GetQueryPoolResults(device, pool_, 0, static_cast<std::uint32_t>(entries.size()), entries.size() * sizeof(Entry),
                          entries.data(), sizeof(Entry),
                          VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (marks_[i] != nullptr && entries[i].is_there != 0 && entries[i - 1].is_there != 0)
      spans_.push_back({marks_[i], static_cast<double>(entries[i].ticks - entries[i - 1].ticks) * seconds_a_tick_});
}

}  // namespace zinc_rt::vulkan

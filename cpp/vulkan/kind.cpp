#include "executor/kind.h"

#include "vulkan/devices.h"
#include "vulkan/vulkan_executor.h"

namespace zinc_rt {

extern const ExecutorKind kExecutor_vulkan;
const ExecutorKind kExecutor_vulkan{
    .name = "vulkan",
    .description = "walks the model itself over a Vulkan device, to the same bits",
    .backend = "vulkan",
    .tiers =
        [] {
          return std::vector<ExecutorTier>{{.name = "vulkan",
                                            .description = "any GPU with a driver for Vulkan 1.3, taken when asked for",
                                            .priority = -1,
                                            .unavailable_reason = vulkan::unavailable_reason,
                                            .details = vulkan::describe_devices}};
        },
    .open = vulkan::VulkanExecutor::open};

}  // namespace zinc_rt

// Opens the Vulkan loader at run time, so that a program with this backend also runs on a machine without Vulkan.
// Thread rule: any thread. What load_api() returns is created once and never changes.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "zinc_rt/status.h"

namespace zinc_rt::vulkan {

#define ZRT_VULKAN_FUNCTIONS(X)             \
  X(EnumeratePhysicalDevices)               \
  X(EnumerateDeviceExtensionProperties)     \
  X(GetPhysicalDeviceProperties2)           \
  X(GetPhysicalDeviceFeatures2)             \
  X(GetPhysicalDeviceMemoryProperties)      \
  X(GetPhysicalDeviceQueueFamilyProperties) \
  X(CreateDevice)                           \
  X(DestroyDevice)                          \
  X(GetDeviceQueue)                         \
  X(CreateBuffer)                           \
  X(DestroyBuffer)                          \
  X(GetBufferMemoryRequirements)            \
  X(GetBufferDeviceAddress)                 \
  X(AllocateMemory)                         \
  X(FreeMemory)                             \
  X(BindBufferMemory)                       \
  X(MapMemory)                              \
  X(CreateShaderModule)                     \
  X(DestroyShaderModule)                    \
  X(CreatePipelineLayout)                   \
  X(DestroyPipelineLayout)                  \
  X(CreatePipelineCache)                    \
  X(DestroyPipelineCache)                   \
  X(GetPipelineCacheData)                   \
  X(CreateComputePipelines)                 \
  X(DestroyPipeline)                        \
  X(CreateCommandPool)                      \
  X(DestroyCommandPool)                     \
  X(AllocateCommandBuffers)                 \
  X(FreeCommandBuffers)                     \
  X(BeginCommandBuffer)                     \
  X(EndCommandBuffer)                       \
  X(CmdBindPipeline)                        \
  X(CmdPushConstants)                       \
  X(CmdDispatchIndirect)                    \
  X(CmdPipelineBarrier2)                    \
  X(CmdCopyBuffer)                          \
  X(CreateSemaphore)                        \
  X(DestroySemaphore)                       \
  X(WaitSemaphores)                         \
  X(QueueSubmit2)                           \
  X(DeviceWaitIdle)                         \
  X(CreateQueryPool)                        \
  X(DestroyQueryPool)                       \
  X(ResetQueryPool)                         \
  X(GetQueryPoolResults)                    \
  X(CmdWriteTimestamp2)

struct Api {
  VkInstance instance = nullptr;
  PFN_vkGetInstanceProcAddr get_instance_function = nullptr;  // looks up functions that a driver may lack
#define ZRT_DECLARE(name) PFN_vk##name name = nullptr;
  ZRT_VULKAN_FUNCTIONS(ZRT_DECLARE)
#undef ZRT_DECLARE
};

// Returns Vulkan's functions. The first call opens the loader and creates the process's instance. Errors: kUnavailable
// with the fix.
Result<const Api*> load_api();

// Returns a name such as "VK_ERROR_OUT_OF_DEVICE_MEMORY", or the number of a result that has no name here.
std::string to_string(VkResult result);

}  // namespace zinc_rt::vulkan

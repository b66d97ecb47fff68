// Lists the Vulkan devices of this machine and what each lacks, and chooses one.
// Thread rule: any thread.
#pragma once

#include <string>
#include <vector>

#include "vulkan/device/loader.h"

namespace zinc_rt::vulkan {

struct DeviceInfo {
  VkPhysicalDevice handle = nullptr;
  std::string name, driver;  // such as "llvmpipe (LLVM 15.0.6, 256 bits)" and "llvmpipe Mesa 22.3.6"
  std::uint32_t api_version = 0;
  bool is_processor = false, is_discrete = false;
  std::string missing;  // required features that the device lacks; empty: the device can be used
  bool has_doubles = false;
  // Whether the device has each of three execution modes for 32-bit floats (device/strict.h).
  bool keeps_denormals = false, rounds_to_even = false, keeps_inf_nan_zero = false;
  std::uint32_t subgroup_size = 0;  // the subgroup size of pipelines
  // True: pipelines must request subgroup_size, because the driver may choose another size.
  bool has_sizes_of_subgroups = false;
  bool has_matrices = false;       // cooperative matrices of int8, 16 x 32 by 32 x 16, in subgroups of 32
  std::uint32_t shared_bytes = 0;  // the most shared memory of a workgroup
  std::uint32_t queue_family = 0;
  std::uint64_t memory_bytes = 0;          // size of the device's largest memory heap
  std::uint64_t max_allocation_bytes = 0;  // the largest size of one region
  std::string cache_id;                    // names the file of the pipeline cache; changes with device and driver
};

// Declared here because headers before 1.3.255 lack VK_KHR_cooperative_matrix.
inline constexpr const char* kMatrixExtension = "VK_KHR_cooperative_matrix";
struct MatrixFeatures {
  VkStructureType type = static_cast<VkStructureType>(1000506000);
  void* next = nullptr;
  VkBool32 has_matrices = VK_FALSE, has_robust_access = VK_FALSE;
};

// The features that every device must have, chained for vkCreateDevice. The object must not move, because it points
// into itself.
struct Features {
  explicit Features(const DeviceInfo& info);
  Features(const Features&) = delete;
  MatrixFeatures matrices;
  VkPhysicalDeviceVulkan13Features v13{};
  VkPhysicalDeviceVulkan12Features v12{};
  VkPhysicalDeviceVulkan11Features v11{};
  VkPhysicalDeviceFeatures2 v10{};
};

// Returns all devices in the order of preference: GPUs before processors, and GPUs with their own memory first. Errors:
// kUnavailable if the Vulkan loader is not installed.
Result<std::vector<DeviceInfo>> list_devices();

// Returns the first GPU, or the device whose name contains `wanted`. A processor is used only on request. Errors:
// kUnavailable with the existing devices and what each lacks.
Result<DeviceInfo> choose_device(const std::string& wanted);

}  // namespace zinc_rt::vulkan

#include "vulkan/device/device_list.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/letter_case.h"

namespace zinc_rt::vulkan {
namespace {

template <class Struct>
struct Feature {
  const char* name;
  VkBool32 Struct::* field;
};
#define ZRT_FEATURE(Struct, name) {#name, &Struct::name}
constexpr Feature<VkPhysicalDeviceFeatures> kCore[] = {ZRT_FEATURE(VkPhysicalDeviceFeatures, shaderInt64),
                                                       ZRT_FEATURE(VkPhysicalDeviceFeatures, shaderInt16)};
constexpr Feature<VkPhysicalDeviceVulkan11Features> k11[] = {
    ZRT_FEATURE(VkPhysicalDeviceVulkan11Features, storageBuffer16BitAccess)};
constexpr Feature<VkPhysicalDeviceVulkan12Features> k12[] = {
    ZRT_FEATURE(VkPhysicalDeviceVulkan12Features, bufferDeviceAddress),
    ZRT_FEATURE(VkPhysicalDeviceVulkan12Features, storageBuffer8BitAccess),
    ZRT_FEATURE(VkPhysicalDeviceVulkan12Features, shaderInt8),
    ZRT_FEATURE(VkPhysicalDeviceVulkan12Features, scalarBlockLayout),
    ZRT_FEATURE(VkPhysicalDeviceVulkan12Features, timelineSemaphore),
    ZRT_FEATURE(VkPhysicalDeviceVulkan12Features, hostQueryReset)};
constexpr Feature<VkPhysicalDeviceVulkan13Features> k13[] = {
    ZRT_FEATURE(VkPhysicalDeviceVulkan13Features, shaderIntegerDotProduct),
    ZRT_FEATURE(VkPhysicalDeviceVulkan13Features, synchronization2),
    ZRT_FEATURE(VkPhysicalDeviceVulkan13Features, maintenance4)};
#undef ZRT_FEATURE

// Appends to `missing` the names of the wanted features that `have` lacks.
template <class Struct, std::size_t kCount>
void add_missing(const Struct& have, const Feature<Struct> (&wanted)[kCount], std::vector<std::string>& missing) {
  for (const auto& feature : wanted)
    if (have.*feature.field != VK_TRUE) missing.emplace_back(feature.name);
}
template <class Struct, std::size_t kCount>
void ask_for(Struct& to, const Feature<Struct> (&wanted)[kCount]) {
  for (const auto& feature : wanted) to.*feature.field = VK_TRUE;
}

// Links the structs to a chain, as Vulkan's functions whose names end in 2 require.
void chain(Features& f) {
  f.v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  f.v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  f.v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  f.v10.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  f.v12.pNext = &f.v13;
  f.v11.pNext = &f.v12;
  f.v10.pNext = &f.v11;
}

// Returns whether the driver has the extension, with int8 matrices of the shape that kernels/vulkan/matrices.glsl uses.
bool has_matrices(const Api& api, VkPhysicalDevice device) {
  struct Shape {
    VkStructureType type = static_cast<VkStructureType>(1000506001);
    void* next = nullptr;
    std::uint32_t m = 0, n = 0, k = 0, a = 0, b = 0, c = 0, result = 0, is_saturating = 0, scope = 0;
  };
  using List = VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, Shape*);
  constexpr std::uint32_t kSint8 = 3, kSint32 = 5;  // values of VkComponentTypeKHR
  std::uint32_t n = 0;
  api.EnumerateDeviceExtensionProperties(device, nullptr, &n, nullptr);
  std::vector<VkExtensionProperties> extensions(n);
  api.EnumerateDeviceExtensionProperties(device, nullptr, &n, extensions.data());
  if (std::ranges::none_of(extensions,
                           [](const auto& e) { return std::string_view(e.extensionName) == kMatrixExtension; }))
    return false;
  const auto list = reinterpret_cast<List>(
      api.get_instance_function(api.instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  n = 0;
  if (list == nullptr || list(device, &n, nullptr) != VK_SUCCESS) return false;
  std::vector<Shape> shapes(n);
  list(device, &n, shapes.data());
  return std::ranges::any_of(shapes, [](const Shape& s) {
    return s.m == 16 && s.n == 16 && s.k == 32 && s.a == kSint8 && s.b == kSint8 && s.c == kSint32 &&
           s.result == kSint32 && s.is_saturating == 0 && s.scope == 3;  // scope 3 is the subgroup
  });
}

std::uint32_t compute_family(const Api& api, VkPhysicalDevice device) {
  std::uint32_t n = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(device, &n, nullptr);
  std::vector<VkQueueFamilyProperties> families(n);
  api.GetPhysicalDeviceQueueFamilyProperties(device, &n, families.data());
  const auto has_compute = [](const auto& family) { return (family.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0; };
  return static_cast<std::uint32_t>(std::ranges::find_if(families, has_compute) - families.begin());
}

DeviceInfo describe(const Api& api, VkPhysicalDevice device) {
  VkPhysicalDeviceVulkan13Properties p13{};
  p13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES;
  VkPhysicalDeviceVulkan12Properties p12{};
  p12.pNext = &p13;
  p12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  VkPhysicalDeviceVulkan11Properties p11{};
  p11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  p11.pNext = &p12;
  VkPhysicalDeviceProperties2 p{};
  p.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  p.pNext = &p11;
  api.GetPhysicalDeviceProperties2(device, &p);
  DeviceInfo info;
  info.handle = device;
  info.name = p.properties.deviceName;
  info.api_version = p.properties.apiVersion;
  info.is_processor = p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  info.is_discrete = p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  if (info.api_version < VK_API_VERSION_1_3) {
    info.missing = fmt::format("Vulkan 1.3 (it has {}.{})", VK_API_VERSION_MAJOR(info.api_version),
                               VK_API_VERSION_MINOR(info.api_version));
    return info;
  }
  info.driver = fmt::format("{} {}", p12.driverName, p12.driverInfo);
  info.keeps_denormals = p12.shaderDenormPreserveFloat32 == VK_TRUE;
  info.rounds_to_even = p12.shaderRoundingModeRTEFloat32 == VK_TRUE;
  info.keeps_inf_nan_zero = p12.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE;
  info.shared_bytes = p.properties.limits.maxComputeSharedMemorySize;
  info.max_allocation_bytes = p11.maxMemoryAllocationSize;
  for (const auto byte : p.properties.pipelineCacheUUID) info.cache_id += fmt::format("{:02x}", byte);
  info.queue_family = compute_family(api, device);
  VkPhysicalDeviceMemoryProperties memory;
  api.GetPhysicalDeviceMemoryProperties(device, &memory);
  for (const auto& heap : std::span(memory.memoryHeaps).first(memory.memoryHeapCount))
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) info.memory_bytes = std::max(info.memory_bytes, heap.size);
  Features have(info);
  have.v13 = {}, have.v12 = {}, have.v11 = {}, have.v10 = {};
  chain(have);
  api.GetPhysicalDeviceFeatures2(device, &have.v10);
  info.has_doubles = have.v10.features.shaderFloat64 == VK_TRUE;
  std::vector<std::string> missing;
  add_missing(have.v10.features, kCore, missing);
  add_missing(have.v11, k11, missing);
  add_missing(have.v12, k12, missing);
  add_missing(have.v13, k13, missing);
  info.subgroup_size = p11.subgroupSize;
  info.has_sizes_of_subgroups = p13.minSubgroupSize != p13.maxSubgroupSize;
  if (info.has_sizes_of_subgroups &&
      (have.v13.subgroupSizeControl != VK_TRUE || (p13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) == 0))
    missing.emplace_back("subgroupSizeControl");
  constexpr std::uint32_t kMatrixSharedBytes = 48 * 1024;  // how much shared memory kernels with matrices may use
  info.has_matrices = info.subgroup_size == 32 && !info.has_sizes_of_subgroups &&
                      info.shared_bytes >= kMatrixSharedBytes && have.v12.vulkanMemoryModel == VK_TRUE &&
                      has_matrices(api, device);
  // A device must allow the largest workgroup of any kernel, kWidth invocations. It must also allow the shuffles of
  // linear_row.glsl between eight neighbours, so subgroups need at least eight invocations.
  constexpr std::uint32_t kWidth = 512;
  const auto& limits = p.properties.limits;
  if (const auto width = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
      width < kWidth)
    missing.push_back(fmt::format("workgroups of {} invocations (it has {})", kWidth, width));
  constexpr VkSubgroupFeatureFlags kSubgroup = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  if ((p11.subgroupSupportedOperations & kSubgroup) != kSubgroup) missing.emplace_back("shuffles in subgroups");
  if (p11.subgroupSize < 8 || p11.subgroupSize > 64)
    missing.push_back(fmt::format("subgroups of 8 to 64 invocations (it has {})", p11.subgroupSize));
  info.missing = fmt::format("{}", fmt::join(missing, ", "));
  return info;
}

}  // namespace

Features::Features(const DeviceInfo& info) {
  chain(*this);
  ask_for(v10.features, kCore);
  ask_for(v11, k11);
  ask_for(v12, k12);
  ask_for(v13, k13);
  v10.features.shaderFloat64 = info.has_doubles ? VK_TRUE : VK_FALSE;
  if (info.has_matrices) {
    v12.vulkanMemoryModel = VK_TRUE;
    matrices.has_matrices = VK_TRUE;
    v13.pNext = &matrices;
  }
  v13.subgroupSizeControl = info.has_sizes_of_subgroups ? VK_TRUE : VK_FALSE;
}

Result<std::vector<DeviceInfo>> list_devices() {
  ZRT_TRY(const Api* api, load_api());
  std::uint32_t n = 0;
  api->EnumeratePhysicalDevices(api->instance, &n, nullptr);
  std::vector<VkPhysicalDevice> handles(n);
  api->EnumeratePhysicalDevices(api->instance, &n, handles.data());
  std::vector<DeviceInfo> list;
  for (const auto handle : handles) list.push_back(describe(*api, handle));
  std::ranges::stable_sort(list, std::less{}, [](const DeviceInfo& d) {
    return d.is_processor ? 2 : d.is_discrete ? 0 : 1;
  });
  return list;
}

Result<DeviceInfo> choose_device(const std::string& wanted) {
  ZRT_TRY(const auto list, list_devices());
  std::vector<std::string> others;
  for (const DeviceInfo& device : list) {
    const bool is_named = !wanted.empty() && to_lower(device.name).contains(to_lower(wanted));
    if (is_named && !device.missing.empty())
      return fail(StatusCode::kUnavailable, "[vulkan] {} cannot be used; it lacks {}", device.name, device.missing);
    if (is_named || (wanted.empty() && !device.is_processor && device.missing.empty())) return device;
    others.push_back(device.missing.empty() ? device.name : fmt::format("{} lacks {}", device.name, device.missing));
    if (device.is_processor && device.missing.empty())
      others.back() += " is a processor, taken only where ZINC_RT_VULKAN_DEVICE has a part of its name";
  }
  if (others.empty())
    return fail(StatusCode::kUnavailable, "[vulkan] the loader finds no device: no driver is installed");
  return fail(StatusCode::kUnavailable, "[vulkan] no {}: {}",
              wanted.empty() ? std::string("GPU can be used") : fmt::format("device has \"{}\" in its name", wanted),
              fmt::join(others, "; "));
}

}  // namespace zinc_rt::vulkan

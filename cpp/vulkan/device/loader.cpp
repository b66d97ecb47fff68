#include "vulkan/device/loader.h"

#include <dlfcn.h>

#include "base/error.h"

namespace zinc_rt::vulkan {
namespace {

constexpr const char* kLibrary = "libvulkan.so.1";

Result<Api> open_loader() {
  // Never closed, because drivers have threads that run its code.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(StatusCode::kUnavailable, "[vulkan] {} cannot be opened; install the Vulkan loader (libvulkan1)",
                kLibrary);
  const auto get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
  const auto create =
      get == nullptr ? nullptr : reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"));
  if (create == nullptr)
    return fail(StatusCode::kUnavailable, "[vulkan] {} has no vkCreateInstance: it is no Vulkan loader", kLibrary);
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "zinc_rt";
  application.apiVersion = VK_API_VERSION_1_3;
  VkInstanceCreateInfo wanted{};
  wanted.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  wanted.pApplicationInfo = &application;
  Api api;
  api.get_instance_function = get;
  if (const auto result = create(&wanted, nullptr, &api.instance); result != VK_SUCCESS)
    return fail(StatusCode::kUnavailable, "[vulkan] the loader makes no instance: {}; is a driver installed?",
                to_string(result));
#define ZRT_LOAD(name)                                                      \
  api.name = reinterpret_cast<PFN_vk##name>(get(api.instance, "vk" #name)); \
  if (api.name == nullptr)                                                  \
    return fail(StatusCode::kUnavailable, "[vulkan] the loader lacks vk" #name "; Vulkan 1.3 is needed");
  ZRT_VULKAN_FUNCTIONS(ZRT_LOAD)
#undef ZRT_LOAD
  return api;
}

}  // namespace

Result<const Api*> load_api() {
  static const Result<Api> api = open_loader();
  if (!api) return std::unexpected(api.error());
  return &*api;
}

std::string to_string(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    default: return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

}  // namespace zinc_rt::vulkan

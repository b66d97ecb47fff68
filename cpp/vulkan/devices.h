// Chooses the Vulkan device once per process, and tests its arithmetic before a model runs on it.
// Thread rule: any thread.
#pragma once

#include "vulkan/device/device.h"

namespace zinc_rt::vulkan {

// Opens the chosen device (ZINC_RT_VULKAN_DEVICE) and sets the form of fma with which it passed the test. Errors:
// kUnavailable with the reason if no device can be used.
Result<std::unique_ptr<Device>> open_proven_device();
// Returns why no device can be used. Returns an empty text if a device can be used.
std::string unavailable_reason();
// Returns one line for display: all devices, the test result of the chosen device, and why other devices are refused.
std::string describe_devices();

}  // namespace zinc_rt::vulkan

// The device that the backend runs on: chosen once a process, and proven before a model runs there.
// Thread rule: any thread.
#pragma once

#include "vulkan/device/device.h"

namespace zinc_rt::vulkan {

// Opens the chosen device (ZINC_RT_VULKAN_DEVICE) with the form of fma that is proven for it. Errors: kUnavailable, why
// none can be used.
Result<std::unique_ptr<Device>> open_proven_device();
// Empty, or why no device can be used.
std::string unavailable_reason();
// One line for people: all devices, what was proven of the chosen one, and why others are refused.
std::string describe_devices();

}  // namespace zinc_rt::vulkan

// The backend's device: chosen once per process, and tested before a model runs on it.
// Thread rule: any thread.
#pragma once

#include "vulkan/device/device.h"

namespace zinc_rt::vulkan {

// Opens the chosen device (ZINC_RT_VULKAN_DEVICE) and sets the form of fma that passed the test. Errors: kUnavailable
// with the reason why no device can be used.
Result<std::unique_ptr<Device>> open_proven_device();
// Why no device can be used; empty if one can.
std::string unavailable_reason();
// One line for people: all devices, the test result of the chosen one, and why others are refused.
std::string describe_devices();

}  // namespace zinc_rt::vulkan

// Proves on an open device that the arithmetic contract holds there, before any model is run on it: what the contract is
// made of gives the bits of kernels/common on some thousand values each.
// Thread rule: as Device.
#pragma once

#include <string>

#include "vulkan/device/device.h"

namespace zinc_rt::vulkan {

// With one form of fma: what differs, or nothing. Errors: of the device.
Result<std::string> find_difference(Device& device, Fma form);

// Makes the device use the first form of fma with which all functions have the right bits. Gives what differs with the
// forms before it, for people; empty: the first one is used. Errors: kUnavailable, "no exact arithmetic" with the
// function that differs in each form.
Result<std::string> prove_arithmetic(Device& device);

}  // namespace zinc_rt::vulkan

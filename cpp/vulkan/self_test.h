// Tests on an open device that the arithmetic contract holds, before any model runs on it: the contract's functions
// must give the bits of kernels/common for some thousand values each.
// Thread rule: as Device.
#pragma once

#include <string>

#include "vulkan/device/device.h"

namespace zinc_rt::vulkan {

// What differs with one form of fma, or nothing. Errors: those of the device.
Result<std::string> find_difference(Device& device, Fma form);

// For a device with matrices: what differs in their products, or nothing. Errors: those of the device, including a
// refused kernel.
Result<std::string> find_matrix_difference(Device& device);

// Sets the first form of fma with which all functions give the right bits, and turns matrices on if theirs are right
// too. Returns, for people, what differed with earlier forms and with matrices; empty if nothing did. Errors:
// kUnavailable, "no exact arithmetic", with the function that differs in each form.
Result<std::string> prove_arithmetic(Device& device);

}  // namespace zinc_rt::vulkan

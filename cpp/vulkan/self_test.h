// Proves on an open device that the arithmetic contract holds there, before any model is run on it: what the contract is
// made of gives the bits of kernels/common on some thousand values each.
// Thread rule: as Device.
#pragma once

#include <string>

#include "vulkan/device/device.h"

namespace zinc_rt::vulkan {

// With one form of fma: what differs, or nothing. Errors: of the device.
Result<std::string> find_difference(Device& device, Fma form);

// Of a device with matrices: what differs in their products, or nothing. Errors: of the device, also a kernel that it
// refuses.
Result<std::string> find_matrix_difference(Device& device);

// Makes the device use the first form of fma with which all functions have the right bits, and its matrices if these have,
// too. Gives what differs with the forms before it and with matrices, for people; empty: all is right. Errors: kUnavailable, "no exact arithmetic" with the
// function that differs in each form.
Result<std::string> prove_arithmetic(Device& device);

}  // namespace zinc_rt::vulkan

// Tests on an open device, before any model runs on it, that the arithmetic contract holds: some thousand values of
// each function must have the same bits as in kernels/common.
// Thread rule: as Device.
#pragma once

#include <string>

#include "vulkan/device/device.h"

namespace zinc_rt::vulkan {

// Returns what differs with one form of fma; empty if nothing does. Errors: those of the device.
Result<std::string> find_difference(Device& device, Fma form);

// For a device with cooperative matrices: returns what differs in their products; empty if nothing does. Errors: those
// of the device, including a refused kernel.
Result<std::string> find_matrix_difference(Device& device);

// Selects the first form of fma with which all functions have the right bits, and turns matrices on if theirs are right
// too. Returns, for people, what differed with earlier forms and with matrices; empty if nothing did. Errors:
// kUnavailable, "no exact arithmetic", with the function that differs in each form.
Result<std::string> prove_arithmetic(Device& device);

}  // namespace zinc_rt::vulkan

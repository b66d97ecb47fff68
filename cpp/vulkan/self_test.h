// Tests an open device before any model runs on it: does it keep the arithmetic contract (docs/arithmetic.md)? For some
// thousand values, each function must have the same bits as in kernels/common.
// Thread rule: see Device.
#pragma once

#include <string>

#include "vulkan/device/device.h"

namespace zinc_rt::vulkan {

// Returns a text about what differs if fma has this form; empty if nothing does. Errors: those of the device.
Result<std::string> find_difference(Device& device, Fma form);

// For a device with cooperative matrices: returns a text about what differs in their products; empty if nothing does.
// Errors: those of the device, for instance a refused kernel.
Result<std::string> find_matrix_difference(Device& device);

// Selects the first form of fma with which all functions have the right bits. Turns matrices on if theirs are right
// too. Returns a text for display about what differed in earlier forms and in matrices; empty if nothing did. Errors:
// kUnavailable, "no exact arithmetic", with the function that differs in each form.
Result<std::string> prove_arithmetic(Device& device);

}  // namespace zinc_rt::vulkan

// Tests, before any model runs on an open device, whether the device keeps the arithmetic contract
// (docs/arithmetic.md). For some thousand values, each function must have the same bits as in kernels/common.
// Thread rule: one thread at a time, as for Device.
#pragma once

#include <string>

#include "vulkan/device/device.h"

namespace zinc_rt::vulkan {

// Runs the tests with this form of fma. Returns a text about the results that differ; empty if all are equal. Errors:
// those of the device.
Result<std::string> find_difference(Device& device, Fma form);

// For a device with cooperative matrices: tests their products. Returns a text about the products that differ; empty if
// all are equal. Errors: those of the device, for instance a refused kernel.
Result<std::string> find_matrix_difference(Device& device);

// Selects the first form of fma with which all functions have the right bits. Enables cooperative matrices if their
// products have the right bits too. Returns a text for display about what differed in earlier forms and in matrices;
// empty if nothing differed. Errors: kUnavailable, "no exact arithmetic", with the function that differs in each form.
Result<std::string> prove_arithmetic(Device& device);

}  // namespace zinc_rt::vulkan

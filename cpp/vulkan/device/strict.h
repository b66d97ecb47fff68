// Makes a SPIR-V module keep to the arithmetic contract, whatever its author and compiler forgot. It adds NoContraction
// to every float result, and the execution modes for 32-bit floats that the device has.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zinc_rt::vulkan {

struct Strictness {
  bool keep_denormals = false;     // DenormPreserve
  bool round_to_even = false;      // RoundingModeRTE
  bool keep_inf_nan_zero = false;  // SignedZeroInfNanPreserve
};

// REQUIRES: a module as glslc writes it, with one entry point.
std::vector<std::uint32_t> strict(std::span<const std::uint32_t> module, const Strictness& wanted);

}  // namespace zinc_rt::vulkan

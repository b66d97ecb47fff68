// Changes a SPIR-V module so that it keeps the arithmetic contract (docs/arithmetic.md), even if its source or compiler
// did not request this. It adds NoContraction to every float result, and the execution modes for 32-bit floats that the
// device has.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zinc_rt::vulkan {

struct Strictness {
  bool keep_denormals = false;     // adds execution mode DenormPreserve
  bool round_to_even = false;      // adds execution mode RoundingModeRTE
  bool keep_inf_nan_zero = false;  // adds execution mode SignedZeroInfNanPreserve
};

// Returns the changed module. REQUIRES: the module is as glslc writes it, with one entry point.
std::vector<std::uint32_t> strict(std::span<const std::uint32_t> module, const Strictness& wanted);

}  // namespace zinc_rt::vulkan

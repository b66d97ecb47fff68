// Repairs the types of cooperative matrices in a SPIR-V module that glslc wrote (kernels/vulkan/matrices.glsl).
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zinc_rt::vulkan {

// glslc writes each OpTypeCooperativeMatrixKHR with its scope, sizes and use as literals and without an element type.
// In the returned module the literals are constants, and the element type is int8, or int32 for accumulators. A module
// without such types is returned unchanged. REQUIRES: the module is as glslc writes it.
std::vector<std::uint32_t> complete_matrices(std::span<const std::uint32_t> module);

}  // namespace zinc_rt::vulkan

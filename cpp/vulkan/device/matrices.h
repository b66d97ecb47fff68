// Completes the types of cooperative matrices in a SPIR-V module (kernels/vulkan/matrices.glsl).
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zinc_rt::vulkan {

// glslc writes each OpTypeCooperativeMatrixKHR with its scope, sizes and use as literals and without an element type.
// Here the literals become constants, and the element type becomes int8, or int32 for accumulators. A module without
// such types is returned unchanged. REQUIRES: a module as glslc writes it.
std::vector<std::uint32_t> complete_matrices(std::span<const std::uint32_t> module);

}  // namespace zinc_rt::vulkan

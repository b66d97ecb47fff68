// Completes the types of cooperative matrices in a SPIR-V module (kernels/vulkan/matrices.glsl).
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zinc_rt::vulkan {

// Each OpTypeCooperativeMatrixKHR of glslc has its scope, sizes and use as literals and no element type. They become
// constants, and the elements int8, of accumulators int32. Modules without such types come back as they are.
// REQUIRES: a module as glslc writes it.
std::vector<std::uint32_t> complete_matrices(std::span<const std::uint32_t> module);

}  // namespace zinc_rt::vulkan

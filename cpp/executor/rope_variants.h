// Chooses the variant of the RoPE tables from a text's length (arch::Family::rope_variant).
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "arch/family.h"

namespace zinc_rt {

// Computes what Executor::rope_variant() returns.
std::uint32_t rope_variant(const arch::Family& family, const ModelConfig& config, const Weights& weights,
                           std::uint64_t n_tokens);

// Computes ExecutorInfo::rope_limits for texts of up to max_context tokens.
std::vector<std::uint32_t> rope_limits(const arch::Family& family, const ModelConfig& config, const Weights& weights,
                                       std::uint32_t max_context);

}  // namespace zinc_rt

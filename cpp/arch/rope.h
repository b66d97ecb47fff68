// RoPE angles as model files describe them. Thread rule: pure functions.
#pragma once

#include <span>

#include "arch/family.h"

namespace zinc_rt::arch {

// theta^(-2i / n_rot) for i in [0, n_rot / 2).
RopeAngles rope_angles(std::uint32_t n_rot, double theta);

// The same under the config's scaling of the context: none, linear or yarn, each frequency then divided by its divisor
// where the file has any (`divisors`: the name of a tensor of n_rot / 2 floats; it may be absent).
RopeAngles scaled_rope_angles(const ModelConfig& config, const Weights& weights, std::string_view divisors = {});

}  // namespace zinc_rt::arch

// Computes RoPE angles from what the model file says: the base theta, context scaling, and divisors of frequencies.
// Thread rule: pure functions.
#pragma once

#include <span>

#include "arch/family.h"

namespace zinc_rt::arch {

// Returns RoPE without scaling: the inverse frequencies theta^(-2i / n_rot) for i in [0, n_rot / 2).
RopeAngles rope_angles(std::uint32_t n_rot, double theta);

// Whether the first and the last pair of YaRN's ramp are rounded to whole pairs. No key of a file says it.
enum class YarnBounds : std::uint8_t { kWholePairs, kExact };

// Returns the angles with the config's context scaling: none, linear or yarn. If the file has the tensor named
// `divisors` (n_rot / 2 floats), each frequency is then divided by its divisor.
RopeAngles scaled_rope_angles(const ModelConfig& config, const Weights& weights, std::string_view divisors = {},
                              YarnBounds bounds = YarnBounds::kWholePairs);

}  // namespace zinc_rt::arch

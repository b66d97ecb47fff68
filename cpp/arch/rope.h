// RoPE angles as model files describe them. Thread rule: pure functions.
#pragma once

#include <span>

#include "arch/family.h"

namespace zinc_rt::arch {

// Returns the inverse frequencies theta^(-2i / n_rot) for i in [0, n_rot / 2).
RopeAngles rope_angles(std::uint32_t n_rot, double theta);

// The same with the config's context scaling: none, linear or yarn. Each frequency is then divided by its divisor, if
// the file has the tensor named `divisors` (n_rot / 2 floats).
RopeAngles scaled_rope_angles(const ModelConfig& config, const Weights& weights, std::string_view divisors = {});

}  // namespace zinc_rt::arch

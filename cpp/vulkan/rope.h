// The angles of RoPE, computed from the config a second time, without the other backend's.
// Thread rule: plain values and pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace zinc_rt::vulkan {

// Position p turns pair i by p * frequencies[i]; cosine and sine are times magnitude.
struct RopeAngles {
  std::vector<double> frequencies;
  double magnitude = 1;
};

RopeAngles plain_angles(std::uint32_t n_rot, double theta);
// The config's angles, each divided by its divisor where the file has the tensor. Errors: the tensor's shape or type.
Result<RopeAngles> scaled_angles(const ModelConfig& config, const Weights& weights, std::string_view divisors = {});
// Pairs of cosine and sine of each variant's positions: row v * n_positions + p.
std::vector<float> rope_rows(const std::vector<RopeAngles>& variants, std::uint32_t n_positions);

}  // namespace zinc_rt::vulkan

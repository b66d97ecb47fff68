// The RoPE angles, computed from the config independently of the other backend.
#pragma once

#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace zinc_rt::vulkan {

// At position p, pair i is rotated by p * frequencies[i]. Cosine and sine are multiplied by magnitude.
struct RopeAngles {
  std::vector<double> frequencies;
  double magnitude = 1;
};

RopeAngles plain_angles(std::uint32_t n_rot, double theta);
// The config's angles, divided by the divisors in the file's tensor if it has one. Errors: the tensor's shape or type.
Result<RopeAngles> scaled_angles(const ModelConfig& config, const Weights& weights, std::string_view divisors = {});
// Cosine and sine pairs of each variant's positions: row v * n_positions + p.
std::vector<float> rope_rows(const std::vector<RopeAngles>& variants, std::uint32_t n_positions);

}  // namespace zinc_rt::vulkan

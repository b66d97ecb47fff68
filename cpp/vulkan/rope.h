// Computes the RoPE angles from the config, independently of cpp/arch/rope.
#pragma once

#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace zinc_rt::vulkan {

// RopeAngles holds the angles of one variant. At position p, pair i is rotated by p * frequencies[i]. Cosine and sine
// are multiplied by magnitude.
struct RopeAngles {
  std::vector<double> frequencies;
  double magnitude = 1;
};

RopeAngles plain_angles(std::uint32_t n_rot, double theta);
// Returns the angles that the config describes, divided by the divisors in the tensor `divisors` if the file has it.
// Errors: the tensor has a wrong shape or type.
Result<RopeAngles> scaled_angles(const ModelConfig& config, const Weights& weights, std::string_view divisors = {});
// Returns cosine and sine pairs of all positions. Row v * n_positions + p belongs to position p of variant v.
std::vector<float> rope_rows(const std::vector<RopeAngles>& variants, std::uint32_t n_positions);

}  // namespace zinc_rt::vulkan

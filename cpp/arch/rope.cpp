#include "arch/rope.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace zinc_rt::arch {
namespace {

// Applies YaRN to the angles. A pair makes full rotations as the position grows. Pairs that rotate more than beta_fast
// times within the original context get their unscaled frequency. Pairs that rotate less than beta_slow times get the
// interpolated frequency. Pairs between these get a mix of the two frequencies that changes linearly with the pair's
// index.
void apply_yarn(const ModelConfig& c, YarnBounds bounds, RopeAngles& angles) {
  const double n_rot = c.rope_dim, context = c.rope_original_context;
  const auto pair_that_turns = [&](double times) {
    return n_rot * std::log(context / (times * 2 * std::numbers::pi)) / (2 * std::log(c.rope_theta));
  };
  double low = pair_that_turns(c.rope_yarn_beta_fast), high = pair_that_turns(c.rope_yarn_beta_slow);
  if (bounds == YarnBounds::kWholePairs) low = std::floor(low), high = std::ceil(high);
  low = std::max(0.0, low);
  high = std::min(n_rot - 1, high);
  for (std::size_t i = 0; i < angles.inverse_frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / std::max(0.001, high - low), 0.0, 1.0);
    double& frequency = angles.inverse_frequencies[i];
    frequency = frequency * (1 - ramp) + frequency / c.rope_scaling_factor * ramp;
  }
  const auto magnitude = [&](double by) { return 1 + 0.1 * by * std::log(c.rope_scaling_factor); };
  angles.magnitude *= magnitude(1) / magnitude(c.rope_yarn_log_multiplier);
}

}  // namespace

RopeAngles rope_angles(std::uint32_t n_rot, double theta) {
  RopeAngles angles;
  for (std::uint32_t i = 0; i < n_rot / 2; ++i) angles.inverse_frequencies.push_back(std::pow(theta, -2.0 * i / n_rot));
  return angles;
}

RopeAngles scaled_rope_angles(const ModelConfig& c, const Weights& weights, std::string_view divisors,
                              YarnBounds bounds) {
  RopeAngles angles = rope_angles(c.rope_dim, c.rope_theta);
  if (c.rope_attn_factor > 0) angles.magnitude = c.rope_attn_factor;
  if (c.rope_scaling_type == "linear")
    for (double& frequency : angles.inverse_frequencies) frequency /= c.rope_scaling_factor;
  if (c.rope_scaling_type == "yarn") apply_yarn(c, bounds, angles);
  const Tensor* tensor = divisors.empty() ? nullptr : weights.find(divisors);
  for (std::size_t i = 0; tensor != nullptr && i < angles.inverse_frequencies.size(); ++i) {
    float divisor;
    std::memcpy(&divisor, tensor->data.data() + 4 * i, 4);
    angles.inverse_frequencies[i] /= divisor;
  }
  return angles;
}

}  // namespace zinc_rt::arch

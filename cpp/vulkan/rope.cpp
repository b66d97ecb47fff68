#include "vulkan/rope.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.h"

namespace zinc_rt::vulkan {
namespace {

// Applies YaRN (Peng, Quesnelle, Fan, Shippole, 2023). Pairs with many rotations within the original context have the
// unscaled frequency. Pairs with few rotations are stretched. Pairs between are mixed linearly.
void stretch_by_yarn(const ModelConfig& c, RopeAngles& angles) {
  const auto pair_with_turns = [&](double turns) {
    return c.rope_dim * std::log(c.rope_original_context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(c.rope_theta));
  };
  const double first = std::max(0.0, std::floor(pair_with_turns(c.rope_yarn_beta_fast)));
  const double last = std::min(c.rope_dim - 1.0, std::ceil(pair_with_turns(c.rope_yarn_beta_slow)));
  for (std::size_t i = 0; i < angles.frequencies.size(); ++i) {
    const double part = std::clamp((static_cast<double>(i) - first) / std::max(0.001, last - first), 0.0, 1.0);
    const double plain = angles.frequencies[i];
    angles.frequencies[i] = plain * (1 - part) + plain / c.rope_scaling_factor * part;
  }
  angles.magnitude *= 1 + 0.1 * std::log(c.rope_scaling_factor);
}

}  // namespace

RopeAngles plain_angles(std::uint32_t n_rot, double theta) {
  RopeAngles angles;
  for (std::uint32_t i = 0; i < n_rot / 2; ++i) angles.frequencies.push_back(std::pow(theta, -2.0 * i / n_rot));
  return angles;
}

Result<RopeAngles> scaled_angles(const ModelConfig& c, const Weights& weights, std::string_view divisors) {
  RopeAngles angles = plain_angles(c.rope_dim, c.rope_theta);
  if (c.rope_attn_factor > 0) angles.magnitude = c.rope_attn_factor;
  if (c.rope_scaling_type == "linear")
    for (double& frequency : angles.frequencies) frequency /= c.rope_scaling_factor;
  if (c.rope_scaling_type == "yarn") stretch_by_yarn(c, angles);
  if (divisors.empty() || weights.find(divisors) == nullptr) return angles;
  ZRT_TRY(const Tensor* tensor, weights.require(divisors, {c.rope_dim / 2}));
  if (tensor->dtype != DType::kF32)
    return fail(StatusCode::kUnavailable, "[vulkan] tensor {} is of type {}, f32 is supported", divisors,
                to_string(tensor->dtype));
  for (std::size_t i = 0; i < angles.frequencies.size(); ++i) {
    float divisor;
    std::memcpy(&divisor, tensor->data.data() + sizeof(float) * i, sizeof(float));
    angles.frequencies[i] /= divisor;
  }
  return angles;
}

std::vector<float> rope_rows(const std::vector<RopeAngles>& variants, std::uint32_t n_positions) {
  std::vector<float> rows;
  for (const RopeAngles& angles : variants)
    for (std::uint32_t p = 0; p < n_positions; ++p)
      for (const double frequency : angles.frequencies) {
        const double angle = static_cast<double>(p) * frequency;
        rows.push_back(static_cast<float>(std::cos(angle) * angles.magnitude));
        rows.push_back(static_cast<float>(std::sin(angle) * angles.magnitude));
      }
  return rows;
}

}  // namespace zinc_rt::vulkan

#include "executor/rope_table.h"

#include <cmath>

namespace zinc_rt {

void fill_rope_table(const arch::RopeTable& table, std::uint32_t n_positions, std::span<float> out) {
  float* at = out.data();
  for (const auto& variant : table.variants)
    for (std::size_t row = 0; row < n_positions; ++row) {
      const std::size_t p = row + table.first_position;
      double factor = variant.magnitude;
      if (variant.temperature_scale != 0)
        factor *= 1 + variant.temperature_scale * std::log(1.0 + static_cast<double>(p / variant.temperature_length));
      for (const double frequency : variant.inverse_frequencies) {
        const double angle = static_cast<double>(p) * frequency;
        *at++ = static_cast<float>(std::cos(angle) * factor);
        *at++ = static_cast<float>(std::sin(angle) * factor);
      }
    }
}

}  // namespace zinc_rt

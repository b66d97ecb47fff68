#include "executor/rope_table.h"

#include <cmath>

namespace zinc_rt {

void fill_rope_table(const arch::RopeTable& table, std::uint32_t n_positions, std::span<float> out) {
  const std::size_t half = table.n_rot / 2;
  for (std::size_t p = 0; p < n_positions; ++p)
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(p) * table.inverse_frequencies[i];
      out[p * table.n_rot + 2 * i] = static_cast<float>(std::cos(angle) * table.magnitude);
      out[p * table.n_rot + 2 * i + 1] = static_cast<float>(std::sin(angle) * table.magnitude);
    }
}

}  // namespace zinc_rt

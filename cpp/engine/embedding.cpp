#include "engine/embedding.h"

#include <cmath>

namespace zinc_rt {

std::vector<float> normalized(std::span<const float> row) {
  double squares = 0;
  // The products are exact, because a float has fewer than half of a double's digits.
  for (const float v : row) squares += double{v} * v;
  if (!(squares > 0) || !std::isfinite(squares)) return {};
  const double scale = 1 / std::sqrt(squares);
  std::vector<float> out;
  out.reserve(row.size());
  for (const float v : row) out.push_back(static_cast<float>(v * scale));
  return out;
}

double relevance(float logit) {
  return 1 / (1 + std::exp(-double{logit}));
}

}  // namespace zinc_rt

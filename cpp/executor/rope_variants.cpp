#include "executor/rope_variants.h"

namespace zinc_rt {

std::uint32_t rope_variant(const arch::Family& family, const ModelConfig& config, const Weights& weights,
                           std::uint64_t n_tokens) {
  return family.rope_variant == nullptr ? 0 : family.rope_variant(config, weights, n_tokens);
}

// A longer text never has a lower variant, so each change can be found by bisection.
std::vector<std::uint32_t> rope_limits(const arch::Family& family, const ModelConfig& config, const Weights& weights,
                                       std::uint32_t max_context) {
  const auto variant_of = [&](std::uint64_t n_tokens) { return rope_variant(family, config, weights, n_tokens); };
  std::vector<std::uint32_t> limits;
  for (std::uint32_t variant = 0; variant < variant_of(max_context); ++variant) {
    std::uint32_t within = 0, beyond = max_context;
    while (beyond - within > 1) {
      const std::uint32_t middle = within + (beyond - within) / 2;
      (variant_of(middle) <= variant ? within : beyond) = middle;
    }
    limits.push_back(within);
  }
  return limits;
}

}  // namespace zinc_rt

#include "engine/logprobs.h"

#include <algorithm>
#include <cmath>

namespace zinc_rt {

TokenLogprob logprob_of(std::span<const float> logits, std::int32_t token, std::uint32_t n_top) {
  const double max = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float l : logits) sum += std::exp(l - max);
  const double log_sum = max + std::log(sum);
  TokenLogprob out{token, logits[static_cast<std::size_t>(token)] - log_sum, {}};
  if (n_top == 0) return out;
  // Ids ascend, so what is no larger than the last of a full list stays out.
  auto& top = out.top;
  top.reserve(std::min<std::size_t>(n_top, logits.size()) + 1);
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const double l = logits[id];
    if (std::isnan(l) || (top.size() == n_top && !(l > top.back().second))) continue;
    auto at = top.end();
    while (at != top.begin() && l > std::prev(at)->second) --at;
    top.emplace(at, static_cast<std::int32_t>(id), l);
    if (top.size() > n_top) top.pop_back();
  }
  for (auto& [id, value] : top) value -= log_sum;
  return out;
}

}  // namespace zinc_rt

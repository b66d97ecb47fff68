#include "vulkan/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/exact_math.h"
#include "kernels/common/philox.h"

namespace zinc_rt::vulkan {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLeastTemperature = 0x1p-20f;  // a lower temperature counts as 0: the most likely token is taken

// Returns the id of the largest logit. Of equal logits, the one with the lowest id counts. NaN is never the largest.
std::int32_t largest(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[best] || std::isnan(logits[best])) best = i;
  return std::isfinite(logits[best]) ? static_cast<std::int32_t>(best) : kNoToken;
}

bool is_greedy(const OutputRow& row) {
  return !(row.sampling.temperature >= kLeastTemperature);
}

}  // namespace

bool takes_largest(const OutputRow& row) {
  return is_greedy(row) && !row.is_masked && !row.is_processed && !row.sampling.has_penalties() && row.bias.empty() &&
         row.banned.empty();
}

float Sampler::total() const {
  float sum = 0;
  for (const Candidate& c : candidates_) sum = sum + c.value;
  return sum;
}

// Changes the logits of tokens in the history, once per token: the repetition penalty applies to all tokens, presence
// and frequency penalties to generated tokens.
void Sampler::penalize(const OutputRow& row) {
  const Sampling& s = row.sampling;
  const auto is_known = [&](std::int32_t id) { return id >= 0 && static_cast<std::size_t>(id) < logits_.size(); };
  counts_.assign(logits_.size(), 0);
  for (const std::int32_t id : row.history.subspan(row.n_prompt))
    if (is_known(id)) ++counts_[static_cast<std::size_t>(id)];
  constexpr std::uint32_t kDone = UINT32_MAX;
  const float inverse = exact::rcp(s.repetition_penalty);
  for (const std::int32_t id : row.history) {
    if (!is_known(id)) continue;
    std::uint32_t& count = counts_[static_cast<std::size_t>(id)];
    if (count == kDone) continue;
    float& l = logits_[static_cast<std::size_t>(id)];
    if (s.repetition_penalty != 1) l = l > 0 ? l * inverse : l * s.repetition_penalty;
    if (count > 0) l = std::fma(-static_cast<float>(count), s.frequency_penalty, l - s.presence_penalty);
    count = kDone;
  }
}

// Applies typical_p: keeps the candidates whose surprise (-log of the probability) is nearest to the mean surprise,
// until their probabilities add up to typical_p of the total.
void Sampler::keep_typical(float typical_p) {
  const std::size_t n = candidates_.size();
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (candidates_[i].value > 0) sum = std::fma(candidates_[i].value, distances_[i], sum);
  const float all = total();
  if (!(all > 0)) return;
  const float mean = sum * exact::rcp(all);
  order_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    order_[i] = static_cast<std::uint32_t>(i);
    distances_[i] = candidates_[i].value > 0 ? std::fabs(mean - distances_[i]) : kInfinity;
  }
  std::ranges::sort(order_, [&](std::uint32_t a, std::uint32_t b) {
    return distances_[a] != distances_[b] ? distances_[a] < distances_[b] : a < b;
  });
  const float wanted = all * typical_p;
  std::size_t kept = 0;
  for (sum = 0; kept < n && (kept == 0 || sum < wanted); ++kept) sum = sum + candidates_[order_[kept]].value;
  std::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(kept));
  for (std::size_t i = 0; i < kept; ++i) candidates_[i] = candidates_[order_[i]];
  candidates_.resize(kept);
}

std::int32_t Sampler::draw(const OutputRow& row) {
  const Sampling& s = row.sampling;
  const float inverse = exact::rcp(s.temperature);
  candidates_.clear();
  for (std::size_t i = 0; i < logits_.size(); ++i)
    candidates_.push_back({logits_[i] * inverse, static_cast<std::uint32_t>(i)});
  if (!(s.typical_p < 1)) {
    // Candidates less than 2^-24 times as likely as the first are dropped: they change no sum and are never drawn. They
    // could only change the mean of typical_p.
    float top = -kInfinity;
    for (const Candidate& c : candidates_) top = c.value > top ? c.value : top;
    std::erase_if(candidates_, [&](const Candidate& c) { return c.value - top < -17.0f; });
  }
  // NaN is sorted last.
  std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
    const bool a_is_nan = std::isnan(a.value), b_is_nan = std::isnan(b.value);
    if (a_is_nan != b_is_nan) return b_is_nan;
    return a_is_nan || a.value == b.value ? a.id < b.id : a.value > b.value;
  });
  if (candidates_.empty()) return kNoToken;
  if (s.top_k > 0 && s.top_k < candidates_.size()) candidates_.resize(s.top_k);
  const float top = candidates_[0].value;
  if (!std::isfinite(top)) return kNoToken;
  distances_.resize(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    distances_[i] = candidates_[i].value - top;
    const float probability = exact::exp(distances_[i]);
    candidates_[i].value = std::isnan(probability) ? 0 : probability;
  }
  if (s.top_p < 1) {
    const float wanted = total() * s.top_p;
    float sum = 0;
    std::size_t kept = 0;
    while (kept < candidates_.size() && (kept == 0 || sum < wanted)) sum = sum + candidates_[kept++].value;
    candidates_.resize(kept);
  }
  while (candidates_.size() > 1 && candidates_.back().value < s.min_p) candidates_.pop_back();
  if (s.typical_p < 1) keep_typical(s.typical_p);
  const float u =
      philox::uniform(static_cast<std::uint32_t>(s.seed), static_cast<std::uint32_t>(s.seed >> 32), row.position) *
      total();
  float sum = 0;
  for (const Candidate& c : candidates_) {
    sum = sum + c.value;
    if (sum > u) return static_cast<std::int32_t>(c.id);
  }
  return static_cast<std::int32_t>(candidates_[0].id);
}

std::int32_t Sampler::pick(const OutputRow& row, std::span<const std::uint32_t> mask, std::span<const float> logits) {
  logits_.assign(logits.begin(), logits.end());
  if (!mask.empty())
    for (std::size_t id = 0; id < logits_.size(); ++id)
      if (id / 32 >= mask.size() || (mask[id / 32] >> id % 32 & 1) == 0) logits_[id] = -kInfinity;
  const auto add = [&](std::int32_t id, float bias) {
    if (id < 0 || static_cast<std::size_t>(id) >= logits_.size()) return;
    logits_[static_cast<std::size_t>(id)] = logits_[static_cast<std::size_t>(id)] + bias;
  };
  for (const TokenBias& bias : row.bias) add(bias.token_id, bias.bias);
  for (const std::int32_t id : row.banned) add(id, -kInfinity);
  if (row.sampling.has_penalties()) penalize(row);
  return is_greedy(row) ? largest(logits_) : draw(row);
}

}  // namespace zinc_rt::vulkan

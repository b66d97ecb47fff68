#include "engine/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace zinc_rt {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::size_t n, float spread) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::normal_distribution<float> value(-3, spread);
  std::vector<float> out(n);
  for (float& l : out) l = value(random);
  return out;
}

// The definition, in long double.
long double log_sum_of(const std::vector<float>& logits) {
  const long double max = *std::ranges::max_element(logits);
  long double sum = 0;
  for (const float l : logits) sum += std::exp(l - max);
  return max + std::log(sum);
}

std::vector<std::int32_t> best_ids(const std::vector<float>& logits, std::size_t n) {
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](auto a, auto b) { return logits[a] > logits[b]; });
  ids.resize(std::min(n, ids.size()));
  return ids;
}

void expect_right(const std::vector<float>& logits, std::int32_t token, std::uint32_t n_top) {
  const auto got = logprob_of(logits, token, n_top);
  const auto log_sum = log_sum_of(logits);
  const auto expect_near = [&](std::int32_t id, double value) {
    const auto wanted = static_cast<double>(logits[static_cast<std::size_t>(id)] - log_sum);
    if (std::isinf(wanted))
      EXPECT_EQ(value, wanted);
    else
      EXPECT_NEAR(value, wanted, 1e-12 * std::max(1.0, std::abs(wanted)));
  };
  EXPECT_EQ(got.token_id, token);
  expect_near(token, got.logprob);
  const auto wanted = best_ids(logits, n_top);
  ASSERT_EQ(got.top.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(got.top[i].first, wanted[i]) << i;
    expect_near(got.top[i].first, got.top[i].second);
  }
}

TEST(Logprobs, AreThoseOfTheDefinitionForAnyNumberOfLogits) {
  for (const std::size_t n : {1, 2, 15, 16, 17, 31, 33, 1000, 32000, 151936})
    for (const float spread : {0.0f, 0.01f, 3.0f, 300.0f}) {
      const auto logits = random_logits(n, spread);
      for (const std::uint32_t n_top : {0u, 1u, 5u, 20u, 128u}) {
        SCOPED_TRACE(testing::Message() << n << " logits of spread " << spread << ", top " << n_top);
        expect_right(logits, static_cast<std::int32_t>(n / 2), n_top);
      }
    }
}

TEST(Logprobs, FindTheMostLikelyWhereverTheyStand) {
  for (const std::size_t n : {17, 64, 100}) {
    std::vector<float> logits(n);
    std::iota(logits.begin(), logits.end(), -50.0f);
    expect_right(logits, 3, 7);
    std::ranges::reverse(logits);
    expect_right(logits, 3, 7);
    for (std::size_t at = 0; at < n; ++at) {
      std::ranges::fill(logits, 1.0f);  // ties go to the lower ids
      logits[at] = 2;
      expect_right(logits, 0, 3);
    }
  }
}

TEST(Logprobs, OfWhatCannotBePickedAreMinusInfinity) {
  auto logits = random_logits(40, 2);
  for (const std::size_t id : {0, 16, 39}) logits[id] = -kInfinity;
  expect_right(logits, 16, 40);
  std::ranges::fill(logits, -kInfinity);
  logits[39] = 5;
  expect_right(logits, 39, 2);
  EXPECT_EQ(logprob_of(logits, 39, 0).logprob, 0);
}

TEST(Logprobs, OfRowsThatAreNoDistributionAreNaN) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity})
    for (const std::size_t at : {0, 5, 15, 16, 36}) {
      auto logits = random_logits(37, 2);
      logits[at] = bad;
      EXPECT_TRUE(std::isnan(logprob_of(logits, 1, 4).logprob)) << bad << " at " << at;
      EXPECT_EQ(logprob_of(logits, 1, 4).top.size(), 4u);
    }
  EXPECT_TRUE(std::isnan(logprob_of(std::vector<float>(20, -kInfinity), 1, 4).logprob));
}

}  // namespace
}  // namespace zinc_rt

#include "engine/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/common/logprobs.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"

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

// From what the op LOGPROBS makes of the row, by its definition.
TokenLogprob logprob_by_op(std::vector<float> logits, std::int32_t token, std::uint32_t n_top) {
  const auto* kernel = *std::ranges::find_if(
      cpu::cpu_kernels(), [](const cpu::CpuKernel* k) { return std::string_view(k->op) == "LOGPROBS"; });
  LogprobParams params{static_cast<std::int32_t>(n_top), -1};
  LogprobStats stats{};
  const auto v = static_cast<std::uint32_t>(logits.size());
  void* buffers[operand::Logprobs::kCount] = {logits.data(), &token, &params, &stats};
  kernel->run({.buffers = buffers,
               .symbols = &v,
               .push = nullptr,
               .n_tokens = 1,
               .n_outputs = 1,
               .wg = {},
               .lds = nullptr,
               .shared = nullptr});
  std::vector<TokenLogit> top;
  for (std::uint32_t i = 0; i < n_top && stats.top[i].id >= 0; ++i)
    top.push_back({stats.top[i].id, stats.top[i].logit});
  return logprob_of(
      {std::bit_cast<double>(std::uint64_t{stats.sum[1]} << 32 | stats.sum[0]), stats.max, stats.logit, top}, token);
}

void expect_same_bits(const std::vector<float>& logits, std::uint32_t n_top) {
  const auto token = static_cast<std::int32_t>(logits.size() / 3);
  const auto host = logprob_of(logits, token, n_top), op = logprob_by_op(logits, token, n_top);
  const auto bits = [](double value) { return std::isnan(value) ? 0 : std::bit_cast<std::uint64_t>(value); };
  EXPECT_EQ(bits(host.logprob), bits(op.logprob));
  ASSERT_EQ(host.top.size(), op.top.size());
  for (std::size_t i = 0; i < op.top.size(); ++i) {
    EXPECT_EQ(host.top[i].first, op.top[i].first) << i;
    EXPECT_EQ(bits(host.top[i].second), bits(op.top[i].second)) << i;
  }
}

// Numbers of logits around the sixteen lanes; ties, both zeros, infinities, NaN among the others and everywhere.
TEST(Logprobs, HaveTheBitsOfTheOp) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::mt19937 random(7);
  for (const std::size_t n : {1, 2, 15, 16, 17, 31, 100, 129, 1000, 32003, 151936})
    for (int kind = 0; kind < 9; ++kind) {
      auto logits = random_logits(n, kind == 0 ? 0.0f : kind == 1 ? 0.1f : kind == 2 ? 300.0f : 4.0f);
      for (float& l : logits) {
        const bool is_some = random() % 8 == 0;
        if (kind == 4) l = std::round(l);
        if (kind == 5) l = random() % 2 == 0 ? 0.0f : -0.0f;
        if (kind == 6 && is_some) l = random() % 2 == 0 ? kNan : -kInfinity;
        if (kind == 7 && is_some) l = kInfinity;
        if (kind == 8) l = is_some ? -kInfinity : kNan;
      }
      if (kind == 3) logits[n / 2] = 1000;  // all others are lost
      for (const std::uint32_t n_top : {0u, 1u, 5u, 20u, kMostLogprobs}) {
        SCOPED_TRACE(testing::Message() << n << " logits of kind " << kind << ", top " << n_top);
        expect_same_bits(logits, n_top);
      }
    }
}

}  // namespace
}  // namespace zinc_rt

// LOGPROBS: what it gives against sums in long double and a sort, and the rows and words that it leaves alone.
#include <limits>
#include <numeric>

#include "harness.h"
#include "kernels/common/logprobs.h"

namespace zinc_rt::kernel_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<LogprobStats> logprobs(std::uint32_t v, const std::vector<float>& logits,
                                   const std::vector<std::int32_t>& picked, const std::vector<LogprobParams>& rows) {
  const auto n = static_cast<std::uint32_t>(rows.size());
  std::vector<std::int32_t> words;
  for (const LogprobParams& row : rows) words.insert(words.end(), {row.n_top, row.token});
  return as<LogprobStats>(run({Op::LOGPROBS,
                               {f32({kOutputs, v}, logits), i32({kOutputs}, picked), i32({kOutputs, 2}, words)},
                               {{DType::kU32, {kOutputs, kLogprobWords}}},
                               {},
                               {0, n}})[0]);
}

LogprobStats logprobs_of(const std::vector<float>& logits, LogprobParams params, std::int32_t picked = 0) {
  return logprobs(static_cast<std::uint32_t>(logits.size()), logits, {picked}, {params})[0];
}

double sum_of(const LogprobStats& stats) {
  return std::bit_cast<double>(std::uint64_t{stats.sum[1]} << 32 | stats.sum[0]);
}

void expect_right(const std::vector<float>& logits, std::uint32_t n_top) {
  const auto token = static_cast<std::int32_t>(logits.size() / 2);
  const auto got = logprobs_of(logits, {static_cast<std::int32_t>(n_top), token});
  const float max = *std::ranges::max_element(logits);
  long double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<long double>(l) - max);
  EXPECT_EQ(got.max, max);
  EXPECT_EQ(got.logit, logits[static_cast<std::size_t>(token)]);
  EXPECT_NEAR(sum_of(got), static_cast<double>(sum), 1e-12 * static_cast<double>(sum));
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](auto a, auto b) { return logits[std::size_t(a)] > logits[std::size_t(b)]; });
  for (std::size_t i = 0; i < kLogprobTop; ++i) {
    const bool is_there = i < n_top && i < ids.size();
    EXPECT_EQ(got.top[i].id, is_there ? ids[i] : i < n_top ? -1 : 0) << i;
    EXPECT_EQ(got.top[i].logit, is_there ? logits[std::size_t(ids[i])] : 0) << i;
  }
}

TEST(Logprobs, OfAnyNumberOfLogits) {
  for (const std::uint32_t v : {1u, 2u, 15u, 16u, 17u, 1000u, 32001u})
    for (const float spread : {0.0f, 0.01f, 3.0f, 300.0f}) {
      std::mt19937 rng(v);
      std::normal_distribution<float> value(-3, spread);
      std::vector<float> logits(v);
      for (float& l : logits) l = value(rng);
      for (const std::uint32_t n_top : {0u, 1u, 20u, kLogprobTop}) {
        SCOPED_TRACE(testing::Message() << v << " logits of spread " << spread << ", top " << n_top);
        expect_right(logits, n_top);
      }
    }
}

TEST(Logprobs, TiesGoToTheLowerIds) {
  std::vector<float> logits(100, 1.0f);
  for (const std::size_t at : {0, 1, 50, 99}) {
    logits[at] = 2;
    expect_right(logits, 3);
  }
  std::ranges::fill(logits, -0.0f);
  logits[3] = logits[7] = 0.0f;  // both zeros are equal
  expect_right(logits, 20);
  EXPECT_FALSE(std::signbit(logprobs_of(logits, {0, 0}).max));
}

// The order of the sum: sixteen lanes, then lane after lane. In another order the small terms would be lost, or kept.
TEST(Logprobs, SumsSixteenLanesInOrder) {
  std::vector<float> logits(48, -37.0f);
  logits[0] = 0;
  const double small = exp_of_distance(-37.0f, 0);  // less than half a unit in the last place of 1
  double wanted = 1.0 + small + small;
  for (int lane = 1; lane < 16; ++lane) wanted += 0.0 + small + small + small;
  EXPECT_EQ(sum_of(logprobs_of(logits, {0, 0})), wanted);
  EXPECT_NE(wanted, 1.0);
}

TEST(Logprobs, OfRowsThatAreNoDistribution) {
  for (const float bad : {kNan, kInfinity})
    for (const std::size_t at : {0, 15, 16, 36}) {
      std::vector<float> logits(37);
      std::iota(logits.begin(), logits.end(), -40.0f);
      logits[at] = bad;
      const auto got = logprobs_of(logits, {4, 1});
      EXPECT_EQ(std::bit_cast<std::uint64_t>(sum_of(got)), kLogprobNan);
      const float last = at == 36 ? -5.0f : -4.0f;  // the largest but for the bad one
      EXPECT_EQ(got.max, bad == kInfinity ? kInfinity : last);
      EXPECT_EQ(got.top[0].logit, bad == kInfinity ? kInfinity : last);
    }
  const auto none = logprobs_of(std::vector<float>(20, -kInfinity), {3, 1});
  EXPECT_EQ(std::bit_cast<std::uint64_t>(sum_of(none)), kLogprobNan);
  EXPECT_EQ(none.top[2].id, 2);
  const auto nan = logprobs_of(std::vector<float>(20, kNan), {3, 1});
  EXPECT_EQ(nan.max, -kInfinity);
  EXPECT_EQ(nan.top[0].id, -1);
}

TEST(Logprobs, RowsScoreAGivenTokenOrThePickedOne) {
  std::vector<float> logits(4 * 5);
  std::iota(logits.begin(), logits.end(), 0.0f);
  const auto got = logprobs(5, logits, {2, 2, -1, 3}, {{1, -1}, {1, 4}, {1, -1}, {-1, 0}});
  EXPECT_EQ(got[0].logit, 2);
  EXPECT_EQ(got[1].logit, 5 + 4);
  EXPECT_EQ(got[2].logit, 0);  // none was picked
  EXPECT_EQ(got[2].max, 10 + 4);
  for (const std::uint32_t word : std::bit_cast<std::array<std::uint32_t, kLogprobWords>>(got[3])) EXPECT_EQ(word, 0u);
}

}  // namespace
}  // namespace zinc_rt::kernel_test

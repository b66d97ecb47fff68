// QUANTIZE: each code is the nearest, the sums are exact, and odd blocks (zero, denormal, huge, NaN, infinity) do what
// the kernel's head says.
#include "harness.h"

namespace zinc_rt::kernel_test {
namespace {

struct Block {
  float d;
  std::vector<int> q, sums;  // sums of runs: one of 32, or 16 of 16, or none
};

std::vector<Block> blocks(const std::vector<float>& x, DType act, std::uint32_t k) {
  std::vector<Block> out;
  const auto bytes = quantized(x, act, k);
  if (act == DType::kQ8A32) {
    for (const auto& b : as<ActBlockQ8A32>(bytes)) out.push_back({b.d, {b.qs, b.qs + 32}, {b.sum}});
  } else if (act == DType::kQ16A256) {
    for (const auto& b : as<ActBlockQ16A256>(bytes)) {
      out.push_back({b.d, {}, {}});
      for (int i = 0; i < 256; ++i) out.back().q.push_back(256 * b.high[i] + b.low[i]);
    }
  } else {
    for (const auto& b : as<ActBlockQ8A256>(bytes)) out.push_back({b.d, {b.qs, b.qs + 256}, {b.sums, b.sums + 16}});
  }
  return out;
}

class Quantize : public ::testing::TestWithParam<DType> {
 protected:
  std::uint32_t size() const { return traits(GetParam()).block_elems; }
  int most() const { return GetParam() == DType::kQ16A256 ? 32639 : 127; }
  Block one(const std::vector<float>& x) const { return blocks(x, GetParam(), size())[0]; }
  std::vector<float> filled(float value) const { return std::vector<float>(size(), value); }
};

TEST_P(Quantize, CodesAreTheNearestAndSumsExact) {
  Random random(1);
  for (const double scale : {1e-25, 1e-3, 1.0, 1e4, 1e30}) {
    const auto x = random.normal(2 * 3 * size(), scale);
    const auto got = blocks(x, GetParam(), 3 * size());
    ASSERT_EQ(got.size(), 6u);
    for (std::size_t b = 0; b < got.size(); ++b) {
      double amax = 0;
      for (std::size_t i = 0; i < size(); ++i) amax = std::max(amax, std::abs(double(x[b * size() + i])));
      EXPECT_NEAR(got[b].d, amax / most(), amax / most() * 2e-7);
      for (std::size_t i = 0; i < size(); ++i) {
        const double exact = x[b * size() + i] * most() / amax;
        EXPECT_LE(std::abs(got[b].q[i] - exact), 0.5 + most() * 2e-7 + 1e-4) << scale << " " << i;
        EXPECT_LE(std::abs(got[b].q[i]), most());
      }
      const std::size_t run = size() / std::max<std::size_t>(1, got[b].sums.size());
      for (std::size_t s = 0; s < got[b].sums.size(); ++s) {
        int sum = 0;
        for (std::size_t i = 0; i < run; ++i) sum += got[b].q[s * run + i];
        EXPECT_EQ(got[b].sums[s], sum);
      }
    }
  }
}

TEST_P(Quantize, LargestIsTheMostAndSymmetric) {
  auto x = filled(0.25f);
  x[5] = 3.0f, x[6] = -3.0f;
  const auto block = one(x);
  EXPECT_EQ(block.q[5], most());
  EXPECT_EQ(block.q[6], -most());
  const auto all = one(filled(-3.0f));
  for (const int q : all.q) EXPECT_EQ(q, -most());
  for (const int sum : all.sums) EXPECT_EQ(sum, -most() * int(size() / all.sums.size()));
}

TEST_P(Quantize, TiesGoToEven) {
  auto x = filled(0.0f);
  x[0] = static_cast<float>(most()), x[1] = 2.5f, x[2] = 3.5f, x[3] = -2.5f;
  const auto block = one(x);
  EXPECT_EQ(block.d, 1.0f);
  EXPECT_EQ((std::vector<int>{block.q[1], block.q[2], block.q[3]}), (std::vector<int>{2, 4, -2}));
}

TEST_P(Quantize, TinyBlocksAreZero) {
  for (const float v : {0.0f, -0.0f, 1e-45f, -1e-38f, 0x1p-101f}) {
    const auto block = one(filled(v));
    EXPECT_EQ(block.d, 0.0f) << v;
    for (const int q : block.q) EXPECT_EQ(q, 0);
    for (const int s : block.sums) EXPECT_EQ(s, 0);
  }
  EXPECT_GT(one(filled(0x1p-100f)).d, 0.0f);
}

TEST_P(Quantize, NotFiniteMakesTheScaleNan) {
  for (const float bad : {NAN, INFINITY, -INFINITY, 0x1.8p120f}) {
    auto x = filled(1.0f);
    x[size() - 1] = bad;
    const auto block = one(x);
    EXPECT_TRUE(std::isnan(block.d)) << bad;
    for (const int q : block.q) EXPECT_EQ(q, 0);
  }
  EXPECT_EQ(one(filled(0x1p120f)).q[0], most());
}

TEST_P(Quantize, RowsAreIndependent) {
  Random random(3);
  const std::uint32_t k = 2 * size();
  expect_rows_independent(
      {Op::QUANTIZE, {f32({kTokens, k}, random.normal(3 * k))}, {{GetParam(), {kTokens, k}}}, {}, {3, 0}});
}

INSTANTIATE_TEST_SUITE_P(Types, Quantize, ::testing::Values(DType::kQ8A32, DType::kQ8A256, DType::kQ16A256),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace zinc_rt::kernel_test

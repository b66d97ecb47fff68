// The elementary functions: within 2 ulp of libm over a sample of all floats and every float of a few binades, and the
// special values.
#include <gtest/gtest.h>

#include <random>

#include "exact_functions.h"

namespace zinc_rt::kernel_test {
namespace {

TEST(ExactMath, WithinTwoUlpOverASampleOfAllFloats) {
  for (const Function& f : kFunctions) {
    float worst = 0;
    EXPECT_LE(sweep(f, 7, 4999, worst), 2.0) << f.name << " at " << worst;
  }
}

TEST(ExactMath, WithinTwoUlpWhereItMatters) {
  for (const Function& f : kFunctions)
    for (const float centre : {1e-3f, 0.5f, 1.0f, 2.75f, 9.0f, 60.0f, 87.4f, 103.9f})
      for (const float sign : {-1.0f, 1.0f})
        for (int i = -20000; i < 20000; ++i) {
          const float x = sign * std::bit_cast<float>(std::bit_cast<std::int32_t>(centre) + i);
          if (x < f.low || x > f.high) continue;
          ASSERT_LE(ulp_distance(f.exact(x), f.libm(x)), 2.0) << f.name << " at " << x;
        }
}

TEST(ExactMath, Div) {
  std::mt19937 rng(1);
  double largest = 0;
  for (int i = 0; i < 1000000; ++i) {
    const float a = std::bit_cast<float>(static_cast<std::uint32_t>(0x20000000u + rng() % 0x40000000u)) *
                    (rng() % 2 ? 1.0f : -1.0f);
    const float b = std::bit_cast<float>(static_cast<std::uint32_t>(0x30000000u + rng() % 0x20000000u)) *
                    (rng() % 2 ? 1.0f : -1.0f);
    largest = std::max(largest, ulp_distance(exact::div(a, b), double(a) / b));
  }
  EXPECT_LE(largest, 1.0);
}

TEST(ExactMath, SpecialValues) {
  const float inf = INFINITY;
  EXPECT_EQ(exact::exp(0.0f), 1.0f);
  EXPECT_EQ(exact::exp(-0.0f), 1.0f);
  EXPECT_EQ(exact::exp(-inf), 0.0f);
  EXPECT_EQ(exact::exp(inf), inf);
  EXPECT_EQ(exact::exp(88.72283f), std::exp(88.72283f));
  EXPECT_EQ(exact::exp(88.723f), inf);
  EXPECT_EQ(exact::exp(-103.97f), 0x1p-149f);
  EXPECT_EQ(exact::sigmoid(0.0f), 0.5f);
  EXPECT_EQ(exact::sigmoid(-inf), 0.0f);
  EXPECT_EQ(exact::sigmoid(inf), 1.0f);
  EXPECT_EQ(exact::silu(inf), inf);
  EXPECT_EQ(exact::gelu_tanh(inf), inf);
  EXPECT_EQ(exact::gelu(inf), inf);
  for (const auto f : {exact::silu, exact::gelu_tanh, exact::gelu}) {
    EXPECT_EQ(f(-inf), 0.0f);
    EXPECT_TRUE(std::signbit(f(-inf)));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(f(0.0f)), 0u);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(f(-0.0f)), 0u);
  }
  EXPECT_EQ(exact::tanh(inf), 1.0f);
  EXPECT_EQ(exact::tanh(-inf), -1.0f);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(exact::tanh(-0.0f)), 0u);
  EXPECT_EQ(exact::softplus(-inf), 0.0f);
  EXPECT_EQ(exact::softplus(inf), inf);
  EXPECT_EQ(exact::rcp(-4.0f), -0.25f);
  EXPECT_EQ(exact::round_int(2.5f), 2.0f);
  EXPECT_EQ(exact::round_int(-3.5f), -4.0f);
  for (const Function& f : kFunctions)
    for (const float nan : {NAN, -NAN}) EXPECT_TRUE(std::isnan(f.exact(nan))) << f.name;
}

TEST(ExactMath, DenormalArguments) {
  for (const float x : {0x1p-149f, 0x1p-130f, -0x1p-149f, -0x1p-127f}) {
    EXPECT_EQ(exact::exp(x), 1.0f);
    EXPECT_EQ(exact::sigmoid(x), 0.5f);
    EXPECT_EQ(exact::tanh(x), x);
    EXPECT_LE(ulp_distance(exact::silu(x), x / 2.0), 1.0);
    EXPECT_LE(ulp_distance(exact::gelu_tanh(x), x / 2.0), 1.0);
    EXPECT_LE(ulp_distance(exact::gelu(x), x / 2.0), 1.0);
  }
}

}  // namespace
}  // namespace zinc_rt::kernel_test

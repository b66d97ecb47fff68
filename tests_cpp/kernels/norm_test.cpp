// RMS_NORM, RESIDUAL_RMS_NORM, LAYER_NORM, SSM_GATED_NORM against float64, and the bits of the fused form against ADD + RMS_NORM.
#include "harness.h"

namespace zinc_rt::kernel_test {
namespace {

std::vector<double> norm(const std::vector<float>& x, const std::vector<float>& w, std::size_t group, double eps) {
  std::vector<double> y(x.size());
  for (std::size_t g = 0; g < x.size(); g += group) {
    double sum = 0;
    for (std::size_t i = 0; i < group; ++i) sum += double(x[g + i]) * x[g + i];
    const double r = 1 / std::sqrt(sum / double(group) + eps);
    for (std::size_t i = 0; i < group; ++i) y[g + i] = x[g + i] * r * (w.empty() ? 1.0 : w[i]);
  }
  return y;
}

Case rms_norm(std::uint32_t n, std::uint32_t d, std::uint32_t group, const std::vector<float>& x,
              const std::vector<float>& w, float eps) {
  return {Op::RMS_NORM,
          {f32({kTokens, d}, x), w.empty() ? absent() : f32({group}, w)},
          {{DType::kF32, {kTokens, d}}},
          {{"eps", eps}, {"group", group}},
          {n, 0}};
}

TEST(RmsNorm, MatchesFloat64) {
  Random random(1);
  for (const std::uint32_t d : {1u, 15u, 16u, 17u, 64u, 255u, 256u, 257u, 1000u})
    for (const bool with_w : {true, false}) {
      const auto x = random.normal(3 * d, 2.0), w = with_w ? random.normal(d) : std::vector<float>{};
      const auto c = rms_norm(3, d, d, x, w, 1e-5f);
      expect_near(run(c)[0], norm(x, w, d, 1e-5f), 1e-12, 1e-6, "d " + std::to_string(d));
    }
}

TEST(RmsNorm, GroupsOfHeads) {
  Random random(2);
  for (const std::uint32_t group : {1u, 16u, 64u}) {
    const auto x = random.normal(2 * 192), w = random.normal(group);
    expect_near(run(rms_norm(2, 192, group, x, w, 1e-6f))[0], norm(x, w, group, 1e-6f), 1e-12, 1e-6, "group");
  }
}

TEST(RmsNorm, ExtremeRows) {
  for (const float v : {0.0f, 1e-20f, 1e15f, -3.0f}) {
    const std::vector<float> x(64, v);
    expect_near(run(rms_norm(1, 64, 64, x, {}, 1e-5f))[0], norm(x, {}, 64, 1e-5f), 0, 1e-6, std::to_string(v));
  }
  std::vector<float> x(64, 1.0f);
  x[3] = NAN;
  for (const float y : as<float>(run(rms_norm(1, 64, 64, x, {}, 1e-5f))[0])) EXPECT_TRUE(std::isnan(y));
}

TEST(RmsNorm, InPlaceGivesTheSameBits) {
  Random random(3);
  auto c = rms_norm(2, 96, 96, random.normal(192), random.normal(96), 1e-5f);
  const auto fresh = run(c);
  c.outputs = {update(0)};
  EXPECT_EQ(run(c), fresh);
}

TEST(RmsNorm, RowsAreIndependent) {
  Random random(4);
  expect_rows_independent(rms_norm(5, 80, 80, random.normal(400), random.normal(80), 1e-5f));
}

TEST(ResidualRmsNorm, IsAddThenNorm) {
  Random random(5);
  for (const std::uint32_t d : {1u, 16u, 257u, 576u}) {
    const auto residual = f32({kTokens, d}, random.normal(3 * d)), x = f32({kTokens, d}, random.normal(3 * d)),
               w = f32({d}, random.normal(d));
    const Case fused{
        Op::RESIDUAL_RMS_NORM, {residual, x, w}, {{DType::kF32, {kTokens, d}}, update(0)}, {{"eps", 1e-5f}}, {3, 0}};
    const auto got = run(fused);
    const auto sum = run({Op::ADD, {residual, x}, {update(0)}, {}, {3, 0}});
    EXPECT_EQ(got[1], sum[0]);
    EXPECT_EQ(got[0], run(rms_norm(3, d, d, as<float>(sum[0]), as<float>(w.bytes), 1e-5f))[0]);
    expect_near(got[0], norm(as<float>(sum[0]), as<float>(w.bytes), d, 1e-5f), 1e-12, 1e-6, "residual");
    expect_rows_independent(fused);
  }
}

Case layer_norm(std::uint32_t n, std::uint32_t d, const std::vector<float>& x, const std::vector<float>& w,
                const std::vector<float>& b) {
  return {Op::LAYER_NORM,
          {f32({kTokens, d}, x), f32({d}, w), f32({d}, b)},
          {{DType::kF32, {kTokens, d}}},
          {{"eps", 1e-5f}},
          {n, 0}};
}

TEST(LayerNorm, MatchesFloat64) {
  Random random(7);
  for (const std::uint32_t d : {1u, 15u, 16u, 17u, 64u, 255u, 256u, 257u, 384u, 1000u}) {
    auto x = random.normal(3 * d, 2.0);
    for (std::uint32_t i = 0; i < d; ++i) x[d + i] += 100.0f;  // a row far from 0
    const auto w = random.normal(d), b = random.normal(d);
    std::vector<double> expected;
    for (std::size_t row = 0; row < 3; ++row) {
      double mean = 0, variance = 0;
      for (std::size_t i = 0; i < d; ++i) mean += x[row * d + i] / double(d);
      for (std::size_t i = 0; i < d; ++i) variance += std::pow(x[row * d + i] - mean, 2.0) / double(d);
      const double r = 1 / std::sqrt(variance + 1e-5f);
      for (std::size_t i = 0; i < d; ++i) expected.push_back((x[row * d + i] - mean) * r * w[i] + b[i]);
    }
    auto c = layer_norm(3, d, x, w, b);
    const auto fresh = run(c);
    expect_near(fresh[0], expected, 1e-4, 4e-6, "d " + std::to_string(d));
    expect_rows_independent(c);
    c.outputs = {update(0)};
    EXPECT_EQ(run(c), fresh) << "in place";
  }
}

// y = (c * r) * w, which differs from adding a bias of 0 in the sign of a zero alone.
TEST(LayerNorm, TheBiasMayBeAbsent) {
  Random random(8);
  for (const std::uint32_t d : {1u, 17u, 256u, 1000u}) {
    const auto x = random.normal(3 * d, 2.0), w = random.normal(d);
    auto c = layer_norm(3, d, x, w, std::vector<float>(d, 0.0f));
    const auto with_zeros = as<float>(run(c)[0]);
    c.inputs[2] = absent();
    const auto fresh = run(c);
    EXPECT_EQ(as<float>(fresh[0]), with_zeros) << d;  // 0 == -0
    expect_rows_independent(c);
    c.outputs = {update(0)};
    EXPECT_EQ(run(c), fresh) << "in place";
  }
}

TEST(LayerNorm, ExtremeRows) {
  for (const float v : {0.0f, 1e-20f, 1e15f, -3.0f}) {  // equal values: only the bias is left
    const auto y = as<float>(run(
        layer_norm(1, 64, std::vector<float>(64, v), std::vector<float>(64, 2.0f), std::vector<float>(64, 0.5f)))[0]);
    for (const float each : y) EXPECT_EQ(each, 0.5f) << v;
  }
  std::vector<float> x(64, 1.0f);
  x[3] = NAN;
  for (const float y : as<float>(run(layer_norm(1, 64, x, x, x))[0])) EXPECT_TRUE(std::isnan(y));
}

TEST(SsmGatedNorm, MatchesFloat64) {
  Random random(6);
  for (const std::uint32_t group : {1u, 32u, 128u}) {
    const auto x = random.normal(256), z = random.normal(256, 3.0), w = random.normal(group);
    auto expected = norm(x, w, group, 1e-6f);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= silu(z[i]);
    Case c{Op::SSM_GATED_NORM,
           {f32({kTokens, 128}, x), f32({kTokens, 128}, z), f32({1, group}, w)},
           {{DType::kF32, {kTokens, 128}}},
           {{"eps", 1e-6f}, {"group", group}, {"gate_first", 0}},
           {2, 0}};
    const auto fresh = run(c);
    expect_near(fresh[0], expected, 1e-12, 2e-6, "group " + std::to_string(group));
    expect_rows_independent(c);
    c.outputs = {update(0)};
    EXPECT_EQ(run(c), fresh);
  }
}

// With gate_first it is the norm of gated rows. Each group may have its own weights.
TEST(SsmGatedNorm, GatesBeforeTheNorm) {
  Random random(7);
  for (const std::uint32_t group : {1u, 32u, 128u})
    for (const std::uint32_t w_groups : {1u, 128 / group})
      for (const int gate_first : {0, 1}) {
        const auto x = random.normal(256), z = random.normal(256, 3.0), w = random.normal(w_groups * group);
        std::vector<float> gated = x;
        if (gate_first == 1)
          for (std::size_t i = 0; i < x.size(); ++i) gated[i] = float(x[i] * silu(z[i]));
        auto expected = norm(gated, std::vector<float>(group, 1.0f), group, 1e-6f);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          expected[i] *= w[i % (w_groups * group)];
          if (gate_first == 0) expected[i] *= silu(z[i]);
        }
        Case c{Op::SSM_GATED_NORM,
               {f32({kTokens, 128}, x), f32({kTokens, 128}, z), f32({w_groups, group}, w)},
               {{DType::kF32, {kTokens, 128}}},
               {{"eps", 1e-6f}, {"group", group}, {"gate_first", gate_first}},
               {2, 0}};
        const auto fresh = run(c);
        expect_near(fresh[0], expected, 1e-6, 4e-6, fmt::format("{} groups of {}", w_groups, group));
        expect_rows_independent(c);
        c.outputs = {update(0)};
        EXPECT_EQ(run(c), fresh);
      }
}

}  // namespace
}  // namespace zinc_rt::kernel_test

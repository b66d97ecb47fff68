// The expert ops against float64 and against the plain ops that they mean.
#include "harness.h"
#include "kernels/common/push.h"

namespace zinc_rt::kernel_test {
namespace {

constexpr std::uint32_t kD = 256, kF = 256, kE = 5;

// What a router may have beyond logits and their softmax.
struct Router {
  std::vector<float> bias = {}, choice_bias = {};
  int gating = push::kSoftmax, groups = 1, groups_used = 1;
};
Case gate(const Tensor& x, const Tensor& w, std::uint32_t n, int n_used, int renormalize, float scale,
          const Router& router = {}) {
  const std::uint32_t e = w.dims[0].n, used = std::uint32_t(n_used);
  const auto of_experts = [&](const std::vector<float>& values) {
    return values.empty() ? absent() : f32({e}, values);
  };
  return {Op::MOE_GATE_TOPK,
          {x, w, of_experts(router.bias), of_experts(router.choice_bias)},
          {{DType::kF32, {kTokens, e}}, {DType::kI32, {kTokens, used}}, {DType::kF32, {kTokens, used}}},
          {{"n_used", n_used},
           {"renormalize", renormalize},
           {"scale", scale},
           {"gating", router.gating},
           {"groups", router.groups},
           {"groups_used", router.groups_used}},
          {n, 0}};
}

TEST(MoeGateTopk, MatchesFloat64) {
  Random random(1);
  for (const std::uint32_t e : {1u, 5u, 16u, 17u, 128u})
    for (const int renormalize : {0, 1}) {
      const int used = int(std::min(e, 4u));
      const auto x = random.normal(3 * kD), w = random.normal(e * kD, 0.2);
      const auto c = gate(f32({kTokens, kD}, x), f32({e, kD}, w), 3, used, renormalize, 2.5f);
      const auto got = run(c);
      const auto ids = as<std::int32_t>(got[1]);
      const auto weight = as<float>(got[2]);
      for (std::size_t t = 0; t < 3; ++t) {
        std::vector<double> logits(e);
        for (std::size_t i = 0; i < e; ++i)
          for (std::size_t j = 0; j < kD; ++j) logits[i] += double(x[t * kD + j]) * w[i * kD + j];
        double sum = 0, chosen = 0;
        for (const double l : logits) sum += std::exp(l);
        std::vector<std::int32_t> order(e);
        for (std::uint32_t i = 0; i < e; ++i) order[i] = std::int32_t(i);
        std::ranges::stable_sort(order, [&](int a, int b) { return logits[std::size_t(a)] > logits[std::size_t(b)]; });
        for (int j = 0; j < used; ++j) chosen += std::exp(logits[std::size_t(order[std::size_t(j)])]) / sum;
        for (int j = 0; j < used; ++j) {
          const auto at = t * std::size_t(used) + std::size_t(j);
          EXPECT_EQ(ids[at], order[std::size_t(j)]);
          const double p = std::exp(logits[std::size_t(order[std::size_t(j)])]) / sum;
          EXPECT_NEAR(weight[at], 2.5 * (renormalize ? p / chosen : p), 2e-5);
        }
      }
      expect_rows_independent(c);
    }
}

TEST(MoeGateTopk, TiesGoToTheLowerId) {
  const auto got = run(gate(f32({kTokens, 1}, {1.0f}), f32({6, 1}, {1, 3, 2, 3, 2, 3}), 1, 5, 1, 1.0f));
  EXPECT_EQ(as<std::int32_t>(got[1]), (std::vector<std::int32_t>{1, 3, 5, 2, 4}));
}

// Logits are given: a row of one value 1 times the weights.
std::pair<std::vector<std::int32_t>, std::vector<float>> chosen(const std::vector<float>& logits, int n_used,
                                                                int renormalize, const Router& router) {
  const auto got = run(gate(f32({kTokens, 1}, {1.0f}), f32({std::uint32_t(logits.size()), 1}, logits), 1, n_used,
                            renormalize, 1.0f, router));
  return {as<std::int32_t>(got[1]), as<float>(got[2])};
}

TEST(MoeGateTopk, SigmoidsAreNotShared) {
  const auto [ids, weights] = chosen({0.0f, 2.0f, -1.0f, 1.0f}, 2, 0, {.gating = push::kSigmoid});
  EXPECT_EQ(ids, (std::vector<std::int32_t>{1, 3}));
  EXPECT_NEAR(weights[0], 1 / (1 + std::exp(-2.0)), 1e-7);
  EXPECT_NEAR(weights[1], 1 / (1 + std::exp(-1.0)), 1e-7);
}
TEST(MoeGateTopk, TheBiasOfTheRouterIsPartOfTheLogits) {
  const auto [ids, weights] = chosen({0.0f, 2.0f, -1.0f, 1.0f}, 2, 1, {.bias = {0.0f, -3.0f, 4.0f, 0.0f}});
  EXPECT_EQ(ids, (std::vector<std::int32_t>{2, 3}));  // logits 0, -1, 3, 1
  EXPECT_NEAR(weights[0], 1 / (1 + std::exp(-2.0)), 1e-6);
}
TEST(MoeGateTopk, TheBiasOfTheChoiceIsNotPartOfTheWeights) {
  const auto [ids, weights] =
      chosen({0.0f, 2.0f, -1.0f, 1.0f}, 2, 1, {.choice_bias = {0.0f, 0.0f, 1.0f, 0.0f}, .gating = push::kSigmoid});
  EXPECT_EQ(ids, (std::vector<std::int32_t>{2, 1}));
  const double a = 1 / (1 + std::exp(1.0)), b = 1 / (1 + std::exp(-2.0));
  EXPECT_NEAR(weights[0], a / (a + b), 1e-6);
  EXPECT_NEAR(weights[1], b / (a + b), 1e-6);
}
TEST(MoeGateTopk, WeightsTooSmallToDivideByTheirSumStayAsTheyAre) {
  const Router sigmoid{.gating = push::kSigmoid};
  const auto none = chosen({-200.0f, -130.0f, -300.0f}, 2, 1, sigmoid);
  EXPECT_EQ(none.first, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(none.second, (std::vector<float>{0.0f, 0.0f}));
  const std::vector<float> subnormal{-95.0f, -96.0f, -97.0f};
  EXPECT_GT(chosen(subnormal, 2, 1, sigmoid).second[1], 0.0f);
  EXPECT_EQ(chosen(subnormal, 2, 1, sigmoid), chosen(subnormal, 2, 0, sigmoid));
  // The bias chooses two experts whose likelihoods are 0.
  const auto unlikely = chosen({200.0f, 1.0f, 0.0f}, 2, 1, {.choice_bias = {-5.0f, 1.0f, 0.0f}});
  EXPECT_EQ(unlikely.first, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(unlikely.second, (std::vector<float>{0.0f, 0.0f}));
  // Small weights whose sum rcp() takes are divided, and one that is NaN makes all of them NaN.
  EXPECT_NEAR(chosen({-86.0f, -87.0f}, 2, 1, sigmoid).second[0], 1 / (1 + std::exp(-1.0)), 1e-6);
  const auto of_nan = chosen({1.0f, std::nanf("")}, 2, 1, sigmoid).second;
  EXPECT_TRUE(std::isnan(of_nan[0]) && std::isnan(of_nan[1]));
}
TEST(MoeGateTopk, GroupsAreChosenByTheirTwoBest) {
  // Sums of the two best of each group: 3 + 0, 2 + 2, 1 + 1, 2.5 + 0. The best expert is in no chosen group.
  const std::vector<float> scores{3, 0, 0, 2, 2, 0, 1, 1, 0, 2.5, 0, 0};
  const Router router{.choice_bias = scores, .groups = 4, .groups_used = 1};
  const std::vector<float> equal(12, 0.0f);
  EXPECT_EQ(chosen(equal, 2, 1, router).first, (std::vector<std::int32_t>{3, 4}));
  const Router two{.choice_bias = scores, .groups = 4, .groups_used = 2};
  EXPECT_EQ(chosen(equal, 4, 1, two).first, (std::vector<std::int32_t>{0, 3, 4, 1}));
  // Of equal groups the lower one.
  const Router ties{.groups = 4, .groups_used = 2};
  EXPECT_EQ(chosen(equal, 3, 1, ties).first, (std::vector<std::int32_t>{0, 1, 2}));
}
TEST(MoeGateTopk, OneGroupAndBiasesOfZeroChangeNoBit) {
  Random random(5);
  for (const int gating : {int(push::kSoftmax), int(push::kSigmoid)}) {
    const auto x = f32({kTokens, kD}, random.normal(3 * kD)), w = f32({32, kD}, random.normal(32 * kD, 0.1));
    EXPECT_EQ(
        run(gate(x, w, 3, 5, 1, 2.0f, {.gating = gating})),
        run(gate(
            x, w, 3, 5, 1, 2.0f,
            {.bias = std::vector<float>(32, 0.0f), .choice_bias = std::vector<float>(32, 0.0f), .gating = gating})));
  }
}

TEST(MoeAddBias, AddsEachExpertsOwn) {
  const Case c{Op::MOE_ADD_BIAS,
               {f32({kTokens, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), i32({kTokens, 2}, {2, 0, 1, 7}),
                f32({3, 2}, {10, 20, 30, 40, 50, 60})},
               {update(0)},
               {},
               {2, 0}};
  EXPECT_EQ(as<float>(run(c)[0]), (std::vector<float>{51, 62, 13, 24, 35, 46, 7, 8}));
  expect_rows_independent(c);
}

TEST(MoeGateTopk, LogitsAreLinear) {
  Random random(2);
  const auto x = f32({kTokens, kD}, random.normal(2 * kD));
  for (const DType type : {DType::kF32, DType::kBF16, DType::kQ4_K}) {
    const auto w = weights(random, type, {kE, kD});
    EXPECT_EQ(run(gate(x, w, 2, 2, 0, 1.0f))[0],
              run({Op::LINEAR, {x, w, absent()}, {{DType::kF32, {kTokens, kE}}}, {}, {2, 0}})[0]);
  }
}

// The rows of one expert as a matrix.
Tensor expert(const Tensor& stack, std::uint32_t id) {
  const std::size_t bytes = stack.bytes.size() / stack.dims[0].n;
  return {
      stack.dtype,
      {stack.dims[1], stack.dims[2]},
      Bytes(stack.bytes.begin() + std::ptrdiff_t(id * bytes), stack.bytes.begin() + std::ptrdiff_t((id + 1) * bytes))};
}
std::vector<float> linear(const Bytes& x, DType x_type, std::uint32_t k, const Tensor& w) {
  return as<float>(run(
      {Op::LINEAR, {{x_type, {kTokens, k}, x}, w, absent()}, {{DType::kF32, {kTokens, w.dims[0]}}}, {}, {1, 0}})[0]);
}
Bytes slice(const Bytes& bytes, std::size_t i, std::size_t n) {
  const std::size_t size = bytes.size() / n;
  return Bytes(bytes.begin() + std::ptrdiff_t(i * size), bytes.begin() + std::ptrdiff_t((i + 1) * size));
}

class Experts : public ::testing::TestWithParam<std::tuple<DType, bool>> {
 protected:
  DType type() const { return std::get<0>(GetParam()); }
  DType act() const { return std::get<1>(GetParam()) ? act_dtype(type()) : DType::kF32; }
  Bytes rows(const std::vector<float>& x, std::uint32_t k) const {
    return act() == DType::kF32 ? to_bytes(x) : quantized(x, act(), k);
  }
};

TEST_P(Experts, GateUpIsALinearAnExpert) {
  Random random(3);
  for (const std::uint32_t f : {1u, 64u, 65u}) {
    const auto x = rows(random.normal(3 * kD), kD);
    const auto gate_w = weights(random, type(), {kE, f, kD}), up_w = weights(random, type(), {kE, f, kD});
    const std::vector<std::int32_t> ids{4, 0, 2, 2, 1, 3};
    const Case c{Op::MOE_GATE_UP,
                 {{act(), {kTokens, kD}, x}, gate_w, up_w, i32({kTokens, 2}, ids)},
                 {{DType::kF32, {kTokens, 2 * f}}, {DType::kF32, {kTokens, 2 * f}}},
                 {},
                 {3, 0}};
    const auto got = run(c);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto row = slice(x, i / 2, 3);
      EXPECT_EQ(as<float>(slice(got[0], i, 6)), linear(row, act(), kD, expert(gate_w, std::uint32_t(ids[i]))));
      EXPECT_EQ(as<float>(slice(got[1], i, 6)), linear(row, act(), kD, expert(up_w, std::uint32_t(ids[i]))));
    }
    expect_rows_independent(c);
  }
}

TEST_P(Experts, DownAccIsALinearAnExpertWeighted) {
  Random random(4);
  for (const std::uint32_t d : {1u, 63u, 64u, 65u}) {
    const std::uint32_t k = 3;
    const auto x = rows(random.normal(2 * k * kF), kF);
    const auto down = weights(random, type(), {kE, d, kF});
    const std::vector<std::int32_t> ids{1, 4, 0, 2, 3, 3};
    const auto weight = random.normal(6), hidden = random.normal(2 * d), scale = random.normal(kE);
    const bool scaled = d % 2 == 1;
    const Case c{Op::MOE_DOWN_ACC,
                 {{act(), {kTokens, k * kF}, x},
                  down,
                  i32({kTokens, k}, ids),
                  f32({kTokens, k}, weight),
                  scaled ? f32({kE}, scale) : absent(),
                  f32({kTokens, d}, hidden)},
                 {update(5)},
                 {},
                 {2, 0}};
    std::vector<float> expected;
    for (std::size_t t = 0; t < 2; ++t) {
      std::vector<float> acc(d, 0.0f);
      for (std::size_t j = 0; j < k; ++j) {
        const auto y = linear(slice(x, t * k + j, 2 * k), act(), kF, expert(down, std::uint32_t(ids[t * k + j])));
        const float w = scaled ? weight[t * k + j] * scale[std::size_t(ids[t * k + j])] : weight[t * k + j];
        for (std::size_t i = 0; i < d; ++i) acc[i] = std::fma(w, y[i], acc[i]);
      }
      for (std::size_t i = 0; i < d; ++i) expected.push_back(hidden[t * d + i] + acc[i]);
    }
    EXPECT_EQ(as<float>(run(c)[0]), expected) << d;
    expect_rows_independent(c);
    // The same as its three ops.
    const auto y = run({Op::MOE_LINEAR,
                        {c.inputs[0], c.inputs[1], c.inputs[2]},
                        {{DType::kF32, {kTokens, k * d}}},
                        {{"rows", int(k)}},
                        {2, 0}})[0];
    const Case sum{Op::MOE_SUM,
                   {{DType::kF32, {kTokens, k * d}, y}, c.inputs[2], c.inputs[3], c.inputs[4]},
                   {{DType::kF32, {kTokens, d}}},
                   {},
                   {2, 0}};
    const auto z = run(sum)[0];
    EXPECT_EQ(as<float>(run({Op::ADD,
                             {f32({kTokens, d}, hidden), {DType::kF32, {kTokens, d}, z}},
                             {{DType::kF32, {kTokens, d}}},
                             {},
                             {2, 0}})[0]),
              expected);
    expect_rows_independent(sum);
  }
}

TEST(MoeScale, MultipliesEachRowByItsExpertsNumber) {
  const Case c{Op::MOE_SCALE,
               {f32({kTokens, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), i32({kTokens, 2}, {2, 0, 1, 7}),
                f32({3}, {0.5f, -2.0f, 4.0f})},
               {{DType::kF32, {kTokens, 6}}},
               {},
               {2, 0}};
  const auto y = as<float>(run(c)[0]);
  EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 9), (std::vector<float>{4, 8, 12, 2, 2.5f, 3, -14, -16, -18}));
  for (std::size_t i = 9; i < 12; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
  expect_rows_independent(c);
}

// The experts of a view lie further apart than they are long.
TEST_P(Experts, WeightsMayHaveAPitch) {
  Random random(7);
  const std::uint32_t f = 66;
  const auto both = weights(random, type(), {kE, 2 * f, kD});
  const std::size_t half = both.bytes.size() / kE / 2;
  const auto dense = [&](std::size_t part) {
    Tensor t{both.dtype, {kE, f, kD}, {}};
    for (std::size_t e = 0; e < kE; ++e)
      t.bytes.insert(t.bytes.end(), both.bytes.begin() + std::ptrdiff_t((2 * e + part) * half),
                     both.bytes.begin() + std::ptrdiff_t((2 * e + part + 1) * half));
    return t;
  };
  Tensor view = both;
  view.dims = {kE, f, kD};
  view.pitch = 2 * half;
  const Tensor x{act(), {kTokens, kD}, rows(random.normal(3 * kD), kD)};
  const auto ids = i32({kTokens, 2}, {4, 0, 2, 2, 1, 3});
  const auto gate_up = [&](const Tensor& w) {
    return run({Op::MOE_GATE_UP,
                {x, w, dense(1), ids},
                {{DType::kF32, {kTokens, 2 * f}}, {DType::kF32, {kTokens, 2 * f}}},
                {},
                {3, 0}});
  };
  EXPECT_EQ(gate_up(view), gate_up(dense(0)));
  const auto linear = [&](const Tensor& w) {
    return run({Op::MOE_LINEAR, {x, w, ids}, {{DType::kF32, {kTokens, 2 * f}}}, {{"rows", 1}}, {3, 0}})[0];
  };
  EXPECT_EQ(linear(view), linear(dense(0)));
  EXPECT_EQ(linear(view), gate_up(view)[0]);
}

TEST_P(Experts, SharedExpertIsItsOps) {
  Random random(5);
  const bool quantize = std::get<1>(GetParam());
  for (const bool gated : {false, true})
    for (const int act_fn : {0, 1}) {
      const auto x = random.normal(2 * kD), hidden = random.normal(2 * kD), inp = random.normal(kD, 0.1);
      const auto gate_w = weights(random, type(), {kF, kD}), up_w = weights(random, type(), {kF, kD}),
                 down_w = weights(random, type(), {kD, kF});
      const Case c{
          Op::SHARED_EXPERT,
          {f32({kTokens, kD}, x), gate_w, up_w, down_w, gated ? f32({kD}, inp) : absent(), f32({kTokens, kD}, hidden)},
          {update(5)},
          {{"act", act_fn}, {"quantize", int(quantize)}},
          {2, 0}};
      std::vector<double> expected;
      for (std::size_t t = 0; t < 2; ++t) {
        const std::vector<float> row(x.begin() + std::ptrdiff_t(t * kD), x.begin() + std::ptrdiff_t((t + 1) * kD));
        const auto h = f32({kTokens, kF}, linear(rows(row, kD), act(), kD, gate_w));
        const auto u = f32({kTokens, kF}, linear(rows(row, kD), act(), kD, up_w));
        const auto product =
            as<float>(run({Op::GLU, {h, u}, {{DType::kF32, {kTokens, kF}}}, {{"act", act_fn}}, {1, 0}})[0]);
        const auto y = linear(rows(product, kF), act(), kF, down_w);
        double z = 0;
        for (std::size_t i = 0; i < kD; ++i) z += double(row[i]) * inp[i];
        const double factor = gated ? 1 / (1 + std::exp(-z)) : 1;
        for (std::size_t i = 0; i < kD; ++i) expected.push_back(hidden[t * kD + i] + y[i] * factor);
      }
      expect_near(run(c)[0], expected, 2e-6, 2e-6, "shared expert");
      expect_rows_independent(c);
    }
}

INSTANTIATE_TEST_SUITE_P(Types, Experts,
                         ::testing::Combine(::testing::Values(DType::kF32, DType::kF16, DType::kQ4_K, DType::kQ8_0,
                                                              DType::kQ6_K, DType::kMXFP4),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(to_string(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) ? "_int" : "_f32");
                         });

TEST(Experts, BadIdsGiveNanInTheirRows) {
  Random random(6);
  const auto w = weights(random, DType::kF32, {kE, 4, kD});
  const auto x = f32({kTokens, kD}, random.normal(2 * kD));
  const auto y = as<float>(run({Op::MOE_GATE_UP,
                                {x, w, w, i32({kTokens, 2}, {0, 5, -1, 1})},
                                {{DType::kF32, {kTokens, 8}}, {DType::kF32, {kTokens, 8}}},
                                {},
                                {2, 0}})[0]);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 4 == 1 || i / 4 == 2) << i;
  const auto out = as<float>(
      run({Op::MOE_DOWN_ACC,
           {f32({kTokens, 4}, random.normal(8)), weights(random, DType::kF32, {kE, 3, 4}), i32({kTokens, 1}, {7, 2}),
            f32({kTokens, 1}, {1, 1}), absent(), f32({kTokens, 3}, random.normal(6))},
           {update(5)},
           {},
           {2, 0}})[0]);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(out[i]), i < 3);
}

}  // namespace
}  // namespace zinc_rt::kernel_test

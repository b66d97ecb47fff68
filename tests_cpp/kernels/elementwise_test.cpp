// Ops that work element by element or move rows and words.
#include "harness.h"

namespace zinc_rt::kernel_test {
namespace {

Case binary(Op op, std::uint32_t n, std::uint32_t d, const std::vector<float>& a, const std::vector<float>& b,
            std::vector<Attr> attrs = {}) {
  return {op, {f32({kTokens, d}, a), f32({kTokens, d}, b)}, {{DType::kF32, {kTokens, d}}}, std::move(attrs), {n, 0}};
}

template <class Want>
void expect_binary(Op op, std::vector<Attr> attrs, double relative, Want&& want) {
  Random random(static_cast<unsigned>(op));
  for (const std::uint32_t d : {1u, 7u, 64u, 300u}) {
    const auto a = random.normal(3 * d, 3.0), b = random.normal(3 * d, 2.0);
    std::vector<double> expected;
    for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(want(a[i], b[i]));
    auto c = binary(op, 3, d, a, b, attrs);
    const auto fresh = run(c);
    expect_near(fresh[0], expected, 1e-30, relative, std::string(to_string(op)));
    expect_rows_independent(c);
    c.outputs = {update(0)};
    EXPECT_EQ(run(c), fresh) << to_string(op) << " in place";
  }
}

TEST(Elementwise, Add) {
  expect_binary(Op::ADD, {}, 6e-8, [](double a, double b) { return a + b; });
}
TEST(Elementwise, Mul) {
  expect_binary(Op::MUL, {}, 6e-8, [](double a, double b) { return a * b; });
}
TEST(Elementwise, GluSilu) {
  expect_binary(Op::GLU, {{"act", 0}}, 3e-7, [](double a, double b) { return silu(a) * b; });
}
TEST(Elementwise, GluSwigluOai) {
  expect_binary(Op::GLU, {{"act", 2}}, 5e-7, [](double a, double b) {
    const double g = std::min(a, 7.0), u = std::clamp(b, -7.0, 7.0);
    return g / (1 + std::exp(-double(1.702f) * g)) * (u + 1);
  });
}
TEST(Elementwise, GluGelu) {
  expect_binary(Op::GLU, {{"act", 1}}, 5e-7, [](double a, double b) { return gelu(a) * b; });
}
TEST(Elementwise, MoeSwigluIsGlu) {
  expect_binary(Op::MOE_SWIGLU, {{"act", 0}}, 3e-7, [](double a, double b) { return silu(a) * b; });
  Random random(9);
  const auto a = random.normal(256), b = random.normal(256);
  for (const int act : {0, 1})
    EXPECT_EQ(run(binary(Op::MOE_SWIGLU, 2, 128, a, b, {{"act", act}})),
              run(binary(Op::GLU, 2, 128, a, b, {{"act", act}})));
}
TEST(Elementwise, SigmoidMul) {
  expect_binary(Op::SIGMOID_MUL, {}, 3e-7, [](double a, double b) { return a / (1 + std::exp(-b)); });
}

TEST(Elementwise, SliceTakesColumnsOfEachGroup) {
  Random random(2);
  const std::uint32_t groups = 3, group = 10;
  const auto x = random.normal(2 * groups * group);
  for (const auto& [first, width] : {std::pair{0u, 10u}, {0u, 1u}, {9u, 1u}, {4u, 5u}}) {
    std::vector<float> expected;
    for (std::size_t g = 0; g < 2 * groups; ++g)
      for (std::uint32_t i = 0; i < width; ++i) expected.push_back(x[g * group + first + i]);
    const Case c{Op::SLICE,
                 {f32({kTokens, groups * group}, x)},
                 {{DType::kF32, {kTokens, groups * width}}},
                 {{"groups", groups}, {"group", group}, {"first", first}, {"width", width}},
                 {2, 0}};
    EXPECT_EQ(as<float>(run(c)[0]), expected);
    expect_rows_independent(c);
  }
}

TEST(Elementwise, CopyRowsMovesWholeRows) {
  Random random(3);
  for (const std::uint32_t w : {1u, 65536u, 65537u}) {
    const auto state = random.normal(5 * std::size_t{w});
    auto expected = state;
    const auto entry = [&](auto& values, std::size_t i) { return values.begin() + std::ptrdiff_t(i * w); };
    std::copy_n(entry(state, 0), w, entry(expected, 3));
    std::copy_n(entry(state, 0), w, entry(expected, 4));
    std::copy_n(entry(state, 2), w, entry(expected, 1));
    const Case c{Op::COPY_ROWS,
                 {i32({kTokens}, {0, 0, 2}), i32({kTokens}, {3, 4, 1}), f32({5, w}, state)},
                 {update(2)},
                 {},
                 {3, 0}};
    EXPECT_EQ(as<float>(run(c)[0]), expected);
  }
}

TEST(Elementwise, Scale) {
  Random random(1);
  const auto x = random.normal(3 * 65);
  for (const bool stored : {false, true}) {
    std::vector<double> expected;
    for (const float v : x) expected.push_back(v * (stored ? 0.75 : 1.0) * 0.3f);
    Case c{Op::SCALE,
           {f32({kTokens, 65}, x), stored ? f32({1}, {0.75f}) : absent()},
           {{DType::kF32, {kTokens, 65}}},
           {{"scale", 0.3f}},
           {3, 0}};
    const auto fresh = run(c);
    expect_near(fresh[0], expected, 1e-30, 1.3e-7, "scale");
    c.outputs = {update(0)};
    EXPECT_EQ(run(c), fresh);
  }
}

TEST(Elementwise, Softcap) {
  Random random(2);
  auto x = random.normal(3 * 65, 40.0);
  x[0] = 0, x[1] = 1e30f, x[2] = -1e30f;
  for (const float cap : {30.0f, 50.0f, 1.0f}) {
    std::vector<double> expected;
    for (const float v : x) expected.push_back(cap * std::tanh(double(v) / cap));
    Case c{Op::SOFTCAP, {f32({kTokens, 65}, x)}, {{DType::kF32, {kTokens, 65}}}, {{"cap", cap}}, {3, 0}};
    expect_near(run(c)[0], expected, 1e-30, 5e-7, "softcap");
  }
}

TEST(Elementwise, Gelu) {
  Random random(5);
  auto x = random.normal(3 * 65, 3.0);
  x[0] = 0, x[1] = 1e30f, x[2] = -1e30f;
  std::vector<double> expected;
  for (const float v : x) expected.push_back(0.5 * v * std::erfc(-double(v) / std::sqrt(2.0)));
  Case c{Op::GELU, {f32({kTokens, 65}, x)}, {{DType::kF32, {kTokens, 65}}}, {}, {3, 0}};
  const auto fresh = run(c);
  expect_near(fresh[0], expected, 1e-30, 2.4e-7, "gelu");
  expect_rows_independent(c);
  c.outputs = {update(0)};
  EXPECT_EQ(run(c), fresh);
}

TEST(Elementwise, Relu2) {
  Random random(8);
  auto x = random.normal(3 * 65, 3.0);
  x[0] = 0, x[1] = 1e18f, x[2] = -1e30f, x[3] = -0.0f;
  std::vector<double> expected;
  for (const float v : x) expected.push_back(v > 0 ? double(v) * v : 0);
  Case c{Op::RELU2, {f32({kTokens, 65}, x)}, {{DType::kF32, {kTokens, 65}}}, {}, {3, 0}};
  expect_near(run(c)[0], expected, 1e-30, 6e-8, "relu2");
  expect_rows_independent(c);
  const auto fresh = run(c);
  c.outputs = {update(0)};
  EXPECT_EQ(run(c), fresh);
  c.inputs[0] = f32({kTokens, 65}, std::vector<float>(x.size(), NAN));
  for (const float y : as<float>(run(c)[0])) EXPECT_TRUE(std::isnan(y));
}

TEST(Embed, WidensRowsOfEveryFormat) {
  Random random(3);
  for (const auto* format : cpu::quant_formats())
    for (const float scale : {1.0f, 11.5f}) {
      const std::uint32_t v = 5, d = 256;
      const auto table = weights(random, format->dtype, {v, d});
      const auto wide = values(table);
      const std::vector<std::int32_t> ids{4, 0, 2, 4};
      std::vector<double> expected;
      for (const auto id : ids)
        for (std::uint32_t i = 0; i < d; ++i) expected.push_back(wide[std::size_t(id) * d + i] * scale);
      const Case c{Op::EMBED,
                   {i32({kTokens}, ids), table, absent(), absent()},
                   {{DType::kF32, {kTokens, d}}},
                   {{"scale", scale}},
                   {4, 0}};
      expect_near(run(c)[0], expected, 0, scale == 1.0f ? 0 : 6e-8, std::string(to_string(format->dtype)));
      expect_rows_independent(c);
    }
}

TEST(Embed, BadIdsGiveNan) {
  Random random(4);
  const auto y = as<float>(run(
      {Op::EMBED,
       {i32({kTokens}, {1, -1, 5, INT32_MAX, INT32_MIN, 0}), weights(random, DType::kF32, {5, 8}), absent(), absent()},
       {{DType::kF32, {kTokens, 8}}},
       {{"scale", 1.0f}},
       {6, 0}})[0]);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 8 >= 1 && i / 8 <= 4) << i;
}

TEST(Embed, ANegativeIdNamesAFieldOfTheSlotTable) {
  Random random(6);
  const auto table = weights(random, DType::kF32, {5, 8});
  const auto embed = [&](const std::vector<std::int32_t>& ids, bool has_slots) {
    const Case c{Op::EMBED,
                 {i32({kTokens}, ids), table, has_slots ? i32({kTokens}, {2, 0, 2, 1, 3, -1, 2}) : absent(),
                  has_slots ? u32({3, 2}, {4, 1, 0xFFFFFFFF, 2, 3, 9}) : absent()},
                 {{DType::kF32, {kTokens, 8}}},
                 {{"scale", 1.0f}},
                 {7, 0}};
    expect_rows_independent(c);
    return as<float>(run(c)[0]);
  };
  // Fields 0 and 1 of slots 2 and 0; an id outside the table, field 2 of 2, slots 3 and -1; an id that needs no slot.
  const auto got = embed({-1, -2, -2, -3, -1, -1, 3}, true), wanted = embed({3, 1, 9, 9, 9, 9, 3}, false);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(std::isnan(got[i]), i / 8 >= 2 && i / 8 <= 5) << i;
    if (!std::isnan(got[i])) {
      EXPECT_EQ(got[i], wanted[i]) << i;
    }
  }
}

TEST(GatherRows, TakesRowsAndMarksBadOnes) {
  Random random(5);
  const auto x = random.normal(4 * 9);
  const std::vector<std::int32_t> rows{3, 0, 3, 4, -1, INT32_MIN};
  const auto y = as<float>(run(
      {Op::GATHER_ROWS, {f32({kTokens, 9}, x), i32({kOutputs}, rows)}, {{DType::kF32, {kOutputs, 9}}}, {}, {4, 6}})[0]);
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t i = 0; i < 9; ++i) {
      if (r < 3)
        EXPECT_EQ(y[r * 9 + i], x[std::size_t(rows[r]) * 9 + i]);
      else
        EXPECT_TRUE(std::isnan(y[r * 9 + i]));
    }
}

TEST(RequestState, LoadAndStore) {
  std::vector<std::uint32_t> table(3 * 4);
  for (std::uint32_t i = 0; i < 12; ++i) table[i] = 100 + i;
  const auto load = [&](int field) {
    return as<std::uint32_t>(run({Op::LOAD_REQUEST_STATE,
                                  {u32({3, 4}, table), i32({kTokens}, {2, 0, 3, -1})},
                                  {{DType::kU32, {kTokens}}},
                                  {{"field", field}},
                                  {4, 0}})[0]);
  };
  EXPECT_EQ(load(1), (std::vector<std::uint32_t>{109, 101, 0xFFFFFFFF, 0xFFFFFFFF}));
  EXPECT_EQ(load(4), std::vector<std::uint32_t>(4, 0xFFFFFFFF));
  const auto stored =
      as<std::uint32_t>(run({Op::STORE_REQUEST_STATE,
                             {u32({3, 4}, table), i32({kTokens}, {1, 7, -2, 1, 0}), u32({kTokens}, {6, 8, 7, 9, 5})},
                             {update(0)},
                             {{"field", 3}},
                             {5, 0}})[0]);
  table[3] = 5;
  table[7] = 9;  // of the last row with slot 1
  EXPECT_EQ(stored, table);
}

TEST(StreamOut, AppendsAndWraps) {
  std::vector<std::uint32_t> ring(4 * 4, 0);  // the count and 3 entries
  std::uint32_t count = 0;
  for (int step = 0; step < 4; ++step) {
    const Case c{Op::STREAM_OUT,
                 {i32({kOutputs}, {10 + step, 20 + step}), i32({kOutputs}, {5, 6}), u32({4, 4}, ring)},
                 {update(2)},
                 {},
                 {0, 2}};
    ring = as<std::uint32_t>(run(c)[0]);
    EXPECT_EQ(ring[0], count + 2);
    for (std::uint32_t r = 0; r < 2; ++r, ++count) {
      const std::uint32_t* entry = &ring[4 * (1 + count % 3)];
      EXPECT_EQ(entry[0], count);
      EXPECT_EQ(entry[1], 5 + r);
      EXPECT_EQ(entry[2], 10 + 10 * r + std::uint32_t(step));
      EXPECT_EQ(entry[3], r);
    }
  }
}

std::vector<std::int32_t> argmax(std::uint32_t v, const std::vector<float>& logits) {
  const auto n = static_cast<std::uint32_t>(logits.size() / v);
  return as<std::int32_t>(run({Op::ARGMAX, {f32({kOutputs, v}, logits)}, {{DType::kI32, {kOutputs}}}, {}, {0, n}})[0]);
}

TEST(Argmax, TiesNanAndInfinity) {
  const float inf = INFINITY;
  EXPECT_EQ(argmax(4, {1,   3,    3,    2,     NAN, 3, NAN, 3, NAN, NAN, NAN, NAN, -inf, -inf,
                       NAN, -inf, 0.0f, -0.0f, 0,   0, inf, 1, inf, NAN, NAN, NAN, NAN,  -5}),
            (std::vector<std::int32_t>{1, 1, 0, 0, 0, 0, 3}));
  EXPECT_EQ(argmax(1, {NAN, -7}), (std::vector<std::int32_t>{0, 0}));
}

TEST(Argmax, MatchesAScan) {
  Random random(6);
  for (const std::uint32_t v : {1u, 2u, 255u, 1000u}) {
    const auto x = random.normal(5 * v);
    const auto got = argmax(v, x);
    for (std::size_t r = 0; r < 5; ++r)
      EXPECT_EQ(got[r], std::max_element(x.begin() + r * v, x.begin() + (r + 1) * v) - (x.begin() + r * v));
  }
}

TEST(VerifyK, LongestGreedyPrefix) {
  const std::uint32_t k = 3, v = 4;
  std::vector<float> logits;
  for (int b = 0; b < 5; ++b)
    for (const int best : {2, 0, 3})
      for (int i = 0; i < 4; ++i) logits.push_back(i == best ? 1.0f : 0.0f);
  const std::vector<std::int32_t> draft{2, 0, 3, 2, 0, 1, 1, 0, 3, 2, 1, 3, -1, 0, 3};
  EXPECT_EQ(as<std::int32_t>(run({Op::VERIFY_K,
                                  {i32({kOutputs, k}, draft), f32({kOutputs, k, v}, logits)},
                                  {{DType::kI32, {kOutputs}}},
                                  {},
                                  {0, 5}})[0]),
            (std::vector<std::int32_t>{3, 2, 0, 1, 0}));
}

}  // namespace
}  // namespace zinc_rt::kernel_test

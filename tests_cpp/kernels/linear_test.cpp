// LINEAR, LM_HEAD, the two matmuls and the fused norm + projection ops, over every weight format.
#include <fmt/format.h>

#include "harness.h"

namespace zinc_rt::kernel_test {
namespace {

struct Product {
  std::vector<double> y;
  double bound = 0;  // of the rounding error of one element
};

// x [n, k] times w [m, k] in float64. The bound is a few roundings of the largest term for each of the k.
Product product(const std::vector<double>& x, const std::vector<double>& w, std::size_t k) {
  Product p;
  const std::size_t n = x.size() / k, m = w.size() / k;
  double largest = 0;
  for (const double v : w) largest = std::max(largest, std::abs(v));
  for (std::size_t t = 0; t < n; ++t) {
    double magnitude = 0;
    for (std::size_t i = 0; i < k; ++i) magnitude += std::abs(x[t * k + i]) * largest;
    p.bound = std::max(p.bound, 1e-6 * magnitude);
    for (std::size_t r = 0; r < m; ++r) {
      double sum = 0;
      for (std::size_t i = 0; i < k; ++i) sum += x[t * k + i] * w[r * k + i];
      p.y.push_back(sum);
    }
  }
  return p;
}

Tensor activations(const std::vector<float>& x, DType type, std::uint32_t k) {
  if (type == DType::kF32) return f32({kTokens, k}, x);
  return {type, {kTokens, k}, quantized(x, type, k)};
}

void check_linear(Op op, DType w_type, DType x_type, std::uint32_t n, std::uint32_t k, std::uint32_t m, bool bias) {
  Random random(17 * m + k + static_cast<unsigned>(w_type));
  const auto w = weights(random, w_type, {m, k});
  const auto x = activations(random.normal(n * k), x_type, k);
  const auto b = random.normal(m);
  auto expected = product(values(x), values(w), k);
  if (bias)
    for (std::size_t i = 0; i < expected.y.size(); ++i) expected.y[i] += b[i % m];
  Case c{op, {x, w}, {{DType::kF32, {kTokens, m}}}, {}, {n, 0}};
  if (op == Op::LINEAR) c.inputs.push_back(bias ? f32({m}, b) : absent());
  const auto what =
      fmt::format("{} {} x {} n {} k {} m {}", to_string(op), to_string(w_type), to_string(x_type), n, k, m);
  expect_near(run(c)[0], expected.y, expected.bound, 1e-6, what);
  if (n > 1) expect_rows_independent(c);
}

class EveryFormat : public ::testing::TestWithParam<const cpu::QuantFormat*> {};

TEST_P(EveryFormat, LinearMatchesFloat64) {
  const DType w = GetParam()->dtype, act = GetParam()->act;
  const std::uint32_t block = traits(w).block_elems;
  for (const std::uint32_t m : {1u, 63u, 64u, 65u})
    check_linear(Op::LINEAR, w, act, 2, block > 1 ? 2 * block : 80, m, m % 2);
  check_linear(Op::LINEAR, w, act, 3, 512, 5, true);
  if (act != DType::kF32) check_linear(Op::LINEAR, w, DType::kF32, 2, 512, 65, true);  // activations = f32
}

TEST_P(EveryFormat, LmHeadMatchesFloat64) {
  for (const std::uint32_t v : {1u, 255u, 256u, 257u})
    check_linear(Op::LM_HEAD, GetParam()->dtype, GetParam()->act, 1, 256, v, false);
  check_linear(Op::LM_HEAD, GetParam()->dtype, DType::kF32, 2, 256, 3, false);
}

Case qkv(const cpu::QuantFormat& f, DType v_type, int quantize, std::uint32_t n) {
  Random random(5);
  const std::uint32_t d = 256, nq = 130, nk = 64, nv = 65;
  return {Op::RMS_NORM_FUSED_QKV,
          {f32({kTokens, d}, random.normal(n * d)), f32({d}, random.normal(d)), weights(random, f.dtype, {nq, d}),
           weights(random, f.dtype, {nk, d}), weights(random, v_type, {nv, d}), f32({nq}, random.normal(nq)), absent(),
           f32({nv}, random.normal(nv))},
          {{DType::kF32, {kTokens, nq}}, {DType::kF32, {kTokens, nk}}, {DType::kF32, {kTokens, nv}}},
          {{"eps", 1e-5f}, {"quantize", quantize}},
          {n, 0}};
}

// The op's meaning: the norm, then one LINEAR a weight, its input quantized as the weight wants.
void expect_is_norm_then_linears(const Case& fused, std::size_t n_parts, bool has_bias, int quantize) {
  const auto got = run(fused);
  const std::uint32_t d = fused.inputs[0].dims[1].n, n = fused.dims.n_tokens;
  const auto h = as<float>(run({Op::RMS_NORM,
                                {fused.inputs[0], fused.inputs[1]},
                                {{DType::kF32, {kTokens, d}}},
                                {{"eps", 1e-5f}, {"group", d}},
                                {n, 0}})[0]);
  for (std::size_t part = 0; part < n_parts; ++part) {
    const Tensor& w = fused.inputs[2 + part];
    const DType act = quantize ? act_dtype(w.dtype) : DType::kF32;
    const Case linear{Op::LINEAR,
                      {activations(h, act, d), w, has_bias ? fused.inputs[5 + part] : absent()},
                      {fused.outputs[part]},
                      {},
                      {n, 0}};
    EXPECT_EQ(got[part], run(linear)[0]) << to_string(fused.op) << " part " << part << " " << to_string(w.dtype);
  }
}

TEST_P(EveryFormat, FusedQkvIsNormThenLinears) {
  for (const int quantize : {0, 1}) {
    expect_is_norm_then_linears(qkv(*GetParam(), GetParam()->dtype, quantize, 2), 3, true, quantize);
    expect_is_norm_then_linears(qkv(*GetParam(), DType::kQ8_0, quantize, 1), 3, true, quantize);  // as mixed files have
  }
}

TEST_P(EveryFormat, FusedGateUpIsNormThenLinears) {
  Random random(6);
  for (const int quantize : {0, 1})
    for (const std::uint32_t f : {1u, 64u, 65u})
      for (const DType up : {GetParam()->dtype, DType::kQ5_0}) {
        const Case c{Op::RMS_NORM_FUSED_MLP_GATE_UP,
                     {f32({kTokens, 256}, random.normal(512)), f32({256}, random.normal(256)),
                      weights(random, GetParam()->dtype, {f, 256}), weights(random, up, {f, 256})},
                     {{DType::kF32, {kTokens, f}}, {DType::kF32, {kTokens, f}}},
                     {{"eps", 1e-5f}, {"quantize", quantize}},
                     {2, 0}};
        expect_is_norm_then_linears(c, 2, false, quantize);
      }
}

INSTANTIATE_TEST_SUITE_P(Linear, EveryFormat,
                         ::testing::ValuesIn(cpu::quant_formats().begin(), cpu::quant_formats().end()),
                         [](const auto& info) { return std::string(to_string(info.param->dtype)); });

// In arithmetic `fast` too, whatever forms of the normed row the parts are multiplied with.
TEST(FusedQkv, IsNormThenLinearsInArithmeticFast) {
  const std::uint32_t n = 40, d = 256;
  for (const cpu::KernelSet* set : fast_sets()) {
    const cpu::KernelSet* fast = ring::fast_form_of(*set);
    if (fast == nullptr) continue;
    ring::CpuRing ring(3, *fast, fast->reads_panels);
    for (const auto& [qk, v] : {std::pair(DType::kQ4_K, DType::kQ6_K),
                                {DType::kQ4_K, DType::kQ5_0},
                                {DType::kQ8_0, DType::kBF16},
                                {DType::kF16, DType::kQ4_K},
                                {DType::kBF16, DType::kF32}})
      for (const int quantize : {0, 1}) {
        const auto fused = qkv(*cpu::quant_format(qk), v, quantize, n);
        const auto got = run_on(fused, ring);
        const auto h = as<float>(run_on({Op::RMS_NORM,
                                         {fused.inputs[0], fused.inputs[1]},
                                         {{DType::kF32, {kTokens, d}}},
                                         {{"eps", 1e-5f}, {"group", d}},
                                         {n, 0}},
                                        ring)[0]);
        for (std::size_t part = 0; part < 3; ++part) {
          const Tensor& w = fused.inputs[2 + part];
          const DType act = quantize != 0 ? act_dtype(w.dtype) : DType::kF32;
          const Case linear{
              Op::LINEAR, {activations(h, act, d), w, fused.inputs[5 + part]}, {fused.outputs[part]}, {}, {n, 0}};
          EXPECT_EQ(got[part], run_on(linear, ring)[0])
              << fast->name << " part " << part << " " << to_string(w.dtype) << " quantize " << quantize;
        }
      }
  }
}

TEST(FusedQkv, RowsAreIndependent) {
  expect_rows_independent(qkv(*cpu::quant_format(DType::kQ4_K), DType::kQ6_K, 1, 4));
  expect_rows_independent(qkv(*cpu::quant_format(DType::kF32), DType::kF32, 0, 4));
}

TEST(Linear, OddWidthsOfFloatWeights) {
  for (const DType w : {DType::kF32, DType::kF16, DType::kBF16})
    for (const std::uint32_t k : {1u, 15u, 16u, 17u, 255u, 257u, 1000u})
      check_linear(Op::LINEAR, w, DType::kF32, 2, k, 3, true);
}

TEST(Matmul, WmmaF16) {
  Random random(7);
  for (const DType type : {DType::kF16, DType::kBF16})
    for (const std::uint32_t m : {1u, 63u, 64u, 65u}) {
      const auto a = weights(random, DType::kF16, {3, 100}, 0.5), b = weights(random, type, {m, 100});
      Case c{Op::MATMUL_WMMA_F16, {a, b}, {{DType::kF32, {kTokens, m}}}, {}, {3, 0}};
      c.inputs[0].dims[0] = kTokens;
      const auto expected = product(values(a), values(b), 100);
      expect_near(run(c)[0], expected.y, expected.bound, 1e-6, "wmma_f16");
      expect_rows_independent(c);
    }
}

TEST(Matmul, WmmaQ4kIsLinear) {
  Random random(8);
  for (const std::uint32_t m : {1u, 63u, 64u, 65u}) {
    const auto w = weights(random, DType::kQ4_K, {m, 512});
    const auto x = activations(random.normal(3 * 512), DType::kQ8A256, 512);
    const Case c{Op::MATMUL_WMMA_Q4K, {x, w}, {{DType::kF32, {kTokens, m}}}, {}, {3, 0}};
    EXPECT_EQ(run(c), run({Op::LINEAR, {x, w, absent()}, {{DType::kF32, {kTokens, m}}}, {}, {3, 0}}));
    const auto expected = product(values(x), values(w), 512);
    expect_near(run(c)[0], expected.y, expected.bound, 1e-6, "wmma_q4k");
  }
}

}  // namespace
}  // namespace zinc_rt::kernel_test

// The llama family against the independent float reference is tested where logits are; here: the graph it writes and
// what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "arch/builder.h"
#include "executor/ring/ring_executor.h"
#include "ir/op_rules.h"
#include "ir/verify.h"
#include "tests_cpp/base/fixtures.h"

namespace zinc_rt::arch {
namespace {

using ::testing::HasSubstr;

TEST(FindFamily, ByArchitecture) {
  ASSERT_TRUE(find_family("llama"));
  const auto unknown = find_family("no_such_family");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, StatusCode::kUnavailable);
  EXPECT_THAT(unknown.error().message, HasSubstr("no_such_family"));
  EXPECT_THAT(unknown.error().message, HasSubstr("llama"));
  for (const Family* family : families())
    for (const auto name : family->architectures) EXPECT_EQ(*find_family(name), family) << name;
}

class Llama : public ::testing::Test {
 protected:
  void SetUp() override { ZRT_NEED_SHARED_FIXTURES(); }
  Prepared load(const std::string& model) {
    ExecutorOptions options;
    options.max_slots = 3;
    options.max_context = 40;
    auto p = prepare(model_path(model), options);
    EXPECT_TRUE(p) << (p ? "" : p.error().message);
    return p ? std::move(*p) : Prepared{};
  }
  static const ir::Node& find(const ir::Graph& graph, ir::Op op) {
    return *std::ranges::find(graph.nodes(), op, &ir::Node::op);
  }
};

TEST_F(Llama, StagesDifferInTheAttentionOnly) {
  const auto p = load("llama_spm-f32");
  ASSERT_EQ(p.prefill.nodes().size(), p.decode.nodes().size());
  for (std::size_t i = 0; i < p.prefill.nodes().size(); ++i) {
    const auto a = p.prefill.nodes()[i].op, b = p.decode.nodes()[i].op;
    EXPECT_EQ(b, a == ir::Op::FLASH_ATTN_BATCHED ? ir::Op::FLASH_ATTN : a);
    EXPECT_EQ(p.decode.nodes()[i].stage, ir::Stage::kDecode);
  }
  EXPECT_EQ(p.graph_options.max_context, 48u);  // whole pages
  EXPECT_EQ(p.prefill.buffer(p.prefill.find("request.page_table")).dims[1], ir::Dim(3));
}

TEST_F(Llama, SlidingWindowIsHonoured) {
  const auto with = load("mistral_swa-f32"), without = load("mistral-f32");
  EXPECT_GT(with.config.sliding_window, 0u);
  EXPECT_EQ(ir::attr_u32(find(with.prefill, ir::Op::FLASH_ATTN_BATCHED), "window"), with.config.sliding_window);
  EXPECT_EQ(ir::attr_u32(find(without.prefill, ir::Op::FLASH_ATTN_BATCHED), "window"), 0u);
}

TEST_F(Llama, TiedHeadAndFrequencyDivisors) {
  const auto p = load("llama3_tied_rope-f16");
  const auto& head = find(p.prefill, ir::Op::LM_HEAD);
  EXPECT_EQ(p.prefill.buffer(head.inputs[1]).tensor, "token_embd.weight");
  const auto tables = p.family->rope_tables(p.config, *p.weights);
  ASSERT_EQ(tables.size(), 1u);
  const auto* divisors = reinterpret_cast<const float*>(p.weights->find("rope_freqs.weight")->data.data());
  bool differs = false;
  for (std::uint32_t i = 0; i < p.config.rope_dim / 2; ++i) {
    const double plain = std::pow(p.config.rope_theta, -2.0 * i / p.config.rope_dim);
    EXPECT_DOUBLE_EQ(tables[0].variants[0].inverse_frequencies[i], plain / divisors[i]);
    differs = differs || divisors[i] != 1.0f;
  }
  EXPECT_TRUE(differs);
}

TEST_F(Llama, ConfigsItCannotRunAreRefused) {
  const auto p = load("llama_spm-f32");
  const auto error = [&](const std::function<void(ModelConfig&)>& change) {
    auto config = p.config;
    change(config);
    const auto graph = p.family->build(config, *p.weights, p.graph_options);
    if (!graph) return graph.error().message;
    const auto status = ir::verify(*graph);
    return status ? std::string("built") : status.error().message;
  };
  EXPECT_EQ(error([](auto&) {}), "built");
  EXPECT_THAT(error([](auto& c) { c.n_experts = 8; }), HasSubstr("8 experts"));
  EXPECT_THAT(error([](auto& c) { c.rope_scaling_type = "longrope"; }), HasSubstr("longrope"));
  EXPECT_THAT(error([](auto& c) { c.vocab_size += 1; }), HasSubstr("token_embd.weight"));
  EXPECT_THAT(
      error([](auto& c) { ++c.n_layers, c.n_kv_heads_per_layer.push_back(2), c.ffn_dim_per_layer.push_back(160); }),
      HasSubstr("is missing"));
  EXPECT_THAT(error([](auto& c) { --c.n_layers; }), HasSubstr("is not one that this family knows"));
  EXPECT_THAT(error([](auto& c) { c.ffn_dim_per_layer[0] = 8; }), HasSubstr("has shape"));
}

TEST_F(Llama, EveryNodeIsFollowedByABarrierAndNamedByItsLayer) {
  const auto p = load("llama_k-Q4_K_M");
  const auto nodes = p.prefill.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_EQ(nodes[i].op == ir::Op::BARRIER, i % 2 == 1);
  int layer = -1;
  for (const auto& node : nodes) {
    if (node.layer < 0) continue;
    EXPECT_GE(node.layer, layer);
    layer = node.layer;
  }
  EXPECT_EQ(layer + 1, int(p.config.n_layers));
}

}  // namespace
}  // namespace zinc_rt::arch

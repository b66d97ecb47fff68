// What holds for every family: which tensors it wants and that it names the one which is wrong, that its graph
// verifies, and what its layers are made of. Their logits are tested against independent ones in
// tests_py/test_fixtures.py.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "arch/rope.h"
#include "executor/ring/ring_executor.h"
#include "ir/op_rules.h"
#include "ir/verify.h"
#include "tests_cpp/base/fixtures.h"
#include "tests_cpp/model/gguf_builder.h"
#include "tests_cpp/model/model_folder.h"

namespace zinc_rt::arch {
namespace {

using ::testing::HasSubstr;

Prepared load(const std::string& model, std::uint32_t max_context = 64) {
  ExecutorOptions options;
  options.max_slots = 2;
  options.max_context = max_context;
  auto p = prepare(model_path(model), options);
  EXPECT_TRUE(p) << (p ? "" : p.error().message);
  return p ? std::move(*p) : Prepared{};
}
std::size_t count(const ir::Graph& graph, ir::Op op) {
  return std::size_t(std::ranges::count(graph.nodes(), op, &ir::Node::op));
}

class EveryModel : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryModel, NamesTheTensorThatIsWrong) {
  const auto p = load(GetParam());
  const auto error = [&](const std::function<void(ModelConfig&)>& change) {
    auto config = p.config;
    change(config);
    const auto graph = p.family->build(config, *p.weights, p.graph_options);
    if (!graph) return graph.error().message;
    const auto status = ir::verify(*graph);
    return status ? std::string("built") : status.error().message;
  };
  EXPECT_EQ(error([](auto&) {}), "built");
  EXPECT_THAT(error([](auto& c) { c.vocab_size += 1; }), HasSubstr("tensor \"token_embd.weight\" has shape"));
  EXPECT_THAT(error([](auto& c) {
                ++c.n_layers;
                for (auto* list : {&c.n_kv_heads_per_layer, &c.ffn_dim_per_layer}) list->push_back(list->back());
                c.is_recurrent.push_back(c.is_recurrent.back());
                if (!c.is_sliding.empty()) c.is_sliding.push_back(c.is_sliding.back());
              }),
              ::testing::ContainsRegex("tensor \"[a-z0-9._]+\" (is missing|has shape|is not one)"));
  EXPECT_THAT(error([](auto& c) { --c.n_layers; }),
              ::testing::ContainsRegex("(is not one that this family knows|has shape|is missing)"));
  EXPECT_THAT(error([](auto& c) {
                for (auto& n : c.ffn_dim_per_layer) n += n > 0 ? 8 : 0;  // 0: another kind of layer
                c.expert_ffn_dim += 8;
              }),
              HasSubstr("has shape"));
  EXPECT_THAT(error([](auto& c) { c.n_heads *= 2; }), HasSubstr("has shape"));
}

// Any values that the config reader lets through: an error or a graph that verifies or does not, but no crash (and
// under the sanitizers no overflow and no division by zero).
TEST_P(EveryModel, SurvivesAnyConfig) {
  const auto p = load(GetParam());
  std::mt19937 rng(7);
  constexpr std::uint32_t ModelConfig::* kFields[] = {&ModelConfig::n_layers,
                                                      &ModelConfig::n_mtp_layers,
                                                      &ModelConfig::model_dim,
                                                      &ModelConfig::n_heads,
                                                      &ModelConfig::head_dim,
                                                      &ModelConfig::v_head_dim,
                                                      &ModelConfig::sliding_window,
                                                      &ModelConfig::sliding_head_dim,
                                                      &ModelConfig::sliding_v_head_dim,
                                                      &ModelConfig::rope_dim,
                                                      &ModelConfig::n_shared_kv_layers,
                                                      &ModelConfig::sliding_rope_dim,
                                                      &ModelConfig::n_experts,
                                                      &ModelConfig::n_experts_used,
                                                      &ModelConfig::expert_ffn_dim,
                                                      &ModelConfig::ssm_conv_width,
                                                      &ModelConfig::short_conv_width,
                                                      &ModelConfig::expert_latent_dim,
                                                      &ModelConfig::shared_expert_ffn_dim,
                                                      &ModelConfig::ssm_k_heads,
                                                      &ModelConfig::ssm_v_heads,
                                                      &ModelConfig::ssm_k_dim,
                                                      &ModelConfig::ssm_inner_dim,
                                                      &ModelConfig::vocab_size,
                                                      &ModelConfig::per_layer_embedding_dim};
  constexpr std::uint32_t kValues[] = {0, 1, 2, 3, 5, 64, 255, 1024, 1u << 14, 1u << 22};
  for (int round = 0; round < 150; ++round) {
    auto config = p.config;
    for (std::uint32_t i = 0; i <= rng() % 3; ++i) config.*kFields[rng() % std::size(kFields)] = kValues[rng() % 10];
    config.n_layers = std::min(config.n_layers, 64u);
    config.n_kv_heads_per_layer.resize(config.n_layers, rng() % 3);
    config.ffn_dim_per_layer.resize(config.n_layers, kValues[rng() % 10]);
    if (!config.is_sliding.empty()) config.is_sliding.resize(config.n_layers, rng() % 2);
    config.is_recurrent.resize(config.n_layers, rng() % 2);
    const auto graph = p.family->build(config, *p.weights, p.graph_options);
    if (graph)
      static_cast<void>(ir::verify(*graph));
    else
      EXPECT_FALSE(graph.error().message.empty());
  }
}

TEST_P(EveryModel, StagesDifferInAttentionAndPlanIsComplete) {
  const auto p = load(GetParam());
  ASSERT_EQ(p.prefill.nodes().size(), p.decode.nodes().size());
  for (std::size_t i = 0; i < p.prefill.nodes().size(); ++i) {
    const auto a = p.prefill.nodes()[i].op;
    EXPECT_EQ(p.decode.nodes()[i].op, a == ir::Op::FLASH_ATTN_BATCHED ? ir::Op::FLASH_ATTN : a);
  }
  // Each byte of a tensor is read through some weight: views do not leave rows out, and count none twice.
  std::map<std::string, std::uint64_t> bytes;
  for (const auto& buffer : p.prefill_low.buffers())
    if (buffer.buffer_class == ir::BufferClass::kWeight) bytes[buffer.tensor] += lower::buffer_bytes(buffer, {});
  for (const auto& [name, size] : bytes) EXPECT_EQ(size, p.weights->find(name)->computed_bytes()) << name;
  EXPECT_EQ(p.prefill.buffer(p.prefill.find("act.hidden")).dims[1], ir::Dim(p.config.model_dim));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, EveryModel, ::testing::ValuesIn(own_and(models_in(shared_models()))),
                         [](const auto& info) {
                           auto name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

class Families : public ::testing::Test {
 protected:
  void SetUp() override { ZRT_NEED_SHARED_FIXTURES(); }
};

TEST_F(Families, HybridsMixLayersAndCarryTheMtpBlock) {
  const auto p = load("qwen35-f32");
  EXPECT_EQ(p.config.n_layers, 4u);
  EXPECT_EQ(p.config.n_mtp_layers, 1u);
  EXPECT_EQ(count(p.prefill, ir::Op::SSM_DELTA_NET), 3u);
  EXPECT_EQ(count(p.prefill, ir::Op::FLASH_ATTN_BATCHED), 1u);
  for (const auto& buffer : p.prefill.buffers()) EXPECT_FALSE(buffer.tensor.starts_with("blk.4.")) << buffer.tensor;
  auto config = p.config;
  config.is_recurrent = {true, false, true, false};
  EXPECT_FALSE(p.family->build(config, *p.weights, p.graph_options));
  config = p.config;
  config.ssm_k_heads = 3;
  EXPECT_THAT(p.family->build(config, *p.weights, p.graph_options).error().message, HasSubstr("3 key heads"));
}

TEST_F(Families, ExpertsAreFusedByStage) {
  const auto p = load("qwen35moe-Q4_K_M");
  EXPECT_EQ(count(p.prefill_low, ir::Op::MOE_GATE_UP), p.config.n_layers);
  EXPECT_EQ(count(p.prefill_low, ir::Op::MOE_SUM), p.config.n_layers);
  EXPECT_EQ(count(p.decode_low, ir::Op::MOE_DOWN_ACC), p.config.n_layers);
  EXPECT_EQ(count(p.decode_low, ir::Op::SHARED_EXPERT), p.config.n_layers);
  for (const auto& node : p.decode_low.nodes())
    if (node.op == ir::Op::SHARED_EXPERT) {
      EXPECT_EQ(ir::attr_u32(node, "quantize"), 1u);
    }
}

TEST_F(Families, GemmasAlternateWindows) {
  const auto p = load("gemma3-f16");
  std::vector<std::uint32_t> windows;
  for (const auto& node : p.prefill.nodes())
    if (node.op == ir::Op::FLASH_ATTN_BATCHED) windows.push_back(ir::attr_u32(node, "window"));
  const auto w = p.config.sliding_window;
  EXPECT_THAT(windows, ::testing::ElementsAre(w, w, w, w, w, 0));
  EXPECT_EQ(p.family->rope_tables(p.config, *p.weights).size(), 2u);
}

TEST_F(Families, SharedCachesHoldNoPages) {
  const auto p = load("gemma4_e2b-f16");
  std::set<std::string> caches;
  for (const auto& buffer : p.prefill.buffers())
    if (is_paged(buffer)) caches.insert(buffer.name);
  EXPECT_THAT(caches, ::testing::ElementsAre("state.kv_k[0]", "state.kv_k[1]", "state.kv_k[2]", "state.kv_v[0]",
                                             "state.kv_v[1]", "state.kv_v[2]"));
  EXPECT_EQ(count(p.prefill, ir::Op::FLASH_ATTN_BATCHED), 6u);
  auto config = p.config;
  config.is_sliding.clear();
  EXPECT_THAT(p.family->build(config, *p.weights, p.graph_options).error().message,
              HasSubstr("sliding_window_pattern"));
}

TEST_F(Families, FusedMatricesAreViews) {
  const auto p = load("phi3-f32");
  const auto& k = p.prefill.buffer(p.prefill.find("model.attn.k_weight[1]"));
  EXPECT_EQ(k.tensor, "blk.1.attn_qkv.weight");
  EXPECT_EQ(k.first_row, p.config.n_heads * p.config.head_dim);
  EXPECT_EQ(k.tensor_rows, 3 * p.config.n_heads * p.config.head_dim);
  // Views fuse like matrices of their own.
  EXPECT_EQ(count(p.prefill_low, ir::Op::RMS_NORM_FUSED_QKV), p.config.n_layers);
  EXPECT_EQ(count(p.prefill_low, ir::Op::RMS_NORM_FUSED_MLP_GATE_UP), p.config.n_layers);
}

TEST_F(Families, LongRopeHasTwoVariants) {
  const auto p = load("phi3_longrope-f16");
  const auto tables = p.family->rope_tables(p.config, *p.weights);
  ASSERT_EQ(tables.size(), 1u);
  ASSERT_EQ(tables[0].variants.size(), 2u);
  EXPECT_NE(tables[0].variants[0].inverse_frequencies, tables[0].variants[1].inverse_frequencies);
  EXPECT_EQ(p.family->rope_variant(p.config, *p.weights, p.config.rope_original_context), 0u);
  EXPECT_EQ(p.family->rope_variant(p.config, *p.weights, p.config.rope_original_context + 1), 1u);
  // Without the key: sqrt(1 + ln(longer) / ln(original)).
  auto config = p.config;
  config.rope_attn_factor = 0;
  EXPECT_NEAR(p.family->rope_tables(config, *p.weights)[0].variants[0].magnitude, p.config.rope_attn_factor, 1e-4);
}

// Numbers of Qwen2.5's published YaRN setting: head_dim 128, theta 1e6, factor 4, original context 32,768. The bounds
// of the ramp follow from the definition: pair i turns 32768 / (2 pi theta^(2i/128)) times.
TEST(Rope, Yarn) {
  ModelConfig c;
  c.rope_dim = 128;
  c.rope_theta = 1e6;
  c.rope_scaling_type = "yarn";
  c.rope_scaling_factor = 4;
  c.rope_original_context = 32768;
  const Weights none(gguf::GgufFile{});
  const auto plain = rope_angles(128, 1e6), scaled = scaled_rope_angles(c, none);
  const auto turns = [&](std::size_t i) { return 32768 / (2 * M_PI) * plain.inverse_frequencies[i]; };
  double last = 1;
  for (std::size_t i = 0; i < 64; ++i) {
    const double ratio = plain.inverse_frequencies[i] / scaled.inverse_frequencies[i];
    EXPECT_GE(ratio, turns(i) < 0.8 ? 4 - 1e-12 : 1) << i;
    EXPECT_LE(ratio, turns(i) > 34 ? 1 : 4 + 1e-12) << i;
    EXPECT_GE(ratio, last) << i;
    last = ratio;
  }
  EXPECT_DOUBLE_EQ(scaled.magnitude, 1 + 0.1 * std::log(4.0));
  c.rope_yarn_log_multiplier = 1;
  EXPECT_EQ(scaled_rope_angles(c, none).magnitude, 1);
  c.rope_yarn_log_multiplier = 0.5;
  EXPECT_DOUBLE_EQ(scaled_rope_angles(c, none).magnitude, (1 + 0.1 * std::log(4.0)) / (1 + 0.05 * std::log(4.0)));
  c.rope_scaling_type = "linear";
  EXPECT_DOUBLE_EQ(scaled_rope_angles(c, none).inverse_frequencies[5], plain.inverse_frequencies[5] / 4);
  EXPECT_EQ(scaled_rope_angles(c, none).magnitude, 1);
}

// Within the original context q and k read one table, so that RoPE and the write to the cache are fused; beyond it q
// has a table of its own, and they are not.
TEST(Mistral3, QueriesHaveATableOfTheirOwnBeyondTheOriginalContext) {
  for (const auto& [max_context, n_fused] : {std::pair(16u, 1u), {64u, 0u}}) {
    const auto p = load("tiny_mistral3-f16", max_context);
    EXPECT_EQ(p.config.rope_original_context, 16u);
    EXPECT_EQ(p.prefill.find("const.rope_q") == ir::kNoBuffer, n_fused == 1) << max_context;
    EXPECT_EQ(count(p.prefill_low, ir::Op::RMS_NORM_FUSED_ROPE_KV_WRITE), n_fused) << max_context;
    EXPECT_EQ(count(p.prefill_low, ir::Op::ROPE), 2 * (1 - n_fused)) << max_context;
  }
}

TEST(RecurrentLayers, TheStateOfAHeadIsBounded) {
  for (const char* model : {"tiny_granitehybrid-f16", "tiny_nemotron_h-f16", "tiny_qwen35-f16"}) {
    const auto p = load(model);
    const auto error = [&](std::uint32_t width, std::uint32_t n_rows) {
      auto config = p.config;
      config.ssm_inner_dim = config.ssm_v_heads * width;
      config.ssm_k_dim = n_rows;
      return p.family->build(config, *p.weights, p.graph_options).error().message;
    };
    EXPECT_THAT(error(2048, 513), HasSubstr("513 rows of 2048 values, 1050624 in all, at most 1048576 allowed"));
    EXPECT_THAT(error(2048, 512), HasSubstr("has shape"));  // allowed, but not the shape of this model's tensors
  }
}

// A file mtp-NAME.gguf has the metadata of its model, and the tensors of the prediction block alone.
TEST(MtpBlockAlone, IsRefusedByName) {
  gguf::GgufBuilder file;
  file.add_string("general.architecture", "qwen35").add_string("general.name", "mtp-tiny");
  for (const auto& [key, value] : {std::pair("block_count", 5),
                                   {"nextn_predict_layers", 1},
                                   {"context_length", 64},
                                   {"embedding_length", 32},
                                   {"feed_forward_length", 64},
                                   {"attention.head_count", 4},
                                   {"attention.head_count_kv", 2},
                                   {"attention.key_length", 8},
                                   {"attention.value_length", 8},
                                   {"full_attention_interval", 4},
                                   {"ssm.conv_kernel", 4},
                                   {"ssm.group_count", 2},
                                   {"ssm.time_step_rank", 4},
                                   {"ssm.state_size", 8},
                                   {"ssm.inner_size", 32}})
    file.add_u32(fmt::format("qwen35.{}", key), static_cast<std::uint32_t>(value));
  file.add_f32("qwen35.attention.layer_norm_rms_epsilon", 1e-6f);
  file.add_string("tokenizer.ggml.model", "gpt2");
  file.add_array("tokenizer.ggml.tokens", gguf::ValueType::kString, std::vector<std::string>{"a", "b"});
  const auto add = [&](const std::string& tensor, const std::vector<std::uint64_t>& dims) {
    file.add_tensor(tensor, 0, dims, 4 * dims[0] * (dims.size() > 1 ? dims[1] : 1));
  };
  add("token_embd.weight", {32, 2});
  add("output_norm.weight", {32});
  add("blk.4.attn_norm.weight", {32});
  add("blk.4.nextn.eh_proj.weight", {64, 32});
  const std::string path = model_folder() + "/mtp-tiny.gguf";
  gguf::write_file(path, file.build());
  const auto p = prepare(path, {});
  ASSERT_FALSE(p);
  EXPECT_THAT(p.error().message, HasSubstr("block 4 alone, for multi-token prediction, of 5 blocks"));
}

}  // namespace
}  // namespace zinc_rt::arch

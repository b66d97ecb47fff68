// ModelConfig from metadata: defaults, per-layer values, and one test a rule.
#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gguf_builder.h"

namespace zinc_rt {
namespace {

using gguf::GgufBuilder;
using gguf::tiny_model;
using gguf::ValueType;
using testing::ElementsAre;
using testing::HasSubstr;

Result<ModelConfig> config_of(GgufBuilder builder) {
  const auto parsed = gguf::parse(builder.build(), "f.gguf");
  if (!parsed) return std::unexpected(parsed.error());
  return read_config(parsed->metadata, parsed->tensors);
}

void expect_error(GgufBuilder builder, const std::vector<std::string>& parts) {
  const auto config = config_of(std::move(builder));
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("f.gguf: key \""));
  for (const std::string& part : parts) EXPECT_THAT(config.error().message, HasSubstr(part));
}

// The tiny model with one value said otherwise.
GgufBuilder with(std::string_view key, std::uint32_t value) {
  return tiny_model(key).add_u32(key, value);
}

TEST(ModelConfig, FillsInWhatIsAbsent) {
  const auto config = config_of(tiny_model());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->architecture, "tiny");
  EXPECT_EQ(config->n_layers, 2U);
  EXPECT_EQ(config->model_dim, 64U);
  EXPECT_EQ(config->n_heads, 4U);
  EXPECT_EQ(config->n_kv_heads, 2U);
  EXPECT_THAT(config->n_kv_heads_per_layer, ElementsAre(2, 2));
  EXPECT_EQ(config->ffn_dim, 96U);
  EXPECT_THAT(config->ffn_dim_per_layer, ElementsAre(96, 96));
  EXPECT_EQ(config->head_dim, 16U);
  EXPECT_EQ(config->v_head_dim, 16U);
  EXPECT_EQ(config->rope_dim, 16U);
  EXPECT_EQ(config->rope_theta, 10000);
  EXPECT_EQ(config->rope_scaling_type, "none");
  EXPECT_EQ(config->rope_scaling_factor, 1);
  EXPECT_EQ(config->rope_original_context, 128U);
  EXPECT_EQ(config->rope_attn_factor, 0);
  EXPECT_EQ(config->vocab_size, 5U);
  EXPECT_EQ(config->context_length, 128U);
  EXPECT_EQ(static_cast<float>(config->norm_eps), 1e-5f);
  EXPECT_EQ(config->sliding_window, 0U);
  EXPECT_EQ(config->n_experts, 0U);
  EXPECT_EQ(config->attention_scale, 0);
  EXPECT_EQ(config->logit_scale, 1);
  EXPECT_TRUE(config->tied_embeddings);
}

TEST(ModelConfig, ReadsWhatIsSaid) {
  GgufBuilder builder = tiny_model("tiny.attention.head_count_kv");
  builder.add_array<std::int32_t>("tiny.attention.head_count_kv", ValueType::kI32, {4, 1});
  builder.add_string("general.name", "Tiny").add_string("general.size_label", "1K").add_u32("general.file_type", 15);
  builder.add_u32("tiny.attention.key_length", 32).add_u32("tiny.attention.value_length", 8);
  builder.add_u32("tiny.attention.sliding_window", 24).add_u32("tiny.rope.dimension_count", 12);
  builder.add_f32("tiny.rope.freq_base", 1e6f).add_string("tiny.rope.scaling.type", "yarn");
  builder.add_f32("tiny.rope.scaling.factor", 4).add_u32("tiny.rope.scaling.original_context_length", 32);
  builder.add_f32("tiny.rope.scaling.attn_factor", 1.25f).add_f32("tiny.attention.scale", 0.25f);
  builder.add_f32("tiny.logit_scale", 8).add_f32("tiny.residual_scale", 0.5f).add_f32("tiny.embedding_scale", 12);
  builder.add_f32("tiny.final_logit_softcapping", 30).add_u32("tiny.expert_count", 8);
  builder.add_u32("tiny.expert_used_count", 2).add_u32("tiny.expert_feed_forward_length", 48);
  builder.add_tensor("token_embd.weight", 0, {64, 5}, 1280).add_tensor("output.weight", 0, {64, 5}, 1280);
  const auto config = config_of(builder);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->name, "Tiny");
  EXPECT_EQ(config->size_label, "1K");
  EXPECT_EQ(config->file_type, 15U);
  EXPECT_EQ(config->n_kv_heads, 4U);
  EXPECT_THAT(config->n_kv_heads_per_layer, ElementsAre(4, 1));
  EXPECT_EQ(config->head_dim, 32U);
  EXPECT_EQ(config->v_head_dim, 8U);
  EXPECT_EQ(config->sliding_window, 24U);
  EXPECT_EQ(config->rope_dim, 12U);
  EXPECT_EQ(config->rope_theta, 1e6);
  EXPECT_EQ(config->rope_scaling_type, "yarn");
  EXPECT_EQ(config->rope_scaling_factor, 4);
  EXPECT_EQ(config->rope_original_context, 32U);
  EXPECT_EQ(config->rope_attn_factor, 1.25);
  EXPECT_EQ(config->attention_scale, 0.25);
  EXPECT_EQ(config->logit_scale, 8);
  EXPECT_EQ(config->residual_scale, 0.5);
  EXPECT_EQ(config->embedding_scale, 12);
  EXPECT_EQ(config->final_logit_softcap, 30);
  EXPECT_EQ(config->n_experts, 8U);
  EXPECT_EQ(config->n_experts_used, 2U);
  EXPECT_EQ(config->expert_ffn_dim, 48U);
  EXPECT_FALSE(config->tied_embeddings);
}

TEST(ModelConfig, LayersThatDiffer) {
  GgufBuilder builder = tiny_model("tiny.block_count");
  builder.add_u32("tiny.block_count", 3).add_u32("tiny.nextn_predict_layers", 1);
  builder.add_array<std::uint8_t>("tiny.attention.recurrent_layers", ValueType::kBool, {1, 0, 0});
  builder.add_u32("tiny.attention.sliding_window_pattern", 2).add_u32("tiny.attention.key_length_swa", 8);
  builder.add_u32("tiny.rope.dimension_count_swa", 4).add_f32("tiny.rope.freq_base_swa", 5000);
  builder.add_u32("tiny.ssm.conv_kernel", 4).add_u32("tiny.ssm.state_size", 32).add_u32("tiny.ssm.group_count", 2);
  builder.add_u32("tiny.ssm.time_step_rank", 4).add_u32("tiny.ssm.inner_size", 128);
  builder.add_u32("tiny.attention.shared_kv_layers", 1).add_u32("tiny.embedding_length_per_layer_input", 16);
  const auto config = config_of(builder);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->n_layers, 2U);
  EXPECT_EQ(config->n_mtp_layers, 1U);
  EXPECT_THAT(config->n_kv_heads_per_layer, ElementsAre(2, 2));
  EXPECT_THAT(config->is_recurrent, ElementsAre(true, false));
  EXPECT_THAT(config->is_sliding, ElementsAre(true, false));
  EXPECT_EQ(config->sliding_head_dim, 8U);
  EXPECT_EQ(config->sliding_v_head_dim, 16U);
  EXPECT_EQ(config->sliding_rope_dim, 4U);
  EXPECT_EQ(config->sliding_rope_theta, 5000);
  EXPECT_EQ(config->ssm_conv_width, 4U);
  EXPECT_EQ(config->ssm_k_dim, 32U);
  EXPECT_EQ(config->ssm_k_heads, 2U);
  EXPECT_EQ(config->ssm_v_heads, 4U);
  EXPECT_EQ(config->ssm_inner_dim, 128U);
  EXPECT_EQ(config->n_shared_kv_layers, 1U);
  EXPECT_EQ(config->per_layer_embedding_dim, 16U);
}

TEST(ModelConfig, LayersWithoutAttentionMaySayZero) {
  GgufBuilder builder = tiny_model("tiny.attention.head_count_kv");
  builder.add_array<std::int32_t>("tiny.attention.head_count_kv", ValueType::kI32, {0, 2});
  const auto config = config_of(builder);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->n_kv_heads, 2U);
  EXPECT_THAT(config->n_kv_heads_per_layer, ElementsAre(0, 2));
}

TEST(ModelConfig, AFactorAloneMeansLinearScaling) {
  const auto config = config_of(tiny_model().add_f32("tiny.rope.scaling.factor", 2));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->rope_scaling_type, "linear");
}

TEST(ModelConfig, ExpertsMayStandAlone) {
  GgufBuilder builder = tiny_model("tiny.feed_forward_length");
  builder.add_u32("tiny.expert_count", 4).add_u32("tiny.expert_used_count", 2);
  expect_error(builder, {"tiny.expert_feed_forward_length"});
  const auto config = config_of(builder.add_u32("tiny.expert_feed_forward_length", 32));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->ffn_dim, 0U);
  EXPECT_THAT(config->ffn_dim_per_layer, ElementsAre(0, 0));
  const auto shared = config_of(tiny_model().add_u32("tiny.expert_count", 4).add_u32("tiny.expert_used_count", 4));
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->expert_ffn_dim, 96U);
}

TEST(ModelConfig, GroupsOfExpertsFitTheExperts) {
  const auto with_groups = [](std::uint32_t n_groups, std::uint32_t n_groups_used) {
    return tiny_model()
        .add_u32("tiny.expert_count", 8)
        .add_u32("tiny.expert_used_count", 3)
        .add_u32("tiny.expert_group_count", n_groups)
        .add_u32("tiny.expert_group_used_count", n_groups_used);
  };
  const auto grouped = config_of(with_groups(4, 2));
  ASSERT_TRUE(grouped) << grouped.error().message;
  EXPECT_EQ(grouped->n_expert_groups, 4U);
  EXPECT_EQ(grouped->n_expert_groups_used, 2U);
  const auto none = config_of(with_groups(0, 0));  // files without groups may say 0
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(none->n_expert_groups, 1U);
  EXPECT_EQ(none->n_expert_groups_used, 1U);
  expect_error(with_groups(3, 1), {"tiny.expert_group_count", "divisor of the 8 experts, 3 there"});
  expect_error(with_groups(4, 5), {"tiny.expert_group_used_count", "1 to 4, 5 there"});
  expect_error(with_groups(0, 2), {"tiny.expert_group_used_count", "1 to 1, 2 there"});
  expect_error(with_groups(4, 1), {"tiny.expert_used_count", "the 2 experts of 1 groups, 3 there"});
}

TEST(ModelConfig, VocabularySizeHasThreeSources) {
  const auto by_key = config_of(tiny_model("tokenizer.ggml.tokens").add_u32("tiny.vocab_size", 77));
  ASSERT_TRUE(by_key);
  EXPECT_EQ(by_key->vocab_size, 77U);
  const auto by_rows = config_of(tiny_model("tokenizer.ggml.tokens").add_tensor("token_embd.weight", 0, {64, 9}, 2304));
  ASSERT_TRUE(by_rows);
  EXPECT_EQ(by_rows->vocab_size, 9U);
  expect_error(tiny_model("tokenizer.ggml.tokens"), {"tokenizer.ggml.tokens", "0 there"});
  expect_error(tiny_model().add_tensor("token_embd.weight", 0, {64, 9}, 2304), {"says 5 tokens", "9 rows"});
}

TEST(ModelConfig, NamesAMissingKey) {
  for (const char* key :
       {"general.architecture", "tiny.block_count", "tiny.context_length", "tiny.embedding_length",
        "tiny.feed_forward_length", "tiny.attention.head_count", "tiny.attention.layer_norm_rms_epsilon"}) {
    const auto config = config_of(tiny_model(key));
    ASSERT_FALSE(config) << key;
    EXPECT_EQ(config.error().code, StatusCode::kNotFound) << key;
    EXPECT_THAT(config.error().message, HasSubstr(key));
  }
}

TEST(ModelConfig, RefusesValuesOutOfRange) {
  expect_error(with("tiny.block_count", 0), {"tiny.block_count", "1 to 1024", "0 there"});
  expect_error(with("tiny.block_count", 4000000000), {"1024", "4000000000 there"});
  expect_error(with("tiny.embedding_length", 1U << 31), {"tiny.embedding_length", "2147483648 there"});
  expect_error(with("tiny.attention.head_count", 0), {"tiny.attention.head_count", "0 there"});
  expect_error(with("tiny.attention.head_count", 3), {"tiny.attention.head_count", "3"});
  expect_error(with("tiny.attention.head_count_kv", 3), {"divisor of the 4 heads, 3 there"});
  expect_error(with("tiny.attention.head_count_kv", 0), {"tiny.attention.head_count_kv", "0 there"});
  expect_error(with("tiny.feed_forward_length", 0), {"tiny.feed_forward_length", "0 there"});
  expect_error(with("tiny.nextn_predict_layers", 2), {"tiny.nextn_predict_layers", "0 to 1, 2 there"});
  expect_error(with("tiny.attention.shared_kv_layers", 2), {"shared_kv_layers", "0 to 1, 2 there"});
  expect_error(with("tiny.rope.dimension_count_swa", 18), {"dimension_count_swa", "16, 18 there"});
  expect_error(with("tiny.attention.sliding_window_pattern", 0), {"sliding_window_pattern", "1 to 1024, 0 there"});
  expect_error(tiny_model().add_array<std::uint8_t>("tiny.attention.recurrent_layers", ValueType::kBool, {1}),
               {"recurrent_layers", "2 entries (one a layer), 1 there"});
  expect_error(with("tiny.context_length", 0), {"tiny.context_length", "0 there"});
  expect_error(with("tiny.rope.dimension_count", 15), {"even number up to the head's 16, 15 there"});
  expect_error(with("tiny.rope.dimension_count", 18), {"16, 18 there"});
  expect_error(with("tiny.attention.key_length", 0), {"tiny.attention.key_length", "0 there"});
  expect_error(tiny_model("tiny.block_count").add("tiny.block_count", ValueType::kI32, -2), {"1024, -2 there"});
  expect_error(with("tiny.expert_used_count", 1), {"tiny.expert_used_count", "0 to 0, 1 there"});
  expect_error(with("tiny.expert_count", 4), {"tiny.expert_used_count", "1 to 4, 0 there"});
  expect_error(tiny_model().add_f32("tiny.rope.freq_base", 0), {"tiny.rope.freq_base", "0 there"});
  expect_error(tiny_model().add_f32("tiny.rope.freq_base", NAN), {"tiny.rope.freq_base", "nan there"});
  expect_error(tiny_model().add_f32("tiny.attention.scale", INFINITY), {"tiny.attention.scale", "inf there"});
  expect_error(tiny_model("tiny.attention.layer_norm_rms_epsilon").add_f32("tiny.attention.layer_norm_rms_epsilon", -1),
               {"layer_norm_rms_epsilon", "-1 there"});
}

TEST(ModelConfig, RefusesWrongTypesAndLists) {
  expect_error(tiny_model("tiny.block_count").add_string("tiny.block_count", "2"), {"needs integer, string there"});
  expect_error(tiny_model().add_u32("tiny.rope.freq_base", 10000), {"needs float, u32 there"});
  expect_error(tiny_model("tiny.feed_forward_length")
                   .add_array<std::int32_t>("tiny.feed_forward_length", ValueType::kI32, {96, 96, 96}),
               {"2 entries (one a layer), 3 there"});
  expect_error(tiny_model("tiny.feed_forward_length")
                   .add_array<std::int32_t>("tiny.feed_forward_length", ValueType::kI32, {96, -1}),
               {"tiny.feed_forward_length", "-1 there"});
  expect_error(tiny_model().add_string("tiny.rope.scaling.type", "odd"), {"tiny.rope.scaling.type", "\"odd\" there"});
  expect_error(tiny_model().add_string("general.type", "adapter"), {"general.type", "\"adapter\" there"});
  expect_error(tiny_model("general.architecture").add_string("general.architecture", ""), {"1 to 64 bytes, 0 there"});
}

}  // namespace
}  // namespace zinc_rt

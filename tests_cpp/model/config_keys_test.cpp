// Keys of an architecture: other names, defaults of families, and those that are refused.
#include "model/config_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "gguf_builder.h"

namespace zinc_rt {
namespace {

using gguf::GgufBuilder;
using gguf::ValueType;
using testing::HasSubstr;

// What stands in a file beside the keys that each needs.
using More = std::function<void(GgufBuilder& file, const std::string& architecture)>;

struct Read {
  gguf::Metadata metadata;
  ModelConfig config;
};

Result<Read> read_keys(const std::string& a, const More& more, bool has_norm = true) {
  GgufBuilder file;
  file.add_string("general.architecture", a);
  file.add_u32(a + ".block_count", 4).add_u32(a + ".embedding_length", 64).add_u32(a + ".feed_forward_length", 96);
  file.add_u32(a + ".attention.head_count", 4);
  if (has_norm) file.add_f32(a + ".attention.layer_norm_rms_epsilon", 1e-5f);
  file.add_array<std::string>("tokenizer.ggml.tokens", ValueType::kString, {"a", "b"});
  more(file, a);
  const auto at = file.build();
  auto parsed = gguf::parse(at, "f.gguf");
  if (!parsed) return std::unexpected(parsed.error());
  auto config = read_config(parsed->metadata, parsed->tensors);
  if (!config) return std::unexpected(config.error());
  return Read{std::move(parsed->metadata), std::move(*config)};
}

More context(std::uint32_t tokens, const More& more = [](GgufBuilder&, const std::string&) {}) {
  return [=](GgufBuilder& file, const std::string& a) {
    file.add_u32(a + ".context_length", tokens);
    more(file, a);
  };
}

// Empty: nothing is refused.
std::string refusal(const std::string& architecture, const More& more) {
  const auto read = read_keys(architecture, context(128, more));
  if (!read) return read.error().message;
  const auto checked = check_keys(read->metadata, read->config);
  return checked ? "" : checked.error().message;
}

// As files have it: scales and the like are floats, also where the value is whole.
void add_number(GgufBuilder& file, const std::string& name, double value) {
  for (const char* word : {"scale", "softcap", "freq_base", "factor", "alpha", "clamp", "bias", "log_", "epsilon"})
    if (name.contains(word)) {
      file.add_f32(name, static_cast<float>(value));
      return;
    }
  file.add_u32(name, static_cast<std::uint32_t>(value));
}

struct Key {
  const char* architecture;
  const char* key;
  double value;
  bool is_fine;
};

TEST(ConfigKeys, WhatAFamilyDoesNotComputeWithIsRefusedByName) {
  const Key rows[] = {
      // Scales that one family has and its neighbours have not.
      {"granite", "residual_scale", 0.5, true},
      {"llama", "residual_scale", 0.5, false},
      {"llama", "residual_scale", 1, true},
      {"llama", "residual_scale", 0, true},
      {"llama", "embedding_scale", 12, true},
      {"qwen2", "embedding_scale", 12, false},
      {"granite", "logit_scale", 8, true},
      {"cohere2", "logit_scale", 0.25, true},
      {"qwen3", "logit_scale", 8, false},
      {"gemma4", "attention.scale", 0.5, false},
      {"gemma4", "attention.scale", 1, true},
      {"llama", "attention.scale", 0.5, true},
      // Windows and what belongs to them.
      {"llama", "attention.sliding_window", 24, true},
      {"nomic-bert", "attention.sliding_window", 24, false},
      {"nomic-bert", "attention.sliding_window", 0, true},
      {"llama", "attention.sliding_window_pattern", 6, true},  // there is no window
      {"qwen2", "use_sliding_window", 0, true},
      {"qwen2", "max_window_layers", 21, true},
      {"llama", "attention.shared_kv_layers", 2, false},
      {"llama", "attention.key_length_swa", 16, true},  // as all heads have it
      {"llama", "attention.key_length_swa", 8, false},
      {"gemma4", "attention.key_length_swa", 8, true},
      {"gemma3", "rope.dimension_count_swa", 8, false},
      // RoPE.
      {"llama", "rope.freq_base", 5e5, true},
      {"bert", "rope.freq_base", 1e4, false},
      {"llama", "rope.scaling.yarn_log_multiplier", 0.1, false},
      {"llama", "rope.scaling.yarn_log_multiplier", 0, true},
      {"llama", "rope.scaling.alpha", 1000, false},
      {"llama", "rope.scaling.yarn_attn_factor", 1, true},
      {"llama", "rope.scaling.yarn_attn_factor", 1.5, false},
      {"olmo2", "rope.scaling.yarn_attn_factor", 1, true},
      {"olmo2", "rope.scaling.yarn_attn_factor", 1.2, false},  // there is no YaRN
      {"llama", "rope.scaling.yarn_ext_factor", -1, true},
      {"llama", "rope.scaling.yarn_ext_factor", 1, false},
      {"llama", "rope.scaling.finetuned", 0, true},
      {"granite", "rope.scaling.finetuned", 0, false},
      {"granite", "rope.scaling.finetuned", 1, true},
      {"qwen2", "rope.mrope_interleaved", 1, true},
      {"qwen2", "rope.dimension_sections", 1, true},
      {"glm4", "rope.dimension_sections", 1, false},
      {"llama", "rope.scaling.low_freq_factor", 1, false},
      {"llama", "rope.no_such_key", 0, false},
      // Attention.
      {"llama", "attention.clamp_kqv", 8, false},
      {"llama", "attention.clamp_kqv", 0, true},
      {"llama", "attention.max_alibi_bias", 8, false},
      {"llama", "attention.temperature_scale", 0.1, false},
      {"mistral3", "attention.temperature_scale", 0.1, true},
      {"mistral3", "attention.temperature_length", 8192, false},  // not the original context
      {"mistral3", "rope.scaling.yarn_log_multiplier", 1, true},
      {"llama", "attention.kv_lora_rank", 512, false},
      {"llama", "attention.no_such_key", 1, false},
      // State.
      {"qwen35", "ssm.v_head_reordered", 1, true},
      {"qwen35", "ssm.v_head_reordered", 0, false},
      {"qwen3next", "ssm.v_head_reordered", 1, false},
      {"llama", "ssm.conv_kernel", 4, false},
      {"granitehybrid", "ssm.conv_kernel", 4, true},
      {"llama", "shortconv.l_cache", 3, false},
      {"lfm2", "shortconv.l_cache", 3, true},
      {"llama", "full_attention_interval", 4, false},
      // Experts: without any, what is said of them is of no account.
      {"llama", "expert_count", 0, true},
      {"llama", "expert_count", 8, false},
      {"llama", "expert_gating_func", 2, true},
      {"llama", "leading_dense_block_count", 1, true},
      // Others.
      {"llama", "final_logit_softcapping", 30, true},
      {"bert", "final_logit_softcapping", 30, true},
      {"llama", "router_logit_softcapping", 30, true},
      {"llama", "swiglu_clamp_exp", 7, false},
      {"llama", "some_new_scale", 2, false},
      {"llama", "hidden_activation", 1, false},
      {"llama", "use_parallel_residual", 1, false},
      {"llama", "use_parallel_residual", 0, true},
      {"bert", "normalize_embeddings", 1, true},
      {"llama", "image_token_id", 5, true},
      {"llama", "vision.attention.layer_norm_epsilon", 1e-6, true},
      {"llama", "mm.tokens_per_image", 256, true},
  };
  for (const Key& row : rows) {
    const std::string name = fmt::format("{}.{}", row.architecture, row.key);
    const auto message = refusal(row.architecture, [&](GgufBuilder& file, const std::string&) {
      add_number(file, name, row.value);
      if (std::string_view(row.key) == "expert_count" && row.value > 0)
        file.add_u32(std::string(row.architecture) + ".expert_used_count", 2);
    });
    if (row.is_fine)
      EXPECT_EQ(message, "") << name << " " << row.value;
    else
      EXPECT_THAT(message, HasSubstr("f.gguf: key \"" + name + "\"")) << row.value;
  }
}

TEST(ConfigKeys, RecurrentLayersAreListedOrAllExceptEveryNth) {
  const auto recurrent = [](const char* architecture, const More& more) {
    const auto read = read_keys(architecture, context(128, more));
    EXPECT_TRUE(read) << read.error().message;
    return read ? read->config.is_recurrent : std::vector<bool>{};
  };
  const More with_interval = [](GgufBuilder& file, const std::string& a) {
    file.add_u32(a + ".full_attention_interval", 2);
  };
  const More with_both = [&](GgufBuilder& file, const std::string& a) {
    with_interval(file, a);
    file.add_array<std::uint8_t>(a + ".attention.recurrent_layers", ValueType::kBool, {0, 1, 1, 0});
  };
  const More with_heads = [](GgufBuilder& file, const std::string& a) {
    file.add_array<std::int32_t>(a + ".attention.head_count_kv", ValueType::kI32, {0, 4, 0, 4});
  };
  using testing::ElementsAre;
  EXPECT_THAT(recurrent("qwen35", with_interval), ElementsAre(true, false, true, false));
  EXPECT_THAT(recurrent("qwen35", with_both), ElementsAre(false, true, true, false));
  EXPECT_THAT(recurrent("qwen35", with_heads), ElementsAre(true, true, true, true));
  EXPECT_THAT(recurrent("lfm2", with_heads), ElementsAre(true, false, true, false));
  EXPECT_THAT(recurrent("lfm2", with_interval), ElementsAre(false, false, false, false));
  EXPECT_THAT(recurrent("llama", with_interval), ElementsAre(false, false, false, false));
  // Each layer of the file has a feed-forward length.
  EXPECT_THAT(recurrent("nemotron_h", with_heads), ElementsAre(false, false, false, false));
}

TEST(ConfigKeys, OfExpertsThatAreThereEachKeyCounts) {
  const Key rows[] = {
      {"qwen3moe", "expert_weights_norm", 1, true},     {"qwen3moe", "expert_weights_norm", 0, true},
      {"qwen3moe", "norm_top_k_prob", 0, false},        {"qwen3moe", "expert_gating_func", 1, true},
      {"qwen3moe", "expert_gating_func", 2, true},      {"qwen3moe", "expert_group_count", 4, true},
      {"qwen3moe", "expert_gating_func", 4, false},     {"qwen3moe", "expert_weights_norm", 2, false},
      {"qwen3moe", "expert_weights_scale", 2, true},    {"qwen3moe", "leading_dense_block_count", 1, false},
      {"gemma4", "router_logit_softcapping", 30, false}};
  for (const Key& row : rows) {
    const std::string name = fmt::format("{}.{}", row.architecture, row.key);
    const auto message = refusal(row.architecture, [&](GgufBuilder& file, const std::string& a) {
      file.add_u32(a + ".expert_count", 8).add_u32(a + ".expert_used_count", 2);
      add_number(file, name, row.value);
    });
    EXPECT_EQ(message.empty(), row.is_fine) << name << " " << row.value << ": " << message;
  }
}

TEST(ConfigKeys, WindowsWithAPatternNeedAFamilyThatHasThem) {
  const auto with_window = [](const char* key, double value) {
    return [=](GgufBuilder& file, const std::string& a) {
      file.add_u32(a + ".attention.sliding_window", 24).add_f32(a + ".rope.freq_base", 1e6f);
      add_number(file, a + "." + key, value);
    };
  };
  EXPECT_EQ(refusal("gemma3", with_window("attention.sliding_window_pattern", 2)), "");
  EXPECT_THAT(refusal("llama", with_window("attention.sliding_window_pattern", 2)),
              HasSubstr("sliding_window_pattern"));
  EXPECT_EQ(refusal("qwen2", with_window("use_sliding_window", 1)), "");
  EXPECT_THAT(refusal("qwen2", with_window("use_sliding_window", 0)), HasSubstr("use_sliding_window"));
  EXPECT_THAT(refusal("qwen2", with_window("max_window_layers", 21)), HasSubstr("max_window_layers"));
  EXPECT_EQ(refusal("gemma3", with_window("rope.freq_base_swa", 1e4)), "");
  EXPECT_THAT(refusal("llama", with_window("rope.freq_base_swa", 1e4)), HasSubstr("freq_base_swa"));
  EXPECT_EQ(refusal("llama", with_window("rope.freq_base_swa", 1e6)), "");
}

TEST(ConfigKeys, OtherNamesAreRead) {
  const auto read =
      read_keys("gemma3", context(32768, [](GgufBuilder& file, const std::string& a) {
                  file.add_f32(a + ".rope.global.freq_base", 2e6f);
                  file.add_f32(a + ".rope.local.freq_base", 2e4f);
                  file.add_string(a + ".rope.scaling.type", "yarn").add_f32(a + ".rope.scale_linear", 4);
                  file.add_f32(a + ".rope.scaling.beta_fast", 64).add_f32(a + ".rope.scaling.beta_slow", 2);
                  file.add_f32(a + ".rope.scaling.extrapolation_factor", 1);
                  file.add_u32(a + ".attention.head_dim", 32);
                }));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->config.rope_theta, 2e6);
  EXPECT_EQ(read->config.sliding_rope_theta, 2e4);
  EXPECT_EQ(read->config.rope_scaling_factor, 4);
  EXPECT_EQ(read->config.rope_yarn_beta_fast, 64);
  EXPECT_EQ(read->config.rope_yarn_beta_slow, 2);
  EXPECT_EQ(read->config.head_dim, 32u);
  EXPECT_TRUE(check_keys(read->metadata, read->config));
}

TEST(ConfigKeys, TwoNamesMustSayTheSame) {
  const auto both = [](float other) {
    return [=](GgufBuilder& file, const std::string& a) {
      file.add_f32(a + ".rope.freq_base", 1e6f).add_f32(a + ".rope.global.freq_base", other);
    };
  };
  EXPECT_EQ(refusal("gemma3", both(1e6f)), "");
  const auto message = refusal("gemma3", both(1e4f));
  for (const char* part : {"rope.global.freq_base\" is 10000", "rope.freq_base\", which means the same, is 1000000"})
    EXPECT_THAT(message, HasSubstr(part));
}

// Files of Gemma 3 without keys of RoPE and norms have those of the published models.
TEST(ConfigKeys, FamiliesHaveDefaultsOfTheirOwn) {
  const auto small = read_keys("gemma3", context(32768), false), large = read_keys("gemma3", context(131072), false);
  ASSERT_TRUE(small && large) << small.error().message;
  for (const auto* read : {&*small, &*large}) {
    EXPECT_EQ(read->config.rope_theta, 1e6);
    EXPECT_EQ(read->config.sliding_rope_theta, 1e4);
    EXPECT_EQ(read->config.norm_eps, 1e-6);
  }
  EXPECT_EQ(small->config.rope_scaling_type, "none");
  EXPECT_EQ(large->config.rope_scaling_type, "linear");
  EXPECT_EQ(large->config.rope_scaling_factor, 8);
  // A file that gives its base says all there is.
  const auto said = read_keys("gemma3", context(131072, [](GgufBuilder& file, const std::string& a) {
                                file.add_f32(a + ".rope.freq_base", 1e6f);
                              }));
  ASSERT_TRUE(said);
  EXPECT_EQ(said->config.rope_scaling_factor, 1);
  const auto gemma4 = read_keys("gemma4", context(4096)), llama = read_keys("llama", context(4096));
  ASSERT_TRUE(gemma4 && llama);
  EXPECT_EQ(gemma4->config.rope_theta, 1e6);
  EXPECT_EQ(llama->config.rope_theta, 1e4);
  EXPECT_FALSE(read_keys("llama", context(4096), false));
}

TEST(ConfigKeys, AScaleOfZeroIsNone) {
  const auto read = read_keys(
      "granite", context(128, [](GgufBuilder& file, const std::string& a) {
        for (const char* key : {".rope.scaling.factor", ".embedding_scale", ".residual_scale", ".expert_weights_scale"})
          file.add_f32(a + key, 0);
      }));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->config.rope_scaling_factor, 1);
  EXPECT_EQ(read->config.embedding_scale, 1);
  EXPECT_EQ(read->config.residual_scale, 1);
  EXPECT_EQ(read->config.expert_weights_scale, 1);
}

// Tokens for pictures that have no row, which files of Gemma 3 may name.
TEST(ConfigKeys, TokensWithoutARowAreLeftOut) {
  const auto rows = [](std::uint64_t n) {
    return context(
        128, [n](GgufBuilder& file, const std::string&) { file.add_tensor("token_embd.weight", 0, {64, n}, 256 * n); });
  };
  const auto one = read_keys("gemma3", rows(1));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->config.vocab_size, 1u);
  EXPECT_FALSE(read_keys("gemma3", rows(3)));
  EXPECT_FALSE(read_keys("llama", rows(1)));
  EXPECT_TRUE(is_of_other_part("v.blk.0.attn_q.weight") && is_of_other_part("mm.mm_input_projection.weight"));
  EXPECT_FALSE(is_of_other_part("blk.0.attn_v.weight") || is_of_other_part("output.weight"));
}

}  // namespace
}  // namespace zinc_rt

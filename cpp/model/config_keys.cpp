#include "model/config_keys.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"

namespace zinc_rt {
namespace {

using gguf::quoted;
using gguf::Value;

// Maps the key name that this runtime uses to another name that some program writes. The comment of a row names the
// program.
struct OtherName {
  std::string_view key, other;
};
constexpr OtherName kOtherNames[] = {
    {".rope.freq_base", ".rope.global.freq_base"},                // written by Ollama for Gemma 3
    {".rope.freq_base_swa", ".rope.local.freq_base"},             // written by Ollama for Gemma 3
    {".rope.scaling.yarn_beta_fast", ".rope.scaling.beta_fast"},  // written by Ollama for Gemma 3
    {".rope.scaling.yarn_beta_slow", ".rope.scaling.beta_slow"},  // written by Ollama for Gemma 3
    {".rope.scaling.factor", ".rope.scale_linear"},               // written by converters of 2023
    {".attention.key_length", ".attention.head_dim"},             // written by Ollama for Llama
};

double scalar_of(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value.data)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value.data)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<double>(&value.data)) return *number;
  if (const auto* flag = std::get_if<bool>(&value.data)) return *flag ? 1 : 0;
  return std::nan("");  // NaN compares unequal to every allowed value
}

// Tells whether this value of a key changes nothing in a family that does not compute with the key. A file with any
// other value is refused.
using Harmless = bool (*)(const ModelConfig& config, const Value& value);

template <auto... kValues>
bool is_one_of(const ModelConfig&, const Value& value) {
  return ((scalar_of(value) == kValues) || ...);
}
bool always(const ModelConfig&, const Value&) {
  return true;
}
bool never(const ModelConfig&, const Value&) {
  return false;
}
bool without_window(const ModelConfig& c, const Value&) {
  return c.sliding_window == 0 || c.sliding_window >= c.context_length;
}
bool has_window_or_none(const ModelConfig& c, const Value& value) {
  return without_window(c, value) || is_one_of<1>(c, value);
}
bool all_are_sliding(const ModelConfig& c, const Value& value) {
  return without_window(c, value) || std::ranges::all_of(c.is_sliding, [](bool one) { return one; });
}
bool none_is_recurrent(const ModelConfig& c, const Value&) {
  return std::ranges::none_of(c.is_recurrent, [](bool one) { return one; });
}
template <auto kField>
bool equals(const ModelConfig& c, const Value& value) {
  return scalar_of(value) == static_cast<double>(c.*kField);
}
bool is_the_base(const ModelConfig& c, const Value& value) {
  return without_window(c, value) || scalar_of(value) == c.rope_theta;
}
template <auto... kValues>
bool without_experts_or(const ModelConfig& c, const Value& value) {
  return c.n_experts == 0 || is_one_of<kValues...>(c, value);
}
// Returns whether `value` is the usual value of the key that scales YaRN's attention factor. Other kinds of RoPE
// scaling ignore the key. -1 means that the file does not set it.
bool is_usual_mix(const ModelConfig& c, const Value& value) {
  return c.rope_scaling_type == "yarn" ? is_one_of<1, -1>(c, value) : is_one_of<0, -1>(c, value);
}
// The key multiplies YaRN's attention factor, except in OLMo 3's files, where it states the factor itself.
bool is_known_factor(const ModelConfig& c, const Value& value) {
  if (c.architecture != "olmo2" || c.rope_scaling_type != "yarn") return is_one_of<1, -1>(c, value);
  return std::abs(scalar_of(value) - (1 + 0.1 * std::log(c.rope_scaling_factor))) < 1e-4;
}
bool is_no_switch(const ModelConfig& c, const Value& value) {
  return c.architecture != "granite" || is_one_of<1>(c, value);  // Granite runs without RoPE if this value is not 1
}
bool is_original_context(const ModelConfig& c, const Value& value) {
  return is_one_of<0>(c, value) || (c.temperature_scale > 0 && scalar_of(value) == c.rope_original_context);
}
// GLM-4V's converter moves the rows of q and k for RoPE in sections, so that pairs are no longer (2i, 2i + 1).
bool keeps_pairs(const ModelConfig& c, const Value&) {
  return c.architecture != "glm4";
}
bool is_reordered(const ModelConfig& c, const Value& value) {
  return scalar_of(value) == (c.architecture == "qwen3next" ? 0 : 1);
}

// Sets of architectures. A row of kKeys refers to the set of the architectures that compute with the row's key, or to
// the set of those that do not.
using Set = std::span<const std::string_view>;
constexpr std::string_view kEncoders[] = {"bert", "nomic-bert"};
constexpr std::string_view kHybrids[] = {"qwen35", "qwen35moe", "qwen3next"};
// Those whose recurrent layers the keys .ssm. describe.
constexpr std::string_view kStateSpaces[] = {"qwen35",        "qwen35moe",  "qwen3next",
                                             "granitehybrid", "nemotron_h", "nemotron_h_moe"};
constexpr std::string_view kShortConvolutions[] = {"lfm2", "lfm2moe"};
constexpr std::string_view kExperts[] = {"qwen3",         "qwen3moe",      "qwen35",        "qwen35moe", "qwen3next",
                                         "gemma4",        "gpt-oss",       "glm4moe",       "ernie4_5",  "ernie4_5-moe",
                                         "hunyuan-dense", "hunyuan-moe",   "minimax-m2",    "deepseek2", "mistral4",
                                         "lfm2moe",       "granitehybrid", "nemotron_h_moe"};
constexpr std::string_view kSharedExperts[] = {"qwen35",        "qwen35moe",     "qwen3next", "glm4moe",
                                               "ernie4_5-moe",  "hunyuan-moe",   "deepseek2", "mistral4",
                                               "granitehybrid", "nemotron_h_moe"};
constexpr std::string_view kLatentExperts[] = {"nemotron_h_moe"};
// The layers without experts have other tensors, by which they are told apart.
constexpr std::string_view kDenseLayers[] = {"glm4moe", "ernie4_5-moe", "deepseek2", "mistral4", "lfm2moe"};
constexpr std::string_view kLatent[] = {"deepseek2", "mistral4"};
constexpr std::string_view kLogMultiplier[] = {"mistral3", "deepseek2", "mistral4"};
constexpr std::string_view kTemperature[] = {"mistral3", "mistral4"};
constexpr std::string_view kWindows[] = {"gemma3",  "gemma4",  "gemma4-assistant", "olmo2",
                                         "exaone4", "cohere2", "muse-glimmer"};
constexpr std::string_view kWindowBases[] = {"gemma3", "gemma4", "gemma4-assistant"};
constexpr std::string_view kGemma4[] = {"gemma4", "gemma4-assistant"};
constexpr std::string_view kCacheReaders[] = {"gemma4-assistant"};
constexpr std::string_view kBert[] = {"bert"};
constexpr std::string_view kFeatureReaders[] = {"eagle3"};
constexpr std::string_view kGranite[] = {"granite", "granitehybrid"};
constexpr std::string_view kRopeSwitch[] = {"granitehybrid"};
constexpr std::string_view kScaledLogits[] = {"granite", "granitehybrid", "cohere2", "muse-glimmer"};
constexpr std::string_view kScaledEmbeddings[] = {"llama", "granite", "granitehybrid"};
constexpr Set kNone{};

struct KeyRow {
  std::string_view key;
  bool by_all_others;  // true: every family outside `set` computes with the key; false: only the families in `set` do
  Set set;
  Harmless harmless;
};
constexpr KeyRow by_all(std::string_view key) {
  return {key, true, kNone, always};
}
constexpr KeyRow by_all_but(Set set, std::string_view key, Harmless harmless) {
  return {key, true, set, harmless};
}
constexpr KeyRow by(Set set, std::string_view key, Harmless harmless) {
  return {key, false, set, harmless};
}
constexpr KeyRow by_none(std::string_view key, Harmless harmless) {
  return {key, false, kNone, harmless};
}

// clang-format off
constexpr KeyRow kKeys[] = {
    by_all(".block_count"),
    by_all(".nextn_predict_layers"),
    by_all(".context_length"),
    by_all(".embedding_length"),
    by_all(".vocab_size"),
    by_all(".feed_forward_length"),
    by_all(".pooling_type"),
    by_all(".attention.head_count"),
    by_all(".attention.head_count_kv"),
    by_all(".attention.key_length"),
    by_all(".attention.value_length"),
    by_all(".attention.layer_norm_rms_epsilon"),
    by_all(".attention.layer_norm_epsilon"),
    by_all(".attention.causal"),
    by_all(".attn_logit_softcapping"),
    by_all(".final_logit_softcapping"),  // encoders compute no logits, so the key cannot change their results
    by_all_but(kGemma4, ".attention.scale", is_one_of<0, 1>),
    by_all_but(kEncoders, ".attention.sliding_window", without_window),
    by_none(".use_sliding_window", has_window_or_none),
    by_none(".max_window_layers", without_window),

    by_all_but(kBert, ".rope.dimension_count", never),
    by_all_but(kBert, ".rope.freq_base", never),
    by_all_but(kBert, ".rope.scaling.type", never),
    by_all_but(kBert, ".rope.scaling.factor", never),
    by_all_but(kBert, ".rope.scaling.original_context_length", never),
    by_all_but(kBert, ".rope.scaling.attn_factor", never),
    by_all_but(kBert, ".rope.scaling.yarn_beta_fast", never),
    by_all_but(kBert, ".rope.scaling.yarn_beta_slow", never),
    by(kRopeSwitch, ".rope.scaling.finetuned", is_no_switch),
    by_none(".rope.scaling.yarn_ext_factor", is_usual_mix),
    by_none(".rope.scaling.extrapolation_factor", is_usual_mix),
    by_none(".rope.scaling.yarn_attn_factor", is_known_factor),
    by(kLogMultiplier, ".rope.scaling.yarn_log_multiplier", is_one_of<0>),
    by_none(".rope.scaling.alpha", is_one_of<0, 1>),
    // The following keys say how positions of image tokens are split into rows and columns. A text token has the same
    // position in all sections, so the keys change nothing.
    by_none(".rope.dimension_sections", keeps_pairs),
    by_none(".rope.mrope_section", keeps_pairs),
    by_none(".rope.mrope_interleaved", always),
    by_none(".mrope_sections", always),

    by(kWindows, ".attention.sliding_window_pattern", all_are_sliding),
    by(kWindowBases, ".rope.freq_base_swa", is_the_base),
    by(kGemma4, ".rope.dimension_count_swa", equals<&ModelConfig::rope_dim>),
    by(kGemma4, ".attention.key_length_swa", equals<&ModelConfig::head_dim>),
    by(kGemma4, ".attention.value_length_swa", equals<&ModelConfig::v_head_dim>),
    by(kGemma4, ".attention.shared_kv_layers", is_one_of<0>),
    by(kGemma4, ".embedding_length_per_layer_input", is_one_of<0>),

    by(kHybrids, ".attention.recurrent_layers", none_is_recurrent),
    by(kHybrids, ".full_attention_interval", is_one_of<0, 1>),
    by(kStateSpaces, ".ssm.conv_kernel", is_one_of<0>),
    by(kStateSpaces, ".ssm.group_count", is_one_of<0>),
    by(kStateSpaces, ".ssm.time_step_rank", is_one_of<0>),
    by(kStateSpaces, ".ssm.state_size", is_one_of<0>),
    by(kStateSpaces, ".ssm.inner_size", is_one_of<0>),
    by_none(".ssm.v_head_reordered", is_reordered),
    by(kShortConvolutions, ".shortconv.l_cache", is_one_of<0>),

    by(kScaledEmbeddings, ".embedding_scale", is_one_of<0, 1>),
    by(kGranite, ".residual_scale", is_one_of<0, 1>),
    by(kScaledLogits, ".logit_scale", is_one_of<0, 1>),

    by(kExperts, ".expert_count", is_one_of<0>),
    by(kExperts, ".expert_used_count", without_experts_or<>),
    by(kExperts, ".expert_feed_forward_length", without_experts_or<>),
    by(kSharedExperts, ".expert_shared_feed_forward_length", without_experts_or<0>),
    by(kExperts, ".expert_weights_scale", without_experts_or<0, 1>),
    by(kExperts, ".expert_weights_norm", without_experts_or<>),
    by_none(".norm_top_k_prob", without_experts_or<1>),
    by(kExperts, ".expert_gating_func", without_experts_or<0>),
    by(kExperts, ".expert_group_count", without_experts_or<0, 1>),
    by(kExperts, ".expert_group_used_count", without_experts_or<0, 1>),
    by_none(".expert_group_scale", without_experts_or<0, 1>),
    by(kDenseLayers, ".leading_dense_block_count", without_experts_or<0>),
    by_none(".moe_every_n_layers", without_experts_or<0, 1>),
    by(kDenseLayers, ".interleave_moe_layer_step", without_experts_or<0, 1>),
    by(kLatentExperts, ".moe_latent_size", without_experts_or<0>),
    by_none(".router_logit_softcapping", without_experts_or<0>),

    by(kCacheReaders, ".embedding_length_out", equals<&ModelConfig::model_dim>),
    by(kFeatureReaders, ".target_layers", never),
    by(kFeatureReaders, ".extract_layers", never),
    by(kFeatureReaders, ".target_hidden_size", never),
    by(kFeatureReaders, ".norm_before_residual", is_one_of<0>),
    by(kFeatureReaders, ".norm_before_fc", is_one_of<0>),
    by(kFeatureReaders, ".norm_output", is_one_of<0>),

    by_none(".attention.max_alibi_bias", is_one_of<0>),
    by_none(".attention.clamp_kqv", is_one_of<0>),
    by(kLatent, ".attention.q_lora_rank", is_one_of<0>),
    by(kLatent, ".attention.kv_lora_rank", is_one_of<0>),
    by(kLatent, ".attention.key_length_mla", is_one_of<0>),
    by(kLatent, ".attention.value_length_mla", is_one_of<0>),
    by_none(".attention.temperature_length", is_original_context),
    by(kTemperature, ".attention.temperature_scale", is_one_of<0>),
    by_none(".attention.output_scale", is_one_of<0, 1>),
    by_none(".attention.value_scale", is_one_of<0, 1>),
    by_none(".attention.relative_buckets_count", is_one_of<0>),
    by_none(".use_parallel_residual", is_one_of<0>),
    by_none(".rescale_every_n_layers", is_one_of<0>),
    by_none(".swin_norm", is_one_of<0>),
    by_none(".normalize_embeddings", always),  // the API always normalizes embeddings
};
// clang-format on

// A key that contains one of these texts belongs to a part of the file other than the language model. Such parts are
// not run.
constexpr std::string_view kOtherParts[] = {".vision.", ".audio.", ".mm."};
// A file is refused if it has a key that is not in kKeys and contains one of the following texts, because such a key
// may change the results.
constexpr std::string_view kGroups[] = {".rope.", ".attention.", ".ssm."};
constexpr std::string_view kWords[] = {"scale", "softcap", "norm", "window", "clamp", "residual", "activation"};

bool could_matter(std::string_view key) {
  const auto begins = [&](std::string_view with) { return key.starts_with(with); };
  if (std::ranges::any_of(kOtherParts, begins)) return false;
  return std::ranges::any_of(kGroups, begins) ||
         std::ranges::any_of(kWords, [&](std::string_view word) { return key.contains(word); });
}

bool computes_with(const KeyRow& row, std::string_view architecture) {
  return (std::ranges::find(row.set, architecture) == row.set.end()) == row.by_all_others;
}

std::string shown(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value.data)) return quoted(*text);
  return value.is_array ? "an array" : fmt::format("{}", scalar_of(value));
}

Status check_key(const gguf::Metadata& metadata, const ModelConfig& c, const std::string& name, const Value& value) {
  std::string_view key = std::string_view(name).substr(c.architecture.size());
  const auto place = [&] { return metadata.place().empty() ? std::string() : metadata.place() + ": "; };
  if (const auto other = std::ranges::find(kOtherNames, key, &OtherName::other); other != std::end(kOtherNames)) {
    const Value* known = metadata.find(c.architecture + std::string(other->key));
    if (known != nullptr && scalar_of(*known) != scalar_of(value))
      return fail(StatusCode::kCorrupt, "[config] {}key {} is {}, but key {}, which means the same, is {}", place(),
                  quoted(name), shown(value), quoted(c.architecture + std::string(other->key)), shown(*known));
    key = other->key;
  }
  const auto row = std::ranges::find(kKeys, key, &KeyRow::key);
  if (row == std::end(kKeys)) {
    if (!could_matter(key)) return {};
    return fail(StatusCode::kUnavailable,
                "[config] {}key {} ({}) is not known, and by its name it may change what the model computes", place(),
                quoted(name), shown(value));
  }
  if (computes_with(*row, c.architecture) || row->harmless(c, value)) return {};
  return fail(StatusCode::kUnavailable, "[config] {}key {} is {}, which family {} does not compute with here", place(),
              quoted(name), shown(value), c.architecture);
}

}  // namespace

std::string name_in_file(const gguf::Metadata& metadata, std::string_view architecture, std::string_view key) {
  std::string name = std::string(architecture) + std::string(key);
  if (metadata.contains(name)) return name;
  for (const OtherName& row : kOtherNames)
    if (row.key == key)
      if (auto other = std::string(architecture) + std::string(row.other); metadata.contains(other)) return other;
  return name;
}

std::optional<double> family_default(const ModelConfig& c, const gguf::Metadata& metadata, std::string_view key) {
  // Files that Ollama writes omit keys whose value is the same for all models of the family. Gemma 3 models with a long
  // context scale positions by 8.
  if (c.architecture == "gemma3") {
    constexpr std::uint32_t kScaledFrom = 131072;
    if (key == ".rope.freq_base") return 1e6;
    if (key == ".attention.layer_norm_rms_epsilon") return 1e-6;
    if (key == ".rope.scaling.factor" && c.context_length >= kScaledFrom &&
        !metadata.contains("gemma3.rope.freq_base") && !metadata.contains("gemma3.rope.scaling.type"))
      return 8;
  }
  if (c.architecture.starts_with("gemma4") && key == ".rope.freq_base") return 1e6;
  return std::nullopt;
}

bool is_of_other_part(std::string_view tensor) {
  return tensor.starts_with("v.") || tensor.starts_with("a.") || tensor.starts_with("mm.");
}

Status check_keys(const gguf::Metadata& metadata, const ModelConfig& config) {
  const std::string prefix = config.architecture + ".";
  for (const auto& [name, value] : metadata.entries())
    if (name.starts_with(prefix)) ZRT_CHECK_OK(check_key(metadata, config, name, value));
  return {};
}

}  // namespace zinc_rt

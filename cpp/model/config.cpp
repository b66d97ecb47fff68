// Fills a ModelConfig from tables. Each row of a table names a field, its metadata key, the smallest and largest
// allowed value, and the default. After the tables, the functions derive_* compute the fields that depend on other
// fields.
#include "model/config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/pooling.h"
#include "model/config_keys.h"

namespace zinc_rt {
namespace {

using gguf::quoted;

// Limits of the config's numbers. They are far above every known model, yet so small that the product of any two fits
// in 63 bits.
constexpr std::uint32_t kMaxLayers = 1024;
constexpr std::uint32_t kMaxDim = 1U << 22;
constexpr std::uint32_t kMaxHeads = 1U << 14;
constexpr std::uint32_t kMaxHeadDim = 1U << 14;
constexpr std::uint32_t kMaxContext = 1U << 28;
constexpr std::uint32_t kMaxVocab = 1U << 24;
constexpr std::uint32_t kMaxExperts = 1U << 14;
constexpr std::uint32_t kMaxTargetLayers = 16;
constexpr std::uint32_t kAny32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::optional<std::uint32_t> kNeeded{};

// Describes one integer field. A key that starts with '.' belongs to the architecture: ".block_count" stands for
// "<architecture>.block_count", for example "llama.block_count".
struct CountRow {
  std::uint32_t ModelConfig::* field;
  std::string_view key;
  std::uint32_t min;
  std::uint32_t max;
  std::optional<std::uint32_t> absent;
};
constexpr CountRow kCounts[] = {
    {&ModelConfig::file_type, "general.file_type", 0, kAny32, 0},
    {&ModelConfig::quantization_version, "general.quantization_version", 0, kAny32, 0},
    {&ModelConfig::n_layers, ".block_count", 1, kMaxLayers, kNeeded},
    {&ModelConfig::n_mtp_layers, ".nextn_predict_layers", 0, kMaxLayers, 0},
    {&ModelConfig::model_dim, ".embedding_length", 1, kMaxDim, kNeeded},
    {&ModelConfig::context_length, ".context_length", 1, kMaxContext, kNeeded},
    {&ModelConfig::n_heads, ".attention.head_count", 1, kMaxHeads, kNeeded},
    // if the key is absent, model_dim / n_heads is used
    {&ModelConfig::head_dim, ".attention.key_length", 1, kMaxHeadDim, 0},
    {&ModelConfig::v_head_dim, ".attention.value_length", 1, kMaxHeadDim, 0},  // if the key is absent, head_dim is used
    {&ModelConfig::q_lora_rank, ".attention.q_lora_rank", 0, kMaxDim, 0},
    {&ModelConfig::kv_lora_rank, ".attention.kv_lora_rank", 0, kMaxHeadDim, 0},
    {&ModelConfig::mla_k_dim, ".attention.key_length_mla", 0, kMaxHeadDim, 0},
    {&ModelConfig::mla_v_dim, ".attention.value_length_mla", 0, kMaxHeadDim, 0},
    {&ModelConfig::sliding_window, ".attention.sliding_window", 0, kMaxContext, 0},
    {&ModelConfig::sliding_head_dim, ".attention.key_length_swa", 1, kMaxHeadDim, 0},
    {&ModelConfig::sliding_v_head_dim, ".attention.value_length_swa", 1, kMaxHeadDim, 0},
    {&ModelConfig::n_shared_kv_layers, ".attention.shared_kv_layers", 0, kMaxLayers, 0},
    {&ModelConfig::rope_dim, ".rope.dimension_count", 2, kMaxHeadDim, 0},  // if the key is absent, head_dim is used
    {&ModelConfig::sliding_rope_dim, ".rope.dimension_count_swa", 2, kMaxHeadDim, 0},
    {&ModelConfig::rope_original_context, ".rope.scaling.original_context_length", 1, kMaxContext,
     0},  // if the key is absent, context_length is used
    {&ModelConfig::n_experts, ".expert_count", 0, kMaxExperts, 0},
    {&ModelConfig::n_experts_used, ".expert_used_count", 0, kMaxExperts, 0},
    {&ModelConfig::expert_ffn_dim, ".expert_feed_forward_length", 0, kMaxDim, 0},  // if absent or 0, ffn_dim is used
    {&ModelConfig::n_expert_groups, ".expert_group_count", 0, kMaxExperts, 1},
    {&ModelConfig::n_expert_groups_used, ".expert_group_used_count", 0, kMaxExperts, 1},
    {&ModelConfig::shared_expert_ffn_dim, ".expert_shared_feed_forward_length", 0, kMaxDim, 0},
    {&ModelConfig::expert_latent_dim, ".moe_latent_size", 0, kMaxDim, 0},
    {&ModelConfig::ssm_conv_width, ".ssm.conv_kernel", 0, 256, 0},
    {&ModelConfig::short_conv_width, ".shortconv.l_cache", 0, 256, 0},
    {&ModelConfig::ssm_k_heads, ".ssm.group_count", 0, kMaxHeads, 0},
    {&ModelConfig::ssm_v_heads, ".ssm.time_step_rank", 0, kMaxHeads, 0},
    {&ModelConfig::ssm_k_dim, ".ssm.state_size", 0, kMaxHeadDim, 0},
    {&ModelConfig::ssm_inner_dim, ".ssm.inner_size", 0, kMaxDim, 0},
    {&ModelConfig::per_layer_embedding_dim, ".embedding_length_per_layer_input", 0, kMaxDim, 0},
    {&ModelConfig::target_dim, ".target_hidden_size", 0, kMaxDim, 0},
    {&ModelConfig::pooling_type, ".pooling_type", 0, static_cast<std::uint32_t>(Pooling::kRank), 0},
};

struct NumberRow {
  double ModelConfig::* field;
  std::string_view key;
  double min;
  double max;
  double absent;
};
constexpr NumberRow kNumbers[] = {
    {&ModelConfig::attention_scale, ".attention.scale", 0, 1e6, 0},
    {&ModelConfig::attention_softcap, ".attn_logit_softcapping", 0, 1e6, 0},
    {&ModelConfig::rope_theta, ".rope.freq_base", 1, 1e15, 10000},
    {&ModelConfig::sliding_rope_theta, ".rope.freq_base_swa", 1, 1e15, 10000},
    {&ModelConfig::rope_scaling_factor, ".rope.scaling.factor", 0, 1e6, 1},
    {&ModelConfig::rope_attn_factor, ".rope.scaling.attn_factor", 0, 1e6, 0},
    {&ModelConfig::rope_yarn_beta_fast, ".rope.scaling.yarn_beta_fast", 1e-6, 1e6, 32},
    {&ModelConfig::rope_yarn_beta_slow, ".rope.scaling.yarn_beta_slow", 1e-6, 1e6, 1},
    {&ModelConfig::rope_yarn_log_multiplier, ".rope.scaling.yarn_log_multiplier", 0, 1e6, 0},
    {&ModelConfig::temperature_scale, ".attention.temperature_scale", 0, 1e6, 0},
    {&ModelConfig::expert_weights_scale, ".expert_weights_scale", -1e6, 1e6, 1},
    {&ModelConfig::embedding_scale, ".embedding_scale", -1e6, 1e6, 1},
    {&ModelConfig::residual_scale, ".residual_scale", -1e6, 1e6, 1},
    {&ModelConfig::logit_scale, ".logit_scale", -1e6, 1e6, 1},
    {&ModelConfig::final_logit_softcap, ".final_logit_softcapping", 0, 1e6, 0},
};

// Describes a field with one value per layer. The file stores either an array, which also counts MTP blocks, or one
// number for all layers.
struct LayerRow {
  std::vector<std::uint32_t> ModelConfig::* field;
  std::string_view key;
  std::uint32_t max;
};
constexpr LayerRow kKvHeads{&ModelConfig::n_kv_heads_per_layer, ".attention.head_count_kv", kMaxHeads};
constexpr LayerRow kFfnDims{&ModelConfig::ffn_dim_per_layer, ".feed_forward_length", kMaxDim};

// Families with recurrent layers, by what tells in their files which layers these are.
constexpr std::string_view kRecurrentByHeads[] = {"lfm2", "lfm2moe", "granitehybrid", "nemotron_h", "nemotron_h_moe"};
constexpr std::string_view kRecurrentByInterval[] = {"qwen35", "qwen35moe", "qwen3next"};
// Draft models without a KV cache. All their layers count as blocks for multi-token prediction.
constexpr std::string_view kReadsTargetCache[] = {"gemma4-assistant"};

class ConfigReader {
 public:
  ConfigReader(const gguf::Metadata& metadata, std::span<const gguf::TensorInfo> tensors)
      : metadata_(metadata), tensors_(tensors) {}

  Result<ModelConfig> read() {
    ZRT_CHECK_OK(read_identity());
    for (const CountRow& row : kCounts) ZRT_CHECK_OK(read_count(row));
    for (const NumberRow& row : kNumbers) {
      ZRT_TRY(config_.*row.field, number(row.key, row.min, row.max, row.absent));
    }
    ZRT_TRY(config_.is_causal, metadata_.get_bool_or(full(".attention.causal"), true));
    ZRT_CHECK_OK(derive_layers());
    ZRT_CHECK_OK(derive_heads());
    ZRT_CHECK_OK(derive_rope());
    ZRT_CHECK_OK(derive_ffn());
    ZRT_CHECK_OK(derive_recurrent());
    ZRT_CHECK_OK(derive_router());
    ZRT_CHECK_OK(derive_norm());
    ZRT_CHECK_OK(derive_target());
    ZRT_CHECK_OK(derive_vocab());
    ZRT_CHECK_OK(derive_token_types());
    return std::move(config_);
  }

 private:
  std::string full(std::string_view key) const {
    return key.starts_with('.') ? name_in_file(metadata_, config_.architecture, key) : std::string(key);
  }
  std::string at(std::string_view key) const {
    return fmt::format("{}{}key {}", metadata_.place(), metadata_.place().empty() ? "" : ": ", quoted(full(key)));
  }
  template <class T>
  std::unexpected<Error> out_of_range(std::string_view key, T min, T max, auto there) const {
    return fail(StatusCode::kCorrupt, "[config] {}: needs {} to {}, {} there", at(key), min, max, there);
  }

  Status read_identity() {
    ZRT_TRY(const std::string_view type, metadata_.get_string_or("general.type", "model"));
    if (type != "model")
      return fail(StatusCode::kInvalidArgument, "[config] {}: needs \"model\", {} there", at("general.type"),
                  quoted(type));
    ZRT_TRY(config_.architecture, metadata_.get_string("general.architecture"));
    constexpr std::size_t kMaxNameBytes = 64;
    if (config_.architecture.empty() || config_.architecture.size() > kMaxNameBytes)
      return fail(StatusCode::kCorrupt, "[config] {}: needs 1 to {} bytes, {} there", at("general.architecture"),
                  kMaxNameBytes, config_.architecture.size());
    ZRT_TRY(config_.name, metadata_.get_string_or("general.name", ""));
    ZRT_TRY(config_.size_label, metadata_.get_string_or("general.size_label", ""));
    return {};
  }

  Status read_count(const CountRow& row) {
    const std::string key = full(row.key);
    if (row.absent && !metadata_.contains(key)) {
      config_.*row.field = *row.absent;
      return {};
    }
    ZRT_TRY(const std::int64_t value, metadata_.get_int(key));
    if (value < row.min || value > row.max) return out_of_range(row.key, row.min, row.max, value);
    config_.*row.field = static_cast<std::uint32_t>(value);
    return {};
  }

  Result<double> number(std::string_view key, double min, double max, double absent) const {
    ZRT_TRY(const double value,
            metadata_.get_float_or(full(key), family_default(config_, metadata_, key).value_or(absent)));
    // The negated form also refuses NaN.
    if (!(value >= min && value <= max)) return out_of_range(key, min, max, value);
    return value;
  }

  // Reads the value of each layer into row.field. REQUIRES: the file has the key.
  Status read_per_layer(const LayerRow& row) {
    const std::string key = full(row.key);
    std::vector<std::int64_t> values;
    if (metadata_.find(key)->is_array) {
      ZRT_TRY(values, metadata_.get_ints(key));
      if (values.size() != n_blocks_)
        return fail(StatusCode::kCorrupt, "[config] {}: needs {} entries (one a layer), {} there", at(row.key),
                    n_blocks_, values.size());
    } else {
      ZRT_TRY(const std::int64_t value, metadata_.get_int(key));
      values.assign(n_blocks_, value);
    }
    for (const std::int64_t value : values) {
      if (value < 0 || value > row.max) return out_of_range<std::uint32_t>(row.key, 0, row.max, value);
      (config_.*row.field).push_back(static_cast<std::uint32_t>(value));
    }
    (config_.*row.field).resize(config_.n_layers);
    return {};
  }

  // Reads one flag per layer. The file stores an array of flags, or one number p, which means that all layers are
  // flagged except every p-th.
  Status read_flags(std::vector<bool>& flags, std::string_view key) {
    const auto* value = metadata_.find(full(key));
    if (value == nullptr) return {};
    if (!value->is_array) {
      ZRT_TRY(const std::int64_t period, metadata_.get_int(full(key)));
      if (period < 1 || period > kMaxLayers) return out_of_range<std::uint32_t>(key, 1, kMaxLayers, period);
      for (std::uint32_t i = 0; i < config_.n_layers; ++i) flags.push_back((i + 1) % period != 0);
      return {};
    }
    ZRT_TRY(const auto values, metadata_.get_ints(full(key)));
    if (values.size() < config_.n_layers)
      return fail(StatusCode::kCorrupt, "[config] {}: needs {} entries (one a layer), {} there", at(key),
                  config_.n_layers, values.size());
    for (std::uint32_t i = 0; i < config_.n_layers; ++i) flags.push_back(values[i] != 0);
    return {};
  }

  Status derive_layers() {
    if (std::ranges::count(kReadsTargetCache, config_.architecture) > 0) return derive_reading_layers();
    if (config_.n_mtp_layers >= config_.n_layers)
      return out_of_range<std::uint32_t>(".nextn_predict_layers", 0, config_.n_layers - 1, config_.n_mtp_layers);
    n_blocks_ = config_.n_layers;
    config_.n_layers -= config_.n_mtp_layers;
    if (config_.n_shared_kv_layers >= config_.n_layers)
      return out_of_range<std::uint32_t>(".attention.shared_kv_layers", 0, config_.n_layers - 1,
                                         config_.n_shared_kv_layers);
    return read_flags(config_.is_sliding, ".attention.sliding_window_pattern");
  }

  Status derive_reading_layers() {
    for (const auto& [key, n] : {std::pair{".nextn_predict_layers", config_.n_mtp_layers},
                                 std::pair{".attention.shared_kv_layers", config_.n_shared_kv_layers}})
      if (n != config_.n_layers) return out_of_range<std::uint32_t>(key, config_.n_layers, config_.n_layers, n);
    n_blocks_ = config_.n_layers;
    config_.n_mtp_layers = 0;
    config_.reads_target_cache = true;
    return read_flags(config_.is_sliding, ".attention.sliding_window_pattern");
  }

  Status derive_heads() {
    if (metadata_.contains(full(kKvHeads.key))) {
      ZRT_CHECK_OK(read_per_layer(kKvHeads));
    } else {
      config_.n_kv_heads_per_layer.assign(config_.n_layers, config_.n_heads);
    }
    config_.n_kv_heads = first_above_zero(config_.n_kv_heads_per_layer);
    if (config_.n_kv_heads == 0) return out_of_range<std::uint32_t>(kKvHeads.key, 1, kMaxHeads, 0);
    for (const std::uint32_t n_kv_heads : config_.n_kv_heads_per_layer)
      if (n_kv_heads > 0 && config_.n_heads % n_kv_heads != 0)
        return fail(StatusCode::kCorrupt, "[config] {}: needs a divisor of the {} heads, {} there", at(kKvHeads.key),
                    config_.n_heads, n_kv_heads);
    if (config_.head_dim == 0) {
      if (config_.model_dim % config_.n_heads != 0)
        return fail(StatusCode::kCorrupt, "[config] {}: needs a divisor of the embedding length {}, {} there",
                    at(".attention.head_count"), config_.model_dim, config_.n_heads);
      config_.head_dim = config_.model_dim / config_.n_heads;
      if (config_.head_dim > kMaxHeadDim)
        return out_of_range<std::uint32_t>(".attention.key_length", 1, kMaxHeadDim, config_.head_dim);
    }
    if (config_.v_head_dim == 0) config_.v_head_dim = config_.head_dim;
    if (config_.sliding_head_dim == 0) config_.sliding_head_dim = config_.head_dim;
    if (config_.sliding_v_head_dim == 0) config_.sliding_v_head_dim = config_.v_head_dim;
    return {};
  }

  Status derive_rope() {
    if (config_.rope_dim == 0) config_.rope_dim = config_.head_dim;
    if (config_.sliding_rope_dim == 0) config_.sliding_rope_dim = config_.sliding_head_dim;
    const auto check = [&](std::string_view key, std::uint32_t rope_dim, std::uint32_t head_dim) -> Status {
      if (rope_dim % 2 == 0 && rope_dim <= head_dim) return {};
      return fail(StatusCode::kCorrupt, "[config] {}: needs an even number up to the head's {}, {} there", at(key),
                  head_dim, rope_dim);
    };
    ZRT_CHECK_OK(check(".rope.dimension_count", config_.rope_dim, config_.head_dim));
    ZRT_CHECK_OK(check(".rope.dimension_count_swa", config_.sliding_rope_dim, config_.sliding_head_dim));
    if (config_.rope_original_context == 0) config_.rope_original_context = config_.context_length;
    if (config_.architecture == "granitehybrid") {
      ZRT_TRY(config_.has_rope, metadata_.get_bool_or(full(".rope.scaling.finetuned"), true));
    }
    // Some files store 0 to say that nothing is scaled, so 0 is read as a factor of 1.
    for (double* scale : {&config_.rope_scaling_factor, &config_.expert_weights_scale, &config_.embedding_scale,
                          &config_.residual_scale})
      if (*scale == 0) *scale = 1;
    const std::string_view implied = config_.rope_scaling_factor == 1 ? "none" : "linear";
    ZRT_TRY(config_.rope_scaling_type, metadata_.get_string_or(full(".rope.scaling.type"), implied));
    constexpr std::string_view kTypes[] = {"none", "linear", "yarn", "longrope"};
    if (std::ranges::find(kTypes, config_.rope_scaling_type) == std::end(kTypes))
      return fail(StatusCode::kUnavailable, "[config] {}: needs none, linear, yarn or longrope, {} there",
                  at(".rope.scaling.type"), quoted(config_.rope_scaling_type));
    return {};
  }

  Status derive_router() {
    constexpr std::string_view kGating = ".expert_gating_func", kNorm = ".expert_weights_norm";
    constexpr auto kLast = static_cast<std::int64_t>(ExpertGating::kSoftmaxOfChosen);
    ZRT_TRY(const std::int64_t gating, metadata_.get_int_or(full(kGating), 0));
    if (gating < 0 || gating > kLast) return out_of_range<std::int64_t>(kGating, 0, kLast, gating);
    config_.expert_gating = static_cast<ExpertGating>(gating);
    // Some converters write the flag as a number.
    if (const auto* value = metadata_.find(full(kNorm));
        value != nullptr && !std::holds_alternative<bool>(value->data)) {
      ZRT_TRY(const std::int64_t norm, metadata_.get_int(full(kNorm)));
      if (norm < 0 || norm > 1) return out_of_range<std::int64_t>(kNorm, 0, 1, norm);
      config_.expert_weights_norm = norm == 1;
    } else if (value != nullptr) {
      ZRT_TRY(config_.expert_weights_norm, metadata_.get_bool(full(kNorm)));
    }
    // 0 groups mean that the file has none.
    for (std::uint32_t* groups : {&config_.n_expert_groups, &config_.n_expert_groups_used})
      if (*groups == 0) *groups = 1;
    if (config_.n_experts == 0) return {};
    const std::uint32_t n_groups = config_.n_expert_groups, n_groups_used = config_.n_expert_groups_used;
    if (config_.n_experts % n_groups != 0)
      return fail(StatusCode::kCorrupt, "[config] {}: needs a divisor of the {} experts, {} there",
                  at(".expert_group_count"), config_.n_experts, n_groups);
    if (n_groups_used > n_groups)
      return out_of_range<std::uint32_t>(".expert_group_used_count", 1, n_groups, n_groups_used);
    if (const std::uint32_t most = config_.n_experts / n_groups * n_groups_used; config_.n_experts_used > most)
      return fail(StatusCode::kCorrupt, "[config] {}: needs up to the {} experts of {} groups, {} there",
                  at(".expert_used_count"), most, n_groups_used, config_.n_experts_used);
    return {};
  }

  Status derive_ffn() {
    const bool has_experts = config_.n_experts > 0;
    const std::uint32_t least_used = has_experts ? 1 : 0;
    if (config_.n_experts_used < least_used || config_.n_experts_used > config_.n_experts)
      return out_of_range(".expert_used_count", least_used, config_.n_experts, config_.n_experts_used);
    if (metadata_.contains(full(kFfnDims.key)) || !has_experts) {
      if (!metadata_.contains(full(kFfnDims.key)))
        return fail(StatusCode::kNotFound, "[config] {}: needed (integer), not there", at(kFfnDims.key));
      ZRT_CHECK_OK(read_per_layer(kFfnDims));
    } else {
      config_.ffn_dim_per_layer.assign(config_.n_layers, 0);
    }
    config_.ffn_dim = first_above_zero(config_.ffn_dim_per_layer);
    if (config_.ffn_dim == 0 && !has_experts) return out_of_range<std::uint32_t>(kFfnDims.key, 1, kMaxDim, 0);
    if (has_experts && config_.expert_ffn_dim == 0) {
      if (config_.ffn_dim == 0)
        return fail(StatusCode::kNotFound, "[config] {}: needed (integer) for {} experts, not there",
                    at(".expert_feed_forward_length"), config_.n_experts);
      config_.expert_ffn_dim = config_.ffn_dim;
    }
    return {};
  }

  // Sets which layers are recurrent: those without KV heads in the families of kRecurrentByHeads; else those that the
  // file lists; else, in the families of kRecurrentByInterval, all except every n-th layer, which has attention.
  Status derive_recurrent() {
    const auto is_in = [&](std::span<const std::string_view> families) {
      return std::ranges::find(families, config_.architecture) != families.end();
    };
    auto& flags = config_.is_recurrent;
    ZRT_CHECK_OK(read_flags(flags, ".attention.recurrent_layers"));
    constexpr std::string_view kInterval = ".full_attention_interval";
    ZRT_TRY(const std::int64_t interval, metadata_.get_int_or(full(kInterval), 0));
    if (interval < 0 || interval > kMaxLayers) return out_of_range<std::int64_t>(kInterval, 0, kMaxLayers, interval);
    if (is_in(kRecurrentByHeads)) {
      // In Nemotron-H a layer with a feed-forward length is nothing but that network.
      const bool has_plain_networks = config_.architecture.starts_with("nemotron_h");
      flags.clear();
      for (std::uint32_t i = 0; i < config_.n_layers; ++i)
        flags.push_back(config_.n_kv_heads_per_layer[i] == 0 &&
                        !(has_plain_networks && config_.ffn_dim_per_layer[i] > 0));
    } else if (flags.empty()) {
      for (std::uint32_t i = 0; i < config_.n_layers; ++i)
        flags.push_back(is_in(kRecurrentByInterval) && (interval == 0 || (i + 1) % interval != 0));
    }
    return {};
  }

  // Sets which layers of its model a draft model reads.
  Status derive_target() {
    if (config_.reads_target_cache)
      return read_count({&ModelConfig::target_dim, ".embedding_length_out", 1, kMaxDim, kNeeded});
    if (config_.target_dim == 0 && config_.architecture == "eagle3")
      return fail(StatusCode::kNotFound, "[config] {}: needed (integer), not there", at(".target_hidden_size"));
    if (config_.target_dim == 0) return {};
    // Files of 2025 have the other key.
    constexpr std::string_view kNow = ".target_layers", kOnce = ".extract_layers";
    const std::string_view key = metadata_.contains(full(kNow)) ? kNow : kOnce;
    ZRT_TRY(const auto layers, metadata_.get_ints(full(key)));
    if (layers.empty() || layers.size() > kMaxTargetLayers)
      return fail(StatusCode::kCorrupt, "[config] {}: needs 1 to {} layers, {} there", at(key), kMaxTargetLayers,
                  layers.size());
    for (const std::int64_t layer : layers) {
      const std::int64_t least = config_.target_layers.empty() ? 0 : config_.target_layers.back();
      if (layer < least || layer >= kMaxLayers) return out_of_range<std::int64_t>(key, least, kMaxLayers - 1, layer);
      config_.target_layers.push_back(static_cast<std::uint32_t>(layer));
    }
    ZRT_TRY(config_.norm_before_fc, metadata_.get_bool_or(full(".norm_before_fc"), false));
    ZRT_TRY(config_.norm_before_residual, metadata_.get_bool_or(full(".norm_before_residual"), false));
    ZRT_TRY(config_.norm_output, metadata_.get_bool_or(full(".norm_output"), false));
    return {};
  }

  Status derive_norm() {
    constexpr std::string_view kRms = ".attention.layer_norm_rms_epsilon";
    constexpr std::string_view kPlain = ".attention.layer_norm_epsilon";
    const std::string_view key = !metadata_.contains(full(kRms)) && metadata_.contains(full(kPlain)) ? kPlain : kRms;
    if (!metadata_.contains(full(key)) && !family_default(config_, metadata_, key))
      return fail(StatusCode::kNotFound, "[config] {}: needed (float), not there", at(key));
    ZRT_TRY(config_.norm_eps, number(key, 0, 1, 0));
    return {};
  }

  const gguf::TensorInfo* find_tensor(std::string_view name) const {
    const auto it = std::ranges::find(tensors_, name, &gguf::TensorInfo::name);
    return it == tensors_.end() ? nullptr : &*it;
  }

  Status derive_vocab() {
    constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
    const gguf::TensorInfo* embedding = find_tensor("token_embd.weight");
    config_.tied_embeddings = find_tensor("output.weight") == nullptr;
    std::uint64_t n_tokens = 0;
    std::string_view key = kTokens;
    if (metadata_.contains(kTokens)) {
      ZRT_TRY(const auto tokens, metadata_.get_strings(kTokens));
      n_tokens = tokens.size();
    } else if (metadata_.contains(full(".vocab_size"))) {
      key = ".vocab_size";
      ZRT_TRY(const std::int64_t said, metadata_.get_int(full(key)));
      if (said < 1) return out_of_range<std::int64_t>(key, 1, kMaxVocab, said);
      n_tokens = static_cast<std::uint64_t>(said);
    } else if (embedding != nullptr) {
      n_tokens = embedding->dims[1];
    }
    // Gemma 3's vocabulary may contain image tokens that have no row in the embedding matrix, so the smaller count is
    // used.
    if (embedding != nullptr && config_.architecture == "gemma3" && key == kTokens)
      n_tokens = std::min(n_tokens, embedding->dims[1]);
    if (n_tokens < 1 || n_tokens > kMaxVocab) return out_of_range<std::uint64_t>(key, 1, kMaxVocab, n_tokens);
    if (embedding != nullptr && embedding->dims[1] != n_tokens)
      return fail(StatusCode::kCorrupt, "[config] {}: says {} tokens, tensor \"token_embd.weight\" has {} rows",
                  at(key), n_tokens, embedding->dims[1]);
    config_.vocab_size = static_cast<std::uint32_t>(n_tokens);
    return {};
  }

  // Sets the number of token types of an encoder (for example 2, if a pair of texts marks the second text). The tensor
  // has one row per type, and a key may also state the number.
  Status derive_token_types() {
    constexpr std::string_view kKey = "tokenizer.ggml.token_type_count";
    const gguf::TensorInfo* types = find_tensor("token_types.weight");
    const std::uint64_t there = types == nullptr ? 0 : types->dims[1];
    if (there > kMaxVocab)
      return fail(StatusCode::kCorrupt, "[config] tensor \"token_types.weight\" has {} rows, at most {} allowed", there,
                  kMaxVocab);
    ZRT_TRY(const std::int64_t said, metadata_.get_int_or(kKey, static_cast<std::int64_t>(there)));
    if (said != static_cast<std::int64_t>(there))
      return fail(StatusCode::kCorrupt, "[config] {}: says {} token types, tensor \"token_types.weight\" has {} rows",
                  at(kKey), said, there);
    config_.n_token_types = static_cast<std::uint32_t>(there);
    return {};
  }

  static std::uint32_t first_above_zero(const std::vector<std::uint32_t>& values) {
    const auto it = std::ranges::find_if(values, [](std::uint32_t n) { return n > 0; });
    return it == values.end() ? 0 : *it;
  }

  const gguf::Metadata& metadata_;
  std::span<const gguf::TensorInfo> tensors_;
  ModelConfig config_;
  std::uint32_t n_blocks_ = 0;  // number of blocks in the file: n_layers + n_mtp_layers
};

}  // namespace

Result<ModelConfig> read_config(const gguf::Metadata& metadata, std::span<const gguf::TensorInfo> tensors) {
  return ConfigReader(metadata, tensors).read();
}

}  // namespace zinc_rt

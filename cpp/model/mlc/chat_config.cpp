#include "model/mlc/chat_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "model/gguf/metadata.h"
#include "model/mlc/json.h"

namespace zinc_rt::mlc {
namespace {

constexpr std::uint64_t kMaxLayers = 1024;
constexpr std::uint64_t kMaxDim = 1U << 22;
constexpr std::uint64_t kMaxHeads = 1U << 14;
constexpr std::uint64_t kMaxHeadDim = 1U << 14;
constexpr std::uint64_t kMaxContext = 1U << 28;
constexpr std::uint64_t kMaxVocab = 1U << 24;

struct FamilyRow {
  std::string_view model_type, architecture;
};
constexpr FamilyRow kFamilies[] = {{"llama", "llama"}, {"mistral", "llama"}, {"phi3", "phi3"}, {"phi3_v", "phi3"}};

struct QuantizationRow {
  std::string_view name;
  bool layers, ends;
};
// Lists the quantizations that can be read. q4f32_1 is missing because its f32 scales cannot be stored exactly in Q4_0.
constexpr QuantizationRow kQuantizations[] = {
    {"q4f16_1", true, true}, {"q4f16_2", true, false}, {"q0f16", false, false}, {"q0f32", false, false}};

template <class Row, std::size_t N>
std::string names_of(const Row (&rows)[N], std::string_view Row::* name) {
  std::string out;
  for (const Row& row : rows) {
    if (!out.empty()) out += ", ";
    out += row.*name;
  }
  return out;
}

Status read_family(const Fields& root, ChatConfig& c) {
  ZRT_TRY(c.model_type, root.string("model_type"));
  const auto family = std::ranges::find(kFamilies, c.model_type, &FamilyRow::model_type);
  if (family == std::end(kFamilies))
    return fail(StatusCode::kUnavailable, "[mlc] {}: needs one of {}, {} there", root.at("model_type"),
                names_of(kFamilies, &FamilyRow::model_type), gguf::quoted(c.model_type));
  c.architecture = family->architecture;
  ZRT_TRY(c.quantization, root.string("quantization"));
  const auto quantization = std::ranges::find(kQuantizations, c.quantization, &QuantizationRow::name);
  if (quantization == std::end(kQuantizations))
    return fail(StatusCode::kUnavailable, "[mlc] {}: needs one of {}, {} there", root.at("quantization"),
                names_of(kQuantizations, &QuantizationRow::name), gguf::quoted(c.quantization));
  c.quantized_layers = quantization->layers;
  c.quantized_ends = quantization->ends;
  return {};
}

// Returns the size under `key`, or 0 if the model does not have it. MLC writes -1 for such a size.
Result<std::uint64_t> size_or_none(const Fields& fields, std::string_view key, std::uint64_t most) {
  const Json* value = fields.find(key);
  if (value == nullptr || (value->is_number_integer() && !value->is_number_unsigned())) return std::uint64_t{0};
  return fields.count(key, 0, most);
}

Status read_sizes(const Fields& root, const Fields& model, ChatConfig& c) {
  ZRT_TRY(c.n_layers, model.count("num_hidden_layers", 1, kMaxLayers));
  ZRT_TRY(c.model_dim, model.count("hidden_size", 1, kMaxDim));
  ZRT_TRY(c.ffn_dim, model.count("intermediate_size", 1, kMaxDim));
  ZRT_TRY(c.n_heads, model.count("num_attention_heads", 1, kMaxHeads));
  ZRT_TRY(c.n_kv_heads, size_or_none(model, "num_key_value_heads", kMaxHeads));
  if (c.n_kv_heads == 0) c.n_kv_heads = c.n_heads;
  if (c.n_heads % c.n_kv_heads != 0)
    return fail(StatusCode::kCorrupt, "[mlc] {}: needs a divisor of the {} heads, {} there",
                model.at("num_key_value_heads"), c.n_heads, c.n_kv_heads);
  ZRT_TRY(c.head_dim, size_or_none(model, "head_dim", kMaxHeadDim));
  if (c.head_dim == 0) {
    if (c.model_dim % c.n_heads != 0)
      return fail(StatusCode::kCorrupt, "[mlc] {}: needs a divisor of the hidden size {}, {} there",
                  model.at("num_attention_heads"), c.model_dim, c.n_heads);
    c.head_dim = c.model_dim / c.n_heads;
  }
  ZRT_TRY(const std::uint64_t outer_vocab, root.count_or("vocab_size", 1, kMaxVocab, 0));
  ZRT_TRY(c.vocab_size, model.count_or("vocab_size", 1, kMaxVocab, outer_vocab));
  if (c.vocab_size == 0) return fail(StatusCode::kNotFound, "[mlc] {}: needed, not there", model.at("vocab_size"));
  ZRT_TRY(c.norm_eps, model.number_or("rms_norm_eps", 0, 1, 1e-5));
  ZRT_TRY(c.tied_embeddings, model.flag_or("tie_word_embeddings", false));
  return {};
}

// Sets the context length that the model was made for. The file's top level may state a smaller length, for which the
// folder was compiled, so the values in the object `model` are read first.
Status read_context(const Fields& root, const Fields& model, ChatConfig& c) {
  ZRT_TRY(c.sliding_window, size_or_none(model, "sliding_window_size", kMaxContext));
  if (c.sliding_window == 0) {
    ZRT_TRY(c.sliding_window, size_or_none(root, "sliding_window_size", kMaxContext));
  }
  for (const auto& [fields, key] : {std::pair{&model, "max_position_embeddings"},
                                    {&model, "context_window_size"},
                                    {&root, "context_window_size"}}) {
    if (c.context_length != 0) break;
    ZRT_TRY(c.context_length, size_or_none(*fields, key, kMaxContext));
  }
  // MLC sets no limit for a model with a sliding window, so this runtime chooses one.
  constexpr std::uint64_t kUnlimited = 32768;
  if (c.context_length == 0 && c.sliding_window > 0) c.context_length = kUnlimited;
  if (c.context_length == 0)
    return fail(StatusCode::kNotFound, "[mlc] {}: needed, not there", model.at("context_window_size"));
  return {};
}

Result<std::vector<double>> read_factors(const Fields& scaling, std::string_view key, std::uint64_t n) {
  ZRT_TRY(const Json* values, scaling.array(key));
  if (values->size() != n)
    return fail(StatusCode::kCorrupt, "[mlc] {}: needs {} factors (one a rotated pair), {} there", scaling.at(key), n,
                values->size());
  std::vector<double> out;
  for (const Json& value : *values) {
    const double factor = value.is_number() ? value.get<double>() : 0;
    if (!(factor > 0 && factor < 1e6))
      return fail(StatusCode::kCorrupt, "[mlc] {}: needs numbers above 0, {} there", scaling.at(key), describe(value));
    out.push_back(factor);
  }
  return out;
}

Status read_rope(const Fields& model, ChatConfig& c) {
  ZRT_TRY(const double theta, model.number_or("rope_theta", 1, 1e15, 10000));
  ZRT_TRY(c.rope_theta, model.number_or("position_embedding_base", 0, 1e15, theta));
  if (c.rope_theta < 1) c.rope_theta = theta;  // MLC writes 0 if the default is used
  ZRT_TRY(const double part, model.number_or("partial_rotary_factor", 0.01, 1, 1));
  c.rope_dim = static_cast<std::uint64_t>(static_cast<double>(c.head_dim) * part);
  if (c.rope_dim < 2 || c.rope_dim % 2 != 0)
    return fail(StatusCode::kCorrupt, "[mlc] {}: needs an even number of rotated elements, {} there",
                model.at("head_dim"), c.rope_dim);
  if (c.architecture == "llama" && c.rope_dim != c.head_dim)
    return fail(StatusCode::kUnavailable, "[mlc] {}: {} of {} elements rotated is not supported for {}",
                model.at("partial_rotary_factor"), c.rope_dim, c.head_dim, c.model_type);
  if (!model.contains("rope_scaling")) return {};
  ZRT_TRY(const Fields scaling, model.object("rope_scaling"));
  ZRT_TRY(const std::string old_type, scaling.string_or("type", "default"));
  ZRT_TRY(const std::string type, scaling.string_or("rope_type", old_type));
  if (type == "default") return {};
  if (type == "llama3" && c.architecture == "llama") {
    c.rope_scaling = RopeScaling::kLlama3;
    ZRT_TRY(c.rope_factor, scaling.number_or("factor", 1, 1e6, 8));
    ZRT_TRY(c.rope_low_freq, scaling.number_or("low_freq_factor", 1e-3, 1e6, 1));
    ZRT_TRY(c.rope_high_freq, scaling.number_or("high_freq_factor", 1e-3, 1e6, 4));
    if (c.rope_high_freq <= c.rope_low_freq)
      return fail(StatusCode::kCorrupt, "[mlc] {}: needs more than low_freq_factor {}, {} there",
                  scaling.at("high_freq_factor"), c.rope_low_freq, c.rope_high_freq);
    ZRT_TRY(c.rope_original_context, scaling.count_or("original_max_position_embeddings", 1, kMaxContext, 8192));
    return {};
  }
  if ((type == "longrope" || type == "su") && c.architecture == "phi3") {
    c.rope_scaling = RopeScaling::kLongrope;
    ZRT_TRY(c.rope_short, read_factors(scaling, "short_factor", c.rope_dim / 2));
    ZRT_TRY(c.rope_long, read_factors(scaling, "long_factor", c.rope_dim / 2));
    ZRT_TRY(const std::uint64_t inner,
            scaling.count_or("original_max_position_embeddings", 1, kMaxContext, c.context_length));
    ZRT_TRY(c.rope_original_context, model.count_or("original_max_position_embeddings", 1, kMaxContext, inner));
    return {};
  }
  return fail(StatusCode::kUnavailable, "[mlc] {}: {} is not supported for {}", scaling.at("rope_type"),
              gguf::quoted(type), c.model_type);
}

// Reads bos_token_id and eos_token_id. eos_token_id may be one number or a list.
Status read_ids(const Fields& root, ChatConfig& c) {
  if (root.contains("bos_token_id")) {
    ZRT_TRY(c.bos_id, root.count("bos_token_id", 0, kMaxVocab));
  }
  const Json* eos = root.find("eos_token_id");
  if (eos == nullptr) return {};
  if (!eos->is_array()) {
    ZRT_TRY(const std::uint64_t id, root.count("eos_token_id", 0, kMaxVocab));
    c.eos_ids.push_back(id);
    return {};
  }
  for (const Json& value : *eos) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMaxVocab)
      return fail(StatusCode::kCorrupt, "[mlc] {}: needs ids up to {}, {} there", root.at("eos_token_id"), kMaxVocab,
                  describe(value));
    c.eos_ids.push_back(value.get<std::uint64_t>());
  }
  return {};
}

}  // namespace

Result<ChatConfig> parse_chat_config(std::string_view text, const std::string& place) {
  ZRT_TRY(const Json document, parse_json(text, place));
  ZRT_TRY(const Fields root, Fields::of(document, place));
  ZRT_TRY(const Fields model, root.object("model_config"));
  ChatConfig config;
  ZRT_CHECK_OK(read_family(root, config));
  ZRT_CHECK_OK(read_sizes(root, model, config));
  ZRT_CHECK_OK(read_context(root, model, config));
  ZRT_CHECK_OK(read_rope(model, config));
  ZRT_CHECK_OK(read_ids(root, config));
  return config;
}

std::vector<float> llama3_divisors(const ChatConfig& config) {
  std::vector<float> out;
  const auto original = static_cast<double>(config.rope_original_context);
  for (std::uint64_t i = 0; i < config.rope_dim / 2; ++i) {
    const double frequency =
        std::pow(config.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(config.rope_dim));
    // `turns` is how many full rotations a pair makes within the original context. A pair with many rotations has the
    // unscaled frequency (mixed = 1). A pair with few rotations has its frequency divided by the factor (mixed = 0).
    // All other pairs are interpolated.
    const double turns = original * frequency / (2 * std::numbers::pi);
    const double mixed =
        std::clamp((turns - config.rope_low_freq) / (config.rope_high_freq - config.rope_low_freq), 0.0, 1.0);
    out.push_back(static_cast<float>(1.0 / ((1.0 - mixed) / config.rope_factor + mixed)));
  }
  return out;
}

double longrope_attn_factor(const ChatConfig& config) {
  const auto original = static_cast<double>(config.rope_original_context);
  const double stretch = static_cast<double>(config.context_length) / original;
  return stretch <= 1 || original <= 1 ? 1.0 : std::sqrt(1.0 + std::log(stretch) / std::log(original));
}

}  // namespace zinc_rt::mlc

#include "model/mlc/chat_config_export.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "model/config.h"
#include "model/mlc/json.h"

namespace zinc_rt::mlc {
namespace {

using ordered = nlohmann::ordered_json;

std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> out(tensor.data.size() / sizeof(float));
  std::memcpy(out.data(), tensor.data.data(), out.size() * sizeof(float));
  return out;
}

Result<const Tensor*> f32_vector(const Weights& weights, std::string_view name, std::uint64_t n) {
  ZRT_TRY(const Tensor* tensor, weights.require(name, {n}));
  if (tensor->dtype != DType::kF32)
    return fail(StatusCode::kUnavailable, "[mlc] {}: tensor {}: needs f32, {} there", weights.path(),
                gguf::quoted(name), to_string(tensor->dtype));
  return tensor;
}

// Sets the numbers from which MLC computes Llama 3's RoPE divisors, because GGUF stores only the divisors. Two of the
// numbers (the low and high frequency factor) were the same in every release. The factor is the largest divisor. The
// original context is found by trying powers of two, until the computed divisors equal the stored ones. If no power of
// two fits, the model is refused.
Status find_llama3_scaling(const Weights& weights, ChatConfig& c) {
  ZRT_TRY(const Tensor* tensor, f32_vector(weights, "rope_freqs.weight", c.rope_dim / 2));
  const std::vector<float> wanted = floats_of(*tensor);
  c.rope_scaling = RopeScaling::kLlama3;
  c.rope_factor = *std::ranges::max_element(wanted);
  c.rope_low_freq = 1;
  c.rope_high_freq = 4;
  // Two divisors count as equal if they differ by at most this fraction of the first divisor. Both are f32, computed
  // from f32 frequencies.
  constexpr double kTolerance = 1e-4;
  if (c.rope_factor >= 1 && std::isfinite(c.rope_factor))
    for (c.rope_original_context = 64; c.rope_original_context <= 1U << 20; c.rope_original_context *= 2) {
      const std::vector<float> made = llama3_divisors(c);
      const auto close = [](float a, float b) { return std::fabs(a - b) <= kTolerance * std::fabs(a); };
      if (std::ranges::equal(wanted, made, close)) return {};
    }
  return fail(
      StatusCode::kUnavailable,
      "[mlc] {}: tensor \"rope_freqs.weight\": no llama3 scaling with factor {} and frequency factors 1 and 4 makes it",
      weights.path(), c.rope_factor);
}

Status read_longrope(const Weights& weights, const ModelConfig& m, ChatConfig& c) {
  c.rope_scaling = RopeScaling::kLongrope;
  c.rope_original_context = m.rope_original_context;
  for (const auto& [name, out] :
       {std::pair{"rope_factors_short.weight", &c.rope_short}, std::pair{"rope_factors_long.weight", &c.rope_long}}) {
    ZRT_TRY(const Tensor* tensor, f32_vector(weights, name, c.rope_dim / 2));
    const std::vector<float> values = floats_of(*tensor);
    out->assign(values.begin(), values.end());
  }
  constexpr double kTolerance = 1e-4;
  if (m.rope_attn_factor != 0 && std::fabs(longrope_attn_factor(c) - m.rope_attn_factor) > kTolerance)
    return fail(StatusCode::kUnavailable, "[mlc] {}: rope.scaling.attn_factor is {}, MLC makes {} of {} and {} tokens",
                weights.path(), m.rope_attn_factor, longrope_attn_factor(c), c.context_length, c.rope_original_context);
  return {};
}

// Refuses a model with a property that MLC's model classes cannot express.
Status refuse_others(const ModelConfig& m, const std::string& path) {
  struct Row {
    const char* what;
    double there, needed;
  };
  const Row rows[] = {{"experts", static_cast<double>(m.n_experts), 0},
                      {"nextn_predict_layers", static_cast<double>(m.n_mtp_layers), 0},
                      {"attention.shared_kv_layers", static_cast<double>(m.n_shared_kv_layers), 0},
                      {"attention.sliding_window_pattern", static_cast<double>(m.is_sliding.size()), 0},
                      {"attention.recurrent_layers", static_cast<double>(std::ranges::count(m.is_recurrent, true)), 0},
                      {"value head size", static_cast<double>(m.v_head_dim), static_cast<double>(m.head_dim)},
                      {"attention.scale", m.attention_scale, 0},
                      {"attn_logit_softcapping", m.attention_softcap, 0},
                      {"final_logit_softcapping", m.final_logit_softcap, 0},
                      {"embedding_scale", m.embedding_scale, 1},
                      {"residual_scale", m.residual_scale, 1},
                      {"logit_scale", m.logit_scale, 1}};
  for (const Row& row : rows)
    if (row.there != row.needed)
      return fail(StatusCode::kUnavailable, "[mlc] {}: {}: MLC's {} needs {}, {} there", path, row.what, m.architecture,
                  row.needed, row.there);
  const auto varies = [](const std::vector<std::uint32_t>& values) {
    return std::ranges::any_of(values, [&](std::uint32_t value) { return value != values[0]; });
  };
  if (varies(m.n_kv_heads_per_layer) || varies(m.ffn_dim_per_layer))
    return fail(StatusCode::kUnavailable, "[mlc] {}: layers of different sizes have no form in MLC", path);
  return {};
}

ordered conversation(const ChatConfig& c, const TokenizerTexts& tokenizer, std::string_view chat_template) {
  struct Row {
    const char *mark, *name, *system, *user, *assistant, *sep, *content_sep;
  };
  static constexpr Row kRows[] = {
      {"<|im_start|>", "chatml", "<|im_start|>system\n{system_message}<|im_end|>\n", "<|im_start|>user",
       "<|im_start|>assistant", "<|im_end|>\n", "\n"},
      {"<|start_header_id|>", "llama-3", "<|start_header_id|>system<|end_header_id|>\n\n{system_message}<|eot_id|>",
       "<|start_header_id|>user", "<|start_header_id|>assistant", "<|eot_id|>", "<|end_header_id|>\n\n"},
      {"<|assistant|>", "phi-3", "<|system|>\n{system_message}<|end|>\n", "<|user|>", "<|assistant|>", "<|end|>\n",
       "\n"},
      {"", "LM", "{system_message}", "", "", "", ""},
  };
  const Row& row = *std::ranges::find_if(kRows, [&](const Row& r) { return chat_template.contains(r.mark); });
  ordered out{{"name", row.name},
              {"system_template", row.system},
              {"system_message", *row.user != 0 ? "You are a helpful assistant." : ""},
              {"system_prefix_token_ids", nullptr},
              {"add_role_after_system_message", true},
              {"roles", {{"user", row.user}, {"assistant", row.assistant}}},
              {"role_templates", {{"user", "{user_message}"}, {"assistant", "{assistant_message}"}}},
              {"messages", ordered::array()},
              {"seps", ordered::array({row.sep})},
              {"role_content_sep", row.content_sep},
              {"role_empty_sep", row.content_sep},
              {"stop_str", ordered::array()},
              {"stop_token_ids", c.eos_ids}};
  if (tokenizer.bos_id && row.name != std::string_view("chatml"))
    out["system_prefix_token_ids"] = ordered::array({*tokenizer.bos_id});
  return out;
}

ordered rope_scaling(const ChatConfig& c) {
  if (c.rope_scaling == RopeScaling::kLlama3)
    return {{"rope_type", "llama3"},
            {"factor", c.rope_factor},
            {"low_freq_factor", c.rope_low_freq},
            {"high_freq_factor", c.rope_high_freq},
            {"original_max_position_embeddings", c.rope_original_context}};
  return {{"type", "longrope"}, {"short_factor", c.rope_short}, {"long_factor", c.rope_long}};
}

}  // namespace

Result<ChatConfig> config_of(const Weights& weights) {
  ZRT_TRY(const ModelConfig m, read_config(weights.metadata(), weights.infos()));
  if (m.architecture != "llama" && m.architecture != "phi3")
    return fail(StatusCode::kUnavailable, "[mlc] {}: needs the architecture llama or phi3, {} there", weights.path(),
                gguf::quoted(m.architecture));
  ZRT_CHECK_OK(refuse_others(m, weights.path()));
  ChatConfig c;
  c.architecture = m.architecture;
  c.model_type = m.architecture == "phi3" ? "phi3" : m.sliding_window > 0 ? "mistral" : "llama";
  c.quantization = "q4f16_1";
  c.quantized_layers = c.quantized_ends = true;
  c.n_layers = m.n_layers;
  c.model_dim = m.model_dim;
  c.ffn_dim = m.ffn_dim;
  c.n_heads = m.n_heads;
  c.n_kv_heads = m.n_kv_heads;
  c.head_dim = m.head_dim;
  c.vocab_size = m.vocab_size;
  c.context_length = m.context_length;
  c.sliding_window = m.sliding_window;
  c.tied_embeddings = m.tied_embeddings;
  c.norm_eps = m.norm_eps;
  c.rope_theta = m.rope_theta;
  c.rope_dim = m.rope_dim;
  if (c.architecture == "llama" && c.rope_dim != c.head_dim)
    return fail(StatusCode::kUnavailable, "[mlc] {}: llama.rope.dimension_count: MLC needs the head's {}, {} there",
                weights.path(), c.head_dim, c.rope_dim);
  if (c.architecture == "llama" && weights.find("rope_freqs.weight") != nullptr) {
    ZRT_CHECK_OK(find_llama3_scaling(weights, c));
  } else if (c.architecture == "phi3" && weights.find("rope_factors_short.weight") != nullptr) {
    ZRT_CHECK_OK(read_longrope(weights, m, c));
  } else if (m.rope_scaling_type != "none" || (m.rope_attn_factor != 0 && m.rope_attn_factor != 1)) {
    return fail(StatusCode::kUnavailable, "[mlc] {}: rope scaling {} of {} has no form in MLC", weights.path(),
                gguf::quoted(m.rope_scaling_type), m.architecture);
  }
  return c;
}

std::string export_chat_config(const ChatConfig& c, const TokenizerTexts& tokenizer, std::string_view chat_template) {
  const std::int64_t window = c.sliding_window > 0 ? static_cast<std::int64_t>(c.sliding_window) : -1;
  constexpr std::uint64_t kPrefillChunk = 2048;  // the default of MLC's own converter
  const std::uint64_t chunk = std::min(kPrefillChunk, c.context_length);
  ordered model{{"hidden_size", c.model_dim},
                {"intermediate_size", c.ffn_dim},
                {"num_attention_heads", c.n_heads},
                {"num_hidden_layers", c.n_layers},
                {"num_key_value_heads", c.n_kv_heads},
                {"head_dim", c.head_dim},
                {"rms_norm_eps", c.norm_eps},
                {"vocab_size", c.vocab_size},
                {"tie_word_embeddings", c.tied_embeddings},
                {"position_embedding_base", c.rope_theta},
                {"max_position_embeddings", c.context_length},
                {"context_window_size", c.context_length},
                {"prefill_chunk_size", chunk},
                {"tensor_parallel_shards", 1},
                {"max_batch_size", 1}};
  if (c.sliding_window > 0) model["sliding_window_size"] = c.sliding_window;
  if (c.rope_scaling != RopeScaling::kNone) model["rope_scaling"] = rope_scaling(c);
  if (c.architecture == "phi3") {
    model["model_type"] = c.model_type;
    model["partial_rotary_factor"] = static_cast<double>(c.rope_dim) / static_cast<double>(c.head_dim);
    if (c.rope_scaling == RopeScaling::kLongrope) model["original_max_position_embeddings"] = c.rope_original_context;
  }
  ordered out{{"version", "0.1.0"},
              {"model_type", c.model_type},
              {"quantization", c.quantization},
              {"model_config", model},
              {"vocab_size", c.vocab_size},
              {"context_window_size", c.context_length},
              {"sliding_window_size", window},
              {"prefill_chunk_size", chunk},
              {"attention_sink_size", -1},
              {"tensor_parallel_shards", 1},
              {"pipeline_parallel_stages", 1},
              {"active_vocab_size", tokenizer.n_tokens},
              {"tokenizer_files", {"tokenizer.json", "tokenizer_config.json"}},
              {"tokenizer_info",
               {{"token_postproc_method", tokenizer.byte_level ? "byte_level" : "byte_fallback"},
                {"prepend_space_in_encode", tokenizer.space_prefix},
                {"strip_space_in_decode", tokenizer.space_prefix}}},
              {"conv_template", conversation(c, tokenizer, chat_template)}};
  if (tokenizer.pad_id) out["pad_token_id"] = *tokenizer.pad_id;
  if (tokenizer.bos_id) out["bos_token_id"] = *tokenizer.bos_id;
  if (!c.eos_ids.empty()) out["eos_token_id"] = c.eos_ids;
  return out.dump(2);
}

}  // namespace zinc_rt::mlc

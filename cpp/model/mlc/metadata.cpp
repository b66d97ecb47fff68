#include "model/mlc/metadata.h"

#include "base/error.h"
#include "model/gguf/values.h"

namespace zinc_rt::mlc {
namespace {

// Returns the value of general.file_type, which is GGUF's number for the type of most matrices.
std::uint64_t file_type(const ChatConfig& c) {
  constexpr std::uint64_t kF32 = 0, kF16 = 1, kQ4_0 = 2;
  if (c.quantized_layers) return kQ4_0;
  return c.quantization == "q0f32" ? kF32 : kF16;
}

}  // namespace

Status add_model_keys(const ChatConfig& c, std::string name, gguf::Metadata& out) {
  Status status;
  const auto add = [&](std::string key, gguf::Value value) {
    if (status) status = out.add(std::move(key), std::move(value));
  };
  const auto key = [&](std::string_view tail) { return c.architecture + "." + std::string(tail); };
  add("general.architecture", gguf::string(c.architecture));
  add("general.type", gguf::string("model"));
  add("general.name", gguf::string(std::move(name)));
  add(key("context_length"), gguf::u32(c.context_length));
  add(key("embedding_length"), gguf::u32(c.model_dim));
  add(key("feed_forward_length"), gguf::u32(c.ffn_dim));
  add(key("block_count"), gguf::u32(c.n_layers));
  add(key("attention.head_count"), gguf::u32(c.n_heads));
  add(key("attention.head_count_kv"), gguf::u32(c.n_kv_heads));
  add(key("attention.layer_norm_rms_epsilon"), gguf::f32(c.norm_eps));
  if (c.head_dim * c.n_heads != c.model_dim) {
    add(key("attention.key_length"), gguf::u32(c.head_dim));
    add(key("attention.value_length"), gguf::u32(c.head_dim));
  }
  if (c.sliding_window > 0) add(key("attention.sliding_window"), gguf::u32(c.sliding_window));
  add(key("rope.dimension_count"), gguf::u32(c.rope_dim));
  add(key("rope.freq_base"), gguf::f32(c.rope_theta));
  if (c.rope_scaling == RopeScaling::kLongrope) {
    add(key("rope.scaling.original_context_length"), gguf::u32(c.rope_original_context));
    add(key("rope.scaling.attn_factor"), gguf::f32(longrope_attn_factor(c)));
  }
  add(key("vocab_size"), gguf::u32(c.vocab_size));
  add("general.file_type", gguf::u32(file_type(c)));
  add("general.quantization_version", gguf::u32(2));
  return status;
}

std::vector<std::pair<std::string, std::vector<float>>> rope_tensors(const ChatConfig& c) {
  std::vector<std::pair<std::string, std::vector<float>>> out;
  if (c.rope_scaling == RopeScaling::kLlama3) out.emplace_back("rope_freqs.weight", llama3_divisors(c));
  if (c.rope_scaling == RopeScaling::kLongrope) {
    const auto floats = [](const std::vector<double>& v) { return std::vector<float>(v.begin(), v.end()); };
    out.emplace_back("rope_factors_long.weight", floats(c.rope_long));
    out.emplace_back("rope_factors_short.weight", floats(c.rope_short));
  }
  return out;
}

}  // namespace zinc_rt::mlc

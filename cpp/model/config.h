// ModelConfig holds the shape of a model: its sizes, attention, RoPE, experts and scales. read_config() takes them from
// the metadata keys of a model file, and graph builders read only this struct, so they do not depend on metadata keys.
// Every value is checked here, so later code may multiply sizes without further checks.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/gguf/metadata.h"
#include "model/gguf/reader.h"
#include "model/gguf/tensor_info.h"

namespace zinc_rt {

// How a router's logits become likelihoods, by the numbers of the key expert_gating_func. kNone: the file does not say
// it, and the family decides.
enum class ExpertGating : std::uint8_t { kNone = 0, kSoftmax = 1, kSigmoid = 2, kSoftmaxOfChosen = 3 };

struct ModelConfig {
  // The following members are names, which the model card shows. Executors use only `architecture`, for example
  // "llama".
  std::string architecture;
  std::string name;
  std::string size_label;
  std::uint32_t file_type = 0;
  std::uint32_t quantization_version = 0;

  // The following members are the sizes of the whole model.
  std::uint32_t n_layers = 0;  // number of layers that the graph runs
  // number of multi-token prediction blocks that follow the layers in the file; they are not run
  std::uint32_t n_mtp_layers = 0;
  std::uint32_t model_dim = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t context_length = 0;

  // The following members describe attention. Each vector has one element per layer. The file may list 0 heads for
  // layers without attention, so n_kv_heads is the value of the first layer whose count is not 0.
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  std::vector<std::uint32_t> n_kv_heads_per_layer;
  std::uint32_t head_dim = 0;
  std::uint32_t v_head_dim = 0;
  std::uint32_t sliding_window = 0;    // how many tokens a query attends to, including itself; 0 means all
  std::vector<bool> is_sliding;        // true for the layers with the window; empty if the file has no such list
  std::uint32_t sliding_head_dim = 0;  // head size of the sliding layers; equals head_dim if the file gives none
  std::uint32_t sliding_v_head_dim = 0;
  // How many of the last layers compute no K and V, and read the K and V of an earlier layer.
  std::uint32_t n_shared_kv_layers = 0;
  bool is_causal = true;         // true: a token attends to itself and earlier tokens; false: to its whole text
  double attention_scale = 0;    // factor of Q times K; 0 means 1 / sqrt(head_dim)
  double attention_softcap = 0;  // scores become cap * tanh(score / cap); 0 means no cap

  // The following members describe latent attention (DeepSeek 2 and 3), which caches one compressed row for all heads.
  std::uint32_t q_lora_rank = 0;   // width of the queries' compressed row; 0: the queries are not compressed
  std::uint32_t kv_lora_rank = 0;  // width of the compressed row of keys and values; 0 in other families
  std::uint32_t mla_k_dim = 0, mla_v_dim = 0;  // sizes of a head of keys (rotated elements included) and of values

  // The following members describe RoPE (rotary positions). A member without "sliding" in its name applies to all
  // layers, or, if the model has sliding layers, to the global layers.
  std::uint32_t rope_dim = 0;  // number of leading elements of a head that are rotated; even, at most head_dim
  double rope_theta = 0;
  std::uint32_t sliding_rope_dim = 0;  // rope_dim of the sliding layers; equals their head size if the file gives none
  double sliding_rope_theta = 0;
  std::string rope_scaling_type;  // "none", "linear", "yarn" or "longrope"
  double rope_scaling_factor = 1;
  std::uint32_t rope_original_context = 0;
  double rope_attn_factor = 0;  // factor that multiplies cos and sin; 0 if the file gives none
  double rope_yarn_beta_fast = 32, rope_yarn_beta_slow = 1;
  // By how much of YaRN's factor of cos and sin these are divided again: 0 for nothing, 1 for all of it.
  double rope_yarn_log_multiplier = 0;
  // Whether positions are encoded at all; false in most hybrids of Granite 4.
  bool has_rope = true;
  // Queries are multiplied by 1 + temperature_scale * ln(1 + floor(position / rope_original_context)).
  double temperature_scale = 0;

  // The following members describe the dense feed-forward network. ffn_dim is its width in the first layer that has
  // one. It is 0 if all layers have experts instead.
  std::uint32_t ffn_dim = 0;
  std::vector<std::uint32_t> ffn_dim_per_layer;
  std::uint32_t n_experts = 0;  // number of experts per layer; 0 for a dense model
  std::uint32_t n_experts_used = 0;
  std::uint32_t expert_ffn_dim = 0;
  std::uint32_t shared_expert_ffn_dim = 0;
  double expert_weights_scale = 1;
  ExpertGating expert_gating = ExpertGating::kNone;
  std::optional<bool> expert_weights_norm;  // whether the chosen experts' weights are divided by their sum
  std::uint32_t n_expert_groups = 1, n_expert_groups_used = 1;
  std::uint32_t expert_latent_dim = 0;  // width of the rows that experts read and write; 0 means model_dim

  // The following members describe recurrent layers: the gated delta net (as in Qwen3-Next), Mamba 2, whose heads are
  // ssm_v_heads in ssm_k_heads groups with states of ssm_k_dim rows, and short convolutions (LFM2).
  std::vector<bool> is_recurrent;  // one flag per layer, in every family
  std::uint32_t ssm_conv_width = 0;
  std::uint32_t short_conv_width = 0;  // taps of a short convolution
  std::uint32_t ssm_k_heads = 0, ssm_v_heads = 0;
  std::uint32_t ssm_k_dim = 0;
  std::uint32_t ssm_inner_dim = 0;  // ssm_v_heads times the size of one value head

  // Each layer may add a vector per token from an embedding table of its own (Gemma 4). per_layer_embedding_dim is the
  // size of this vector; 0 if the model has no such table.
  std::uint32_t per_layer_embedding_dim = 0;

  // The following members describe a draft model that reads features of the model for which it guesses (EAGLE-3): the
  // inputs of some of that model's layers, side by side.
  // These layers, in ascending order; that model's n_layers stands for the output of its last layer. Empty for all other
  // models.
  std::vector<std::uint32_t> target_layers;
  std::uint32_t target_dim = 0;  // the model_dim of that model
  // Whether the file is a draft model that has no KV cache and reads that of its model (arch/gemma4_assistant.cpp).
  bool reads_target_cache = false;
  bool norm_before_fc = false;        // whether its features are normed before the first matrix
  bool norm_before_residual = false;  // whether the block's residual stream begins with normed features
  bool norm_output = false;           // whether the block's own features are those behind its final norm

  // The following members are used only by encoders, which compute embeddings.
  std::uint32_t n_token_types = 0;  // number of rows of the tensor token_types.weight; 0 if the file has no such tensor
  std::uint32_t pooling_type = 0;   // how token rows become one embedding, by base/pooling.h; 0 for no embedding

  // The following members are the constants of norms, and factors by which values are multiplied.
  double norm_eps = 0;
  double embedding_scale = 1;
  double residual_scale = 1;
  double logit_scale = 1;
  double final_logit_softcap = 0;  // logits become cap * tanh(logit / cap); 0 means no cap
  bool tied_embeddings = false;    // the output matrix is the token embedding matrix
};

// Reads the config from the metadata and checks every value. `tensors` is the file's tensor table. The table decides
// whether the embeddings are tied. vocab_size is the number of rows of the embedding matrix if no key states it.
// Errors: kNotFound for a missing key; kCorrupt or kUnavailable for a value that is not allowed.
Result<ModelConfig> read_config(const gguf::Metadata& metadata, std::span<const gguf::TensorInfo> tensors);
inline Result<ModelConfig> read_config(const gguf::GgufFile& file) {
  return read_config(file.metadata(), file.tensors());
}

}  // namespace zinc_rt

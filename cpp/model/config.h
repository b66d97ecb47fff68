// Reads the model's shape from a model file; no other code knows the file's metadata keys. Every value is checked here,
// so later code may multiply sizes without further checks.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/gguf/metadata.h"
#include "model/gguf/reader.h"
#include "model/gguf/tensor_info.h"

namespace zinc_rt {

struct ModelConfig {
  // What the model is called; shown in its model card.
  std::string architecture;
  std::string name;
  std::string size_label;
  std::uint32_t file_type = 0;
  std::uint32_t quantization_version = 0;

  // Sizes.
  std::uint32_t n_layers = 0;      // layers that are run
  std::uint32_t n_mtp_layers = 0;  // multi-token prediction blocks after them in the file, not run
  std::uint32_t model_dim = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t context_length = 0;

  // Attention. Each vector has one entry per layer. The file may give 0 heads for layers without attention, so
  // n_kv_heads is that of the first layer that has some.
  std::uint32_t n_heads = 0;
  std::uint32_t n_kv_heads = 0;
  std::vector<std::uint32_t> n_kv_heads_per_layer;
  std::uint32_t head_dim = 0;
  std::uint32_t v_head_dim = 0;
  std::uint32_t sliding_window = 0;    // how many tokens a query sees, including itself; 0: all
  std::vector<bool> is_sliding;        // which layers have the window; empty: the file does not say
  std::uint32_t sliding_head_dim = 0;  // for sliding layers; head_dim if the file gives none
  std::uint32_t sliding_v_head_dim = 0;
  std::uint32_t n_shared_kv_layers = 0;  // how many of the last layers read an earlier layer's K and V
  bool is_causal = true;                 // a token sees itself and those before it; false: all of its text
  double attention_scale = 0;            // 0: 1 / sqrt(head_dim)
  double attention_softcap = 0;          // 0: none

  // Rotary positions.
  std::uint32_t rope_dim = 0;  // leading elements of a head that are rotated; even, at most head_dim
  double rope_theta = 0;
  std::uint32_t sliding_rope_dim = 0;  // for sliding layers; their head_dim if the file gives none
  double sliding_rope_theta = 0;
  std::string rope_scaling_type;  // none, linear, yarn or longrope
  double rope_scaling_factor = 1;
  std::uint32_t rope_original_context = 0;
  double rope_attn_factor = 0;  // factor for cos and sin; 0: the file gives none
  double rope_yarn_beta_fast = 32, rope_yarn_beta_slow = 1;

  // Feed-forward. ffn_dim is that of the first layer that has one; 0 if the model has only experts.
  std::uint32_t ffn_dim = 0;
  std::vector<std::uint32_t> ffn_dim_per_layer;
  std::uint32_t n_experts = 0;  // 0: dense
  std::uint32_t n_experts_used = 0;
  std::uint32_t expert_ffn_dim = 0;
  std::uint32_t shared_expert_ffn_dim = 0;
  double expert_weights_scale = 1;

  // Recurrent layers (gated delta net).
  std::vector<bool> is_recurrent;  // empty: the file does not say
  std::uint32_t full_attention_interval = 0;
  std::uint32_t ssm_conv_width = 0;
  std::uint32_t ssm_k_heads = 0, ssm_v_heads = 0;
  std::uint32_t ssm_k_dim = 0;
  std::uint32_t ssm_inner_dim = 0;  // ssm_v_heads * dimension of a value head

  // The size of the embeddings that each layer adds; 0: none.
  std::uint32_t per_layer_embedding_dim = 0;

  // Encoders.
  std::uint32_t n_token_types = 0;  // rows of token_types.weight; 0: the model has no such tensor
  std::uint32_t pooling_type = 0;   // how rows become an embedding: a number of base/pooling.h; 0: no embeddings

  // Norms and scales.
  double norm_eps = 0;
  double embedding_scale = 1;
  double residual_scale = 1;
  double logit_scale = 1;
  double final_logit_softcap = 0;  // 0: none
  bool tied_embeddings = false;    // the output matrix is the embedding matrix
};

// Reads and checks the config. `tensors` is used to decide whether the embeddings are tied, and for vocab_size if no
// key gives it. Errors: kNotFound for a missing key; kCorrupt or kUnavailable for a value that is not allowed.
Result<ModelConfig> read_config(const gguf::Metadata& metadata, std::span<const gguf::TensorInfo> tensors);
inline Result<ModelConfig> read_config(const gguf::GgufFile& file) {
  return read_config(file.metadata(), file.tensors());
}

}  // namespace zinc_rt

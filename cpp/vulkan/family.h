// Describes what each model family computes, as read from the config. walk.h follows the description. It is written
// independently of cpp/arch and its graphs, so that the two backends check each other.
// Thread rule: plain values and pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/common/push.h"
#include "vulkan/rope.h"

namespace zinc_rt::vulkan {

// Mixer tells how a layer combines information of different tokens.
enum class Mixer : std::uint8_t { kAttention, kDeltaNet, kCount };
enum class FeedForward : std::uint8_t { kDense, kExperts, kDenseAndExperts, kCount };

struct LayerShape {
  Mixer mixer = Mixer::kAttention;
  FeedForward feed_forward = FeedForward::kDense;
  std::uint32_t n_kv_heads = 0, head_dim = 0, v_head_dim = 0;
  std::uint32_t ffn_dim = 0;      // width of the dense feed-forward layer
  std::uint32_t window = 0;       // how many positions a token attends to; 0: all
  int rope_table = 0;             // index in ModelShape::rope_tables; -1: positions are not encoded
  std::uint32_t cache_layer = 0;  // number of the layer whose K and V this layer reads: itself or an earlier layer
};

// DeltaShape holds the sizes of recurrent layers, which apply the gated delta rule after a short convolution.
struct DeltaShape {
  std::uint32_t n_k_heads = 0, n_v_heads = 0, k_dim = 0, v_dim = 0;
  std::uint32_t conv_width = 0;
  // Returns the channels of q, k and v together.
  std::uint32_t channels() const { return 2 * n_k_heads * k_dim + n_v_heads * v_dim; }
};

struct ExpertShape {
  std::uint32_t n = 0, n_used = 0, ffn_dim = 0, shared_ffn_dim = 0;
  float weights_scale = 1;
};

struct ModelShape {
  std::string_view family;  // the family's name, for display
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  float attention_scale = 1;
  bool is_neox = false;         // RoPE rotates pairs (i, i + n_rot/2); otherwise (2i, 2i + 1)
  bool has_post_norms = false;  // attention and feed-forward are followed by a norm too
  bool has_value_norm = false;  // heads of V are normed too, without weights
  // True if the tensor attn_q also computes a gate for each head. Attention's output is multiplied by the gate.
  bool has_query_gate = false;
  bool has_layer_scale = false;            // a layer may scale the residual stream at its end
  std::string_view ffn_norm = "ffn_norm";  // the tensor of the norm before the feed-forward
  std::uint32_t layer_embedding_dim = 0;   // width of the embeddings that each layer adds; 0: none
  zinc_rt::push::Activation activation = zinc_rt::push::kSilu;
  DeltaShape delta;
  ExpertShape experts;
  std::vector<LayerShape> layers;
  // rope_tables[t][v] holds the angles of variant v of table t. The length of the text decides which variant is used.
  std::vector<std::vector<RopeAngles>> rope_tables;
  std::uint64_t variant_limit = 0;  // texts with more tokens use variant 1; 0: the tables have one variant
  // Names of the tensors that describe() has read, besides those of layers and head.
  std::vector<std::string_view> used_tensors;
};

// Returns the shape of a model. Errors: kUnavailable, naming what this backend does not support.
Result<ModelShape> describe(const ModelConfig& config, const Weights& weights);

std::uint32_t rope_variant(const ModelShape& shape, std::uint64_t n_tokens);
// Returns ExecutorInfo::rope_limits: the text lengths, in tokens, at which the RoPE variant changes.
std::vector<std::uint32_t> rope_limits(const ModelShape& shape, std::uint32_t max_context);

}  // namespace zinc_rt::vulkan

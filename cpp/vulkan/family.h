// What each model family computes, read from its config: the shape that forward.h walks. It is written a second time
// here, without the graphs of the other backend, so that the two check each other.
// Thread rule: plain values and pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/common/push.h"
#include "model/config.h"
#include "model/weights.h"

namespace zinc_rt::vulkan {

// Position p turns pair i by p * frequencies[i]; cosine and sine are times magnitude.
struct RopeAngles {
  std::vector<double> frequencies;
  double magnitude = 1;
};

struct LayerShape {
  std::uint32_t n_kv_heads = 0, ffn_dim = 0;
  std::uint32_t window = 0;  // tokens that one sees; 0: all
  int rope_table = 0;        // in ModelShape::rope_tables; -1: positions are not encoded
};

struct ModelShape {
  std::string_view family;  // for people
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  float attention_scale = 1;
  bool is_neox = false;         // RoPE rotates pairs (i, i + n_rot/2), else (2i, 2i + 1)
  bool has_post_norms = false;  // norms after attention and feed-forward too
  zinc_rt::push::Activation activation = zinc_rt::push::kSilu;
  std::vector<LayerShape> layers;
  // Each with its variants: which one is used depends on the length of the text.
  std::vector<std::vector<RopeAngles>> rope_tables;
  std::uint64_t variant_limit = 0;             // texts longer than this use variant 1; 0: there is one variant
  std::vector<std::string_view> used_tensors;  // what went into this, beside the layers' and the head's
};

// Errors: kUnavailable by the name of what this backend does not have.
Result<ModelShape> describe(const ModelConfig& config, const Weights& weights);

std::uint32_t rope_variant(const ModelShape& shape, std::uint64_t n_tokens);
// As ExecutorInfo::rope_limits.
std::vector<std::uint32_t> rope_limits(const ModelShape& shape, std::uint32_t max_context);
// Pairs of cosine and sine of each variant's positions: row v * n_positions + p.
std::vector<float> rope_rows(const std::vector<RopeAngles>& variants, std::uint32_t n_positions);

}  // namespace zinc_rt::vulkan

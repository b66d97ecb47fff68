#include "vulkan/model_tensors.h"

#include <algorithm>

#include "base/error.h"
#include "model/config_keys.h"

namespace zinc_rt::vulkan {
namespace {

// The types of weights that the kernels read (kernels/vulkan/types.glsl).
constexpr DType kWeights[] = {DType::kF32,  DType::kF16,    DType::kBF16,   DType::kQ4_0,  DType::kQ4_1,   DType::kQ5_0,
                              DType::kQ5_1, DType::kQ8_0,   DType::kQ2_K,   DType::kQ3_K,  DType::kQ4_K,   DType::kQ5_K,
                              DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4, DType::kFixed16};

class Finder {
 public:
  Finder(const ModelConfig& config, const ModelShape& shape, const Weights& weights)
      : c_(config), shape_(shape), weights_(weights) {}

  Result<ModelTensors> find() {
    found_.embeddings = matrix("token_embd.weight", c_.model_dim, c_.vocab_size);
    found_.output_norm = vector("output_norm.weight", c_.model_dim);
    found_.head.weight = c_.tied_embeddings ? found_.embeddings : matrix("output.weight", c_.model_dim, c_.vocab_size);
    found_.head.n_rows = c_.vocab_size;
    if (const std::uint32_t n = shape_.layer_embedding_dim; n > 0) {
      found_.layer_embeddings = matrix("per_layer_token_embd.weight", n * c_.n_layers, c_.vocab_size);
      found_.layer_embed_projection = product("per_layer_model_proj", c_.model_dim, n * c_.n_layers);
      found_.layer_embed_norm = vector("per_layer_proj_norm.weight", n);
    }
    for (std::uint32_t i = 0; i < c_.n_layers; ++i) {
      prefix_ = fmt::format("blk.{}.", i);
      layer(shape_.layers[i], i);
    }
    if (!status_) return std::unexpected(status_.error());
    for (const Tensor& tensor : weights_.all()) {
      const bool is_used = std::ranges::find(found_.all, &tensor) != found_.all.end() ||
                           std::ranges::find(shape_.used_tensors, tensor.name) != shape_.used_tensors.end() ||
                           is_of_prediction(tensor.name) || is_of_other_part(tensor.name);
      if (!is_used)
        return fail(StatusCode::kUnavailable, "[vulkan] {}: tensor {} has no use in this backend", c_.architecture,
                    tensor.name);
    }
    return std::move(found_);
  }

 private:
  // Returns whether a tensor belongs to a block for multi-token prediction. Such blocks follow the last layer in the
  // file and are not run.
  bool is_of_prediction(std::string_view name) const {
    for (std::uint32_t i = 0; i < c_.n_mtp_layers; ++i)
      if (name.starts_with(fmt::format("blk.{}.", c_.n_layers + i))) return true;
    return false;
  }

  void layer(const LayerShape& shape, std::uint32_t number) {
    LayerTensors& l = found_.layers.emplace_back();
    const std::uint32_t d = c_.model_dim;
    l.attn_norm = vector(prefix_ + "attn_norm.weight", d);
    l.ffn_norm = vector(fmt::format("{}{}.weight", prefix_, shape_.ffn_norm), d);
    if (shape_.has_post_norms) {
      l.attn_post_norm = vector(prefix_ + "post_attention_norm.weight", d);
      l.ffn_post_norm = vector(prefix_ + "post_ffw_norm.weight", d);
    }
    if (shape.mixer == Mixer::kAttention)
      attention(shape, shape.cache_layer == number, l.attention);
    else
      delta_net(l.delta);
    if (shape.feed_forward != FeedForward::kExperts) dense(shape.ffn_dim, l);
    if (shape.feed_forward != FeedForward::kDense) experts(l.experts);
    if (shape.feed_forward == FeedForward::kDenseAndExperts) {
      l.experts.router_scale = vector(prefix_ + "ffn_gate_inp.scale", d);
      l.experts.norm = vector(prefix_ + "pre_ffw_norm_2.weight", d);
      l.experts.dense_post_norm = vector(prefix_ + "post_ffw_norm_1.weight", d);
      l.experts.post_norm = vector(prefix_ + "post_ffw_norm_2.weight", d);
    }
    if (const std::uint32_t n = shape_.layer_embedding_dim; n > 0) {
      l.embed_gate = product("inp_gate", d, n);
      l.embed_output = product("proj", n, d);
      l.embed_post_norm = vector(prefix_ + "post_norm.weight", d);
    }
    if (shape_.has_layer_scale) l.scale = optional_vector(prefix_ + "layer_output_scale.weight", 1);
  }

  void attention(const LayerShape& shape, bool has_cache, AttentionTensors& a) {
    const std::uint32_t d = c_.model_dim, n_q = c_.n_heads * shape.head_dim * (shape_.has_query_gate ? 2 : 1),
                        n_k = shape.n_kv_heads * shape.head_dim, n_v = shape.n_kv_heads * shape.v_head_dim;
    a.q_norm = optional_vector(prefix_ + "attn_q_norm.weight", shape.head_dim);
    a.output = product("attn_output", c_.n_heads * shape.v_head_dim, d);
    if (const std::string fused = prefix_ + "attn_qkv.weight"; weights_.find(fused) != nullptr) {
      const Tensor* all = matrix(fused, d, n_q + n_k + n_v);
      a.q = {all, nullptr, 0, n_q};
      a.k = {all, nullptr, n_q, n_k};
      a.v = {all, nullptr, n_q + n_k, n_v};
    } else {
      a.q = product("attn_q", d, n_q);
      if (has_cache) a.k = product("attn_k", d, n_k);
      // If values are normed, the file may lack the v projection, and values are computed from k's product.
      if (has_cache && (!shape_.has_value_norm || weights_.find(prefix_ + "attn_v.weight") != nullptr))
        a.v = product("attn_v", d, n_v);
    }
    if (has_cache) a.k_norm = optional_vector(prefix_ + "attn_k_norm.weight", shape.head_dim);
  }

  void delta_net(DeltaTensors& t) {
    const DeltaShape& s = shape_.delta;
    const std::uint32_t d = c_.model_dim;
    t.qkv = product("attn_qkv", d, s.channels());
    t.z = product("attn_gate", d, s.n_v_heads * s.v_dim);
    if (weights_.find(prefix_ + "ssm_ba.weight") != nullptr) {
      t.beta_alpha = product("ssm_ba", d, 2 * s.n_v_heads);
    } else {
      t.beta = product("ssm_beta", d, s.n_v_heads);
      t.alpha = product("ssm_alpha", d, s.n_v_heads);
    }
    t.conv = floats(prefix_ + "ssm_conv1d.weight", {s.conv_width, s.channels()});
    t.a = vector(prefix_ + "ssm_a", s.n_v_heads);
    t.dt = vector(prefix_ + "ssm_dt.bias", s.n_v_heads);
    t.norm = vector(prefix_ + "ssm_norm.weight", s.v_dim);
    t.output = product("ssm_out", s.n_v_heads * s.v_dim, d);
  }

  void dense(std::uint32_t f, LayerTensors& l) {
    const std::uint32_t d = c_.model_dim;
    if (weights_.find(prefix_ + "ffn_gate.weight") != nullptr) {
      l.gate = product("ffn_gate", d, f);
      l.up = product("ffn_up", d, f);
    } else {
      const Tensor* both = matrix(prefix_ + "ffn_up.weight", d, 2 * f);
      l.gate = {both, nullptr, 0, f};
      l.up = {both, nullptr, f, f};
    }
    l.down = product("ffn_down", f, d);
  }

  void experts(ExpertTensors& t) {
    const ExpertShape& e = shape_.experts;
    const std::uint32_t d = c_.model_dim, f = e.ffn_dim;
    t.router = product("ffn_gate_inp", d, e.n);
    if (const std::string fused = prefix_ + "ffn_gate_up_exps.weight"; weights_.find(fused) != nullptr) {
      const Tensor* both = matrix(fused, d, 2 * f, e.n);
      t.gate = {both, nullptr, 0, f};
      t.up = {both, nullptr, f, f};
    } else {
      t.gate = {matrix(prefix_ + "ffn_gate_exps.weight", d, f, e.n), nullptr, 0, f};
      t.up = {matrix(prefix_ + "ffn_up_exps.weight", d, f, e.n), nullptr, 0, f};
    }
    t.down = {matrix(prefix_ + "ffn_down_exps.weight", f, d, e.n), nullptr, 0, d};
    t.down_scale = optional_vector(prefix_ + "ffn_down_exps.scale", e.n);
    if (weights_.find(prefix_ + "ffn_up_shexp.weight") == nullptr) return;
    t.shared_gate = product("ffn_gate_shexp", d, e.shared_ffn_dim);
    t.shared_up = product("ffn_up_shexp", d, e.shared_ffn_dim);
    t.shared_down = product("ffn_down_shexp", e.shared_ffn_dim, d);
    if (const Tensor* router = optional_vector(prefix_ + "ffn_gate_inp_shexp.weight", d); router != nullptr)
      t.shared_router = {router, nullptr, 0, 1};
  }

  Product product(std::string_view name, std::uint32_t k, std::uint32_t n) {
    return {matrix(fmt::format("{}{}.weight", prefix_, name), k, n),
            optional_vector(fmt::format("{}{}.bias", prefix_, name), n), 0, n};
  }

  // Returns a tensor that must exist. After the first error it returns null for every tensor, and find() reports that
  // error.
  const Tensor* require(const std::string& name, std::initializer_list<std::uint64_t> dims) {
    if (!status_) return nullptr;
    const auto tensor = weights_.require(name, dims);
    if (!tensor) {
      status_ = std::unexpected(tensor.error());
      return nullptr;
    }
    if (std::ranges::find(found_.all, *tensor) == found_.all.end()) found_.all.push_back(*tensor);
    return *tensor;
  }
  const Tensor* matrix(const std::string& name, std::uint32_t k, std::uint32_t n, std::uint32_t n_matrices = 1) {
    const Tensor* tensor = require(name, {k, n, n_matrices});
    if (tensor != nullptr && !traits(tensor->dtype).is_weight)
      status_ = fail(StatusCode::kUnavailable, "[vulkan] tensor {} is of type {}, which no matrix has", name,
                     to_string(tensor->dtype));
    else if (tensor != nullptr && std::ranges::find(kWeights, tensor->dtype) == std::end(kWeights))
      status_ =
          fail(StatusCode::kUnavailable, "[vulkan] tensor {} is of type {}, for which this backend has no kernels",
               name, to_string(tensor->dtype));
    return tensor;
  }
  const Tensor* vector(const std::string& name, std::uint32_t n) { return floats(name, {n}); }
  const Tensor* floats(const std::string& name, std::initializer_list<std::uint64_t> dims) {
    const Tensor* tensor = require(name, dims);
    if (tensor != nullptr && tensor->dtype != DType::kF32)
      status_ = fail(StatusCode::kUnavailable, "[vulkan] tensor {} is of type {}, f32 is supported", name,
                     to_string(tensor->dtype));
    return tensor;
  }
  const Tensor* optional_vector(const std::string& name, std::uint32_t n) {
    return weights_.find(name) == nullptr ? nullptr : vector(name, n);
  }

  const ModelConfig& c_;
  const ModelShape& shape_;
  const Weights& weights_;
  std::string prefix_;
  ModelTensors found_;
  Status status_;
};

}  // namespace

Result<ModelTensors> find_tensors(const ModelConfig& config, const ModelShape& shape, const Weights& weights) {
  return Finder(config, shape, weights).find();
}

}  // namespace zinc_rt::vulkan

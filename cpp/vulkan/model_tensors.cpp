#include "vulkan/model_tensors.h"

#include <algorithm>

#include "base/error.h"

namespace zinc_rt::vulkan {
namespace {

class Finder {
 public:
  Finder(const ModelConfig& config, const ModelShape& shape, const Weights& weights)
      : c_(config), shape_(shape), weights_(weights) {}

  Result<ModelTensors> find() {
    found_.embeddings = matrix("token_embd.weight", c_.model_dim, c_.vocab_size);
    found_.output_norm = vector("output_norm.weight", c_.model_dim);
    found_.head.weight = c_.tied_embeddings ? found_.embeddings : matrix("output.weight", c_.model_dim, c_.vocab_size);
    found_.head.n_rows = c_.vocab_size;
    for (std::uint32_t i = 0; i < c_.n_layers; ++i) {
      prefix_ = fmt::format("blk.{}.", i);
      layer(shape_.layers[i]);
    }
    if (!status_) return std::unexpected(status_.error());
    for (const Tensor& tensor : weights_.all()) {
      const bool is_used = std::ranges::find(found_.all, &tensor) != found_.all.end() ||
                           std::ranges::find(shape_.used_tensors, tensor.name) != shape_.used_tensors.end();
      if (!is_used)
        return fail(StatusCode::kUnavailable, "[vulkan] {}: tensor {} has no use in this backend", c_.architecture,
                    tensor.name);
    }
    return std::move(found_);
  }

 private:
  void layer(const LayerShape& shape) {
    LayerTensors& l = found_.layers.emplace_back();
    const std::uint32_t d = c_.model_dim, f = shape.ffn_dim;
    const std::uint32_t n_q = c_.n_heads * c_.head_dim, n_k = shape.n_kv_heads * c_.head_dim,
                        n_v = shape.n_kv_heads * c_.v_head_dim;
    l.attn_norm = vector(prefix_ + "attn_norm.weight", d);
    l.ffn_norm = vector(prefix_ + "ffn_norm.weight", d);
    l.q_norm = optional_vector(prefix_ + "attn_q_norm.weight", c_.head_dim);
    l.k_norm = optional_vector(prefix_ + "attn_k_norm.weight", c_.head_dim);
    if (shape_.has_post_norms) {
      l.attn_post_norm = vector(prefix_ + "post_attention_norm.weight", d);
      l.ffn_post_norm = vector(prefix_ + "post_ffw_norm.weight", d);
    }
    if (const std::string fused = prefix_ + "attn_qkv.weight"; weights_.find(fused) != nullptr) {
      const Tensor* all = matrix(fused, d, n_q + n_k + n_v);
      l.q = {all, nullptr, 0, n_q};
      l.k = {all, nullptr, n_q, n_k};
      l.v = {all, nullptr, n_q + n_k, n_v};
    } else {
      l.q = product("attn_q", d, n_q);
      l.k = product("attn_k", d, n_k);
      l.v = product("attn_v", d, n_v);
    }
    l.attn_output = product("attn_output", c_.n_heads * c_.v_head_dim, d);
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

  Product product(std::string_view name, std::uint32_t k, std::uint32_t n) {
    return {matrix(fmt::format("{}{}.weight", prefix_, name), k, n),
            optional_vector(fmt::format("{}{}.bias", prefix_, name), n), 0, n};
  }

  // After a first error null is returned for everything; find() reports it.
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
  const Tensor* matrix(const std::string& name, std::uint32_t k, std::uint32_t n) {
    const Tensor* tensor = require(name, {k, n});
    if (tensor != nullptr && !traits(tensor->dtype).is_weight)
      status_ = fail(StatusCode::kUnavailable, "[vulkan] tensor {} is of type {}, which no matrix has", name,
                     to_string(tensor->dtype));
    return tensor;
  }
  const Tensor* vector(const std::string& name, std::uint32_t n) {
    const Tensor* tensor = require(name, {n});
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

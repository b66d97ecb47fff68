// The walk over a model: what a layer does, as dispatches and barriers. A part of a layer is a file.
// Thread rule: as Device.
#pragma once

#include "kernels/vulkan/push.h"
#include "vulkan/forward.h"

namespace zinc_rt::vulkan {

inline std::uint32_t parts(std::uint64_t n, std::uint32_t size) {
  return static_cast<std::uint32_t>((n + size - 1) / size);
}
inline std::uint32_t as_constant(DType dtype) {
  return static_cast<std::uint32_t>(dtype);
}

// Records commands, and before that collects the kernels that they use: the walk is the same.
struct Forward::Walk {
  Device& device;
  const MemoryRequest& model;
  const ModelMemory& memory;
  bool is_quantized;
  std::vector<Counts>& counts;
  Kind kind = kOne;                          // of the step's tokens, in the head of its output rows
  std::vector<KernelKey>* wanted = nullptr;  // collecting
  Recorder* recorder = nullptr;              // recording

  // A product and where it goes.
  struct Target {
    const Product& product;
    Place y;
  };

  // walk.cpp
  void embeddings();
  void layer(std::size_t i);
  void head();
  // `n` workgroups a row; with is_by_rows they are the second dimension of the grid.
  template <class Push>
  void dispatch(std::string_view kernel, std::vector<std::uint32_t> constants, std::uint32_t n, Rows rows,
                const Push& push, bool is_by_rows = false);
  void barrier() {
    if (recorder != nullptr) recorder->barrier();
  }
  Address at(Place place) const { return memory.address(place); }
  Address at(const Tensor* tensor) const { return tensor == nullptr ? 0 : memory.address(memory.weights.at(tensor)); }
  const LayerShape& shape_of(std::size_t i) const { return model.shape.layers[i]; }

  // Those below end without a barrier; products() also begins with one, after its rows are quantized.
  void embed(const Tensor* table, float scale, Place y);
  void norm(Place x, const Tensor* weight, Place y, std::uint32_t width, std::uint32_t group,
            Rows rows = Rows::kTokens);
  // All of them from the same rows x, each in the form that its weights want.
  void products(Place x, std::initializer_list<Target> targets, Rows rows = Rows::kTokens);
  // Of each token's chosen experts; x has a row a token, or one a choice.
  void expert_products(Place x, bool is_by_choice, std::initializer_list<Target> targets);
  void scale(Place x, std::uint32_t width, float factor, Rows rows = Rows::kTokens, const Tensor* weight = nullptr);
  void add(Place x, Place y, std::uint32_t width);
  void glu(Place gate, Place up, Place y, std::uint32_t width, std::uint32_t activation);
  // y = the columns [first, first + width) of each group of x.
  void slice(Place x, Place y, std::uint32_t n_groups, std::uint32_t group, std::uint32_t first, std::uint32_t width);
  // x times the sigmoid of gate, which has one number a row or as many as x.
  void sigmoid_mul(Place x, Place gate, std::uint32_t width, std::uint32_t gate_width);
  // The residual stream takes what a part of a layer made; ends with a barrier.
  void add_to_stream(Place y, const Tensor* post_norm);

  // walk_attention.cpp
  void attention(std::size_t i);
  void rotate(Place x, std::uint32_t n_heads, std::uint32_t head_dim, int table);
  void write_cache(std::size_t i);
  void attend(std::size_t i);

  // walk_delta_net.cpp
  void delta_net(std::size_t i);

  // walk_feed_forward.cpp: the streams a.x in, a.y or a.expert_sum out
  void dense(std::size_t i);
  void experts(std::size_t i);
  void dense_and_experts(std::size_t i);
  void dense_product(std::size_t i);
  void expert_product(std::size_t i, Place router_input, Place x);
  void shared_expert(std::size_t i);
  void layer_embeddings();
  void add_layer_embedding(std::size_t i);

 private:
  DType form_of(const Product& product) const { return is_quantized ? act_dtype(product.weight->dtype) : DType::kF32; }
  Place rows_in(DType form, Place x) const;
  void quantize_for(Place x, std::uint32_t width, std::initializer_list<Target> targets, Rows rows);
  // Workgroups of linear.glsl for so many rows of a matrix.
  std::uint32_t linear_groups(std::uint32_t n_rows) const {
    return parts(n_rows, push::kLinearWidth / device.info().subgroup_size * push::kLinearRows);
  }
};

template <class Push>
void Forward::Walk::dispatch(std::string_view kernel, std::vector<std::uint32_t> constants, std::uint32_t n, Rows rows,
                             const Push& push, bool is_by_rows) {
  const KernelKey key{kernel, std::move(constants)};
  if (wanted != nullptr) {
    wanted->push_back(key);
    return;
  }
  recorder->dispatch(device.pipeline(key), push, memory.buffers[memory.step.counts.region].handle,
                     memory.step.counts.offset + count_offset(counts, {n, rows, is_by_rows}));
}

}  // namespace zinc_rt::vulkan

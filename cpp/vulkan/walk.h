// Walk goes through a model once and issues the dispatches and barriers of each layer. Each part of a layer has its own
// .cpp file.
// Thread rule: one thread at a time, as for Device.
#pragma once

#include <algorithm>

#include "kernels/vulkan/push.h"
#include "vulkan/forward.h"

namespace zinc_rt::vulkan {

inline std::uint32_t parts(std::uint64_t n, std::uint32_t size) {
  return static_cast<std::uint32_t>((n + size - 1) / size);
}
inline std::uint32_t as_constant(DType dtype) {
  return static_cast<std::uint32_t>(dtype);
}

// Forward runs a walk twice: the first time it collects the kernels that are needed, the second time it records the
// commands.
struct Forward::Walk {
  Device& device;
  const MemoryRequest& model;
  const ModelMemory& memory;
  bool is_quantized;
  std::vector<Counts>& counts;
  Kind kind = kOne;  // depends on the number of the step's tokens; in the head, on the number of output rows
  std::vector<KernelKey>* wanted = nullptr;  // list to which each needed kernel is added; null while recording
  Recorder* recorder = nullptr;              // null while kernels are collected
  std::optional<Location> waiting = {};      // a result that the next norm will add to the residual stream

  // Target is a product, and the location to which its result is written.
  struct Target {
    const Product& product;
    Location y;
  };
  // Source is the rows that products read. They may exist as floats, as a quantized type, or as both.
  struct Source {
    Location x;
    DType form = DType::kF32;
    bool has_floats = true;
  };
  using Readers = std::initializer_list<const Product*>;  // products without a weight are ignored

  // walk.cpp defines the next functions: the parts of a walk in their order, and the dispatch.
  void embeddings();
  void layer(std::size_t i);
  void head();
  void largest_logits();
  void copy_logits();
  template <class Push>
  void dispatch(std::string_view kernel, std::vector<std::uint32_t> constants, std::uint32_t n, Rows rows,
                const Push& push, Grid grid = Grid::kPlain);
  void barrier() {
    if (recorder != nullptr) recorder->barrier();
  }
  Address at(Location location) const { return memory.address(location); }
  Address at(const Tensor* tensor) const { return tensor == nullptr ? 0 : memory.address(memory.weights.at(tensor)); }
  const LayerShape& shape_of(std::size_t i) const { return model.shape.layers[i]; }

  // The functions below end without a barrier. Only products() issues a barrier inside, after the rows are quantized.
  void embed(const Tensor* table, float scale, Location y);
  void norm(Location x, const Tensor* weight, Location y, std::uint32_t width, std::uint32_t group);
  // Computes several products of the same rows. Each product reads the rows in the type that its weights need.
  void products(const Source& x, std::initializer_list<Target> targets, Rows rows = Rows::kTokens);
  // Computes the products of each token's chosen experts. x has one row per token or, if is_by_choice is true, one row
  // per choice.
  void expert_products(const Source& x, bool is_by_choice, std::initializer_list<Target> targets);
  void scale(Location x, std::uint32_t width, float factor, Rows rows = Rows::kTokens, const Tensor* weight = nullptr);
  void add(Location x, Location y, std::uint32_t width);
  // Computes act(gate) * up, in the type that the product `reader` needs. As floats, the result overwrites the gate.
  Source glu_for(const Product& reader, Location gate, Location up, std::uint32_t width, std::uint32_t activation,
                 Rows rows = Rows::kTokens);
  // Copies the columns [first, first + width) of each group of x to y.
  void slice(Location x, Location y, std::uint32_t n_groups, std::uint32_t group, std::uint32_t first,
             std::uint32_t width);
  // Multiplies x by the sigmoid of gate. gate has one number per row, or as many as x.
  void sigmoid_mul(Location x, Location gate, std::uint32_t width, std::uint32_t gate_width);

  // The next functions handle the residual stream. The result of a part of a layer is not added at once. It is added
  // when the stream is next read, by the kernel that also computes the norm. Until then the result must not change.
  void add_to_stream(Location y, const Tensor* post_norm);
  // Adds a result that is still waiting to the stream in `hidden`. Ends with a barrier.
  void settle_stream();
  // Writes the stream's norm to a.x in the types that the readers need, without a barrier. Rows::kOutputs: only for the
  // output rows.
  Source norm_stream(const Tensor* weight, Readers readers, bool wants_floats = false, Rows rows = Rows::kTokens);

  // walk_attention.cpp defines the next functions: attention layers.
  void attention(std::size_t i);
  // Norms the heads, applies RoPE, and writes the cells of the layer's cache.
  void place_heads(std::size_t i);
  void attend(std::size_t i);

  // walk_delta_net.cpp defines this function: recurrent layers.
  void delta_net(std::size_t i);

  // walk_feed_forward.cpp defines the next functions: feed-forward layers, experts, and the embeddings that layers add.
  void dense(std::size_t i);
  void experts(std::size_t i);
  void dense_and_experts(std::size_t i);
  void dense_product(std::size_t i, const Source& x);
  void expert_product(std::size_t i, const Source& router_input, const Source& x);
  void shared_expert(std::size_t i, const Source& x);
  void layer_embeddings();
  void add_layer_embedding(std::size_t i);

 private:
  DType form_of(const Product& product) const { return is_quantized ? act_dtype(product.weight->dtype) : DType::kF32; }
  Location rows_in(DType form, Location x) const;
  // Returns the quantized type that readers need, and whether any reader needs floats.
  Source forms_for(Location x, std::span<const Product* const> readers) const;
  void quantize_for(const Source& x, std::uint32_t width, std::initializer_list<Target> targets, Rows rows);
  // Computes z = norm(x + y), or norm(x) if y is absent.
  void residual_norm(Location x, std::optional<Location> y, const Tensor* weight, const Source& z, Rows rows);
  static bool has_groups(DType form) { return form == DType::kQ8A256 || form == DType::kQ16A256; }
  // Returns the workgroup size of linear_row.glsl for rows of k values: eight invocations per group of 256 values,
  // rounded up to whole subgroups.
  std::uint32_t row_width(std::uint32_t k) const {
    const std::uint32_t whole = std::max(32u, device.info().subgroup_size);
    return std::min(parts(k, 256 * whole / 8) * whole, push::kRowWidth);
  }
  // Returns how many workgroups linear.glsl needs for this many rows of a matrix.
  std::uint32_t linear_groups(std::uint32_t n_rows) const {
    return parts(n_rows, push::kLinearWidth / device.info().subgroup_size * push::kLinearRows);
  }
};

template <class Push>
void Forward::Walk::dispatch(std::string_view kernel, std::vector<std::uint32_t> constants, std::uint32_t n, Rows rows,
                             const Push& push, Grid grid) {
  const KernelKey key{kernel, std::move(constants)};
  if (wanted != nullptr) {
    wanted->push_back(key);
    return;
  }
  recorder->dispatch(device.pipeline(key), push, memory.buffers[memory.step.counts.region].handle,
                     memory.step.counts.offset + count_offset(counts, {n, rows, grid}));
}

}  // namespace zinc_rt::vulkan

#include "arch/builder.h"

#include <algorithm>

#include "base/error.h"
#include "ir/op_rules.h"
#include "kernels/common/kv_page.h"
#include "model/config_keys.h"

namespace zinc_rt::arch {

using ir::BufferClass;
using ir::Dim;
using ir::Node;
using ir::Op;

Builder::Builder(std::string name, const ModelConfig& config, const Weights& weights, const GraphOptions& options)
    : config_(config), weights_(weights), options_(options), graph_(std::move(name), options.stage) {
  token_ids_ = request("token_ids", DType::kI32, {ir::kTokens});
  positions_ = request("positions", DType::kI32, {ir::kTokens});
  slots_ = request("slots", DType::kI32, {ir::kTokens});
  page_table_ = request("page_table", DType::kI32, {options.max_slots, options.max_context / kPageTokens});
}

BufferId Builder::declare(std::string name, BufferClass buffer_class, DType dtype, std::initializer_list<Dim> dims,
                          std::string tensor) {
  ir::Buffer buffer;
  const bool is_row =
      buffer_class == BufferClass::kOutput && (name == "logits" || name == "embeddings" || name == "features");
  buffer.name = std::string(is_row ? "out." : ir::name_prefix(buffer_class)) + std::move(name);
  buffer.tensor = std::move(tensor);
  buffer.buffer_class = buffer_class;
  buffer.dtype = dtype;
  for (const Dim dim : dims) buffer.dims[buffer.rank++] = dim;
  return graph_.add_buffer(std::move(buffer));
}

BufferId Builder::weight(std::string name, const std::string& tensor, std::initializer_list<std::uint64_t> dims) {
  const BufferId id = optional_weight(std::move(name), tensor, dims);
  if (id == ir::kNoBuffer && status_)
    status_ = fail(StatusCode::kCorrupt, "[arch] {}: tensor \"{}\" is missing", config_.architecture, tensor);
  return id;
}

BufferId Builder::optional_weight(std::string name, const std::string& tensor,
                                  std::initializer_list<std::uint64_t> dims) {
  return has_tensor(tensor) ? add_weight(std::move(name), tensor, 0, 0, dims) : ir::kNoBuffer;
}

void Builder::optional_f32(std::string name, const std::string& tensor, std::initializer_list<std::uint64_t> dims) {
  const BufferId id = optional_weight(std::move(name), tensor, dims);
  if (id != ir::kNoBuffer && graph_.buffer(id).dtype != DType::kF32)
    refuse(
        fmt::format("tensor \"{}\" of type {} is not supported, f32 is", tensor, to_string(graph_.buffer(id).dtype)));
}

BufferId Builder::weight_rows(std::string name, const std::string& tensor, std::uint64_t first, std::uint64_t n_rows,
                              std::initializer_list<std::uint64_t> dims) {
  if (!has_tensor(tensor)) return weight(std::move(name), tensor, dims);
  return add_weight(std::move(name), tensor, first, n_rows, dims);
}

BufferId Builder::add_weight(std::string name, const std::string& tensor, std::uint64_t first, std::uint64_t n_rows,
                             std::initializer_list<std::uint64_t> dims) {
  const Tensor* found = weights_.find(tensor);
  used_tensors_.insert(tensor);
  std::vector<std::uint64_t> wanted(dims), there(found->dims.begin(), found->dims.begin() + found->n_dims);
  std::ranges::reverse(there);
  while (there.size() > wanted.size() && there.front() == 1) there.erase(there.begin());
  // A file may store a matrix with a single row as a vector, so leading extents of 1 are added to its shape.
  while (there.size() < wanted.size() && wanted[wanted.size() - there.size() - 1] == 1) there.insert(there.begin(), 1);
  if (n_rows > 0) wanted[wanted.size() - 2] = n_rows;
  if (there != wanted && status_)
    status_ = fail(StatusCode::kCorrupt, "[arch] {}: tensor \"{}\" has shape [{}], [{}] wanted", config_.architecture,
                   tensor, fmt::join(there, ", "), fmt::join(wanted, ", "));
  ir::Buffer buffer;
  buffer.name = "model." + std::move(name);
  buffer.tensor = tensor;
  buffer.buffer_class = BufferClass::kWeight;
  buffer.dtype = found->dtype;
  for (const auto dim : dims) buffer.dims[buffer.rank++] = static_cast<std::uint32_t>(dim);
  buffer.first_row = static_cast<std::uint32_t>(first);
  buffer.tensor_rows = static_cast<std::uint32_t>(n_rows);
  return graph_.add_buffer(std::move(buffer));
}

BufferId Builder::constant(std::string name, std::initializer_list<Dim> dims) {
  return declare(std::move(name), BufferClass::kConstant, DType::kF32, dims);
}
BufferId Builder::state(std::string name, DType dtype, std::initializer_list<Dim> dims) {
  return declare(std::move(name), BufferClass::kState, dtype, dims);
}
BufferId Builder::request(std::string name, DType dtype, std::initializer_list<Dim> dims) {
  return declare(std::move(name), BufferClass::kRequest, dtype, dims);
}
BufferId Builder::output(std::string name, DType dtype, std::initializer_list<Dim> dims) {
  return declare(std::move(name), BufferClass::kOutput, dtype, dims);
}
BufferId Builder::activation(std::string name, std::initializer_list<Dim> dims, DType dtype) {
  return declare(std::move(name), BufferClass::kActivation, dtype, dims);
}

void Builder::set_layer(int layer) {
  layer_ = layer;
  if (layer >= 0 && options_.gives_features) keep_input_of(static_cast<std::uint32_t>(layer));
}

void Builder::keep_input_of(std::uint32_t layer) {
  const auto& layers = options_.feature_layers;
  for (; n_features_ < layers.size() && layers[n_features_] == layer; ++n_features_) {
    const BufferId hidden = graph_.find("act.hidden");
    if (hidden == ir::kNoBuffer) return refuse("the inputs of its layers are not given as features");
    const bool is_first = n_features_ == 0, is_last = n_features_ + 1 == layers.size();
    const std::string name = fmt::format("features.{}", n_features_);
    const std::uint32_t width = this->width(hidden) + (is_first ? 0 : this->width(features_));
    const BufferId y =
        is_last ? output("features", DType::kF32, {ir::kTokens, width}) : activation(name, {ir::kTokens, width});
    if (is_first)
      scale_to(y, hidden, 1.0f);  // a copy, because the layers change the residual stream in place
    else
      concat_into(y, features_, hidden, 1);
    features_ = y;
  }
}

std::string Builder::at_layer(std::string_view name) const {
  return fmt::format("{}[{}]", name, layer_);
}
std::string Builder::tensor_at_layer(std::string_view tensor) const {
  return fmt::format("blk.{}.{}", layer_, tensor);
}

std::uint64_t Builder::layer_rows(std::string_view tensor) const {
  const Tensor* found = weights_.find(tensor_at_layer(tensor));
  return found == nullptr || found->n_dims < 2 ? 0 : found->dims[1];
}

void Builder::refuse(std::string message) {
  if (status_) status_ = fail(StatusCode::kUnavailable, "[arch] {}: {}", config_.architecture, message);
}

std::uint32_t Builder::width(BufferId buffer) const {
  if (buffer == ir::kNoBuffer) return 1;
  const auto& b = graph_.buffer(buffer);
  return b.dims[b.rank - 1u].n;
}
std::uint32_t Builder::parts(std::uint32_t width, std::uint32_t part) {
  if (part == 0) refuse(fmt::format("a row of {} is cut into parts of 0", width));
  return part == 0 ? 0 : width / part;
}
Dim Builder::rows(BufferId buffer) const {
  return buffer == ir::kNoBuffer ? Dim(1) : graph_.buffer(buffer).dims[0];
}

Node Builder::node(Op op, std::initializer_list<BufferId> inputs, std::initializer_list<BufferId> outputs) {
  Node n;
  n.op = op;
  n.stage = options_.stage;
  n.layer = layer_;
  for (const BufferId id : inputs) n.inputs[n.n_inputs++] = id;
  for (const BufferId id : outputs) {
    n.inplace |= std::ranges::find(n.ins(), id) != n.ins().end();
    n.outputs[n.n_outputs++] = id;
  }
  return n;
}

void Builder::push(Node n) {
  graph_.add_node(n);
  Node barrier;
  barrier.stage = options_.stage;
  barrier.layer = layer_;
  graph_.add_node(barrier);
}

Result<ir::Graph> Builder::finish(const std::vector<std::string>& ignored) {
  if (options_.gives_features && n_features_ < options_.feature_layers.size())
    refuse(fmt::format("the input of layer {} is a feature of a draft model, and this model has {} layers",
                       options_.feature_layers[n_features_], config_.n_layers));
  if (!status_) return std::unexpected(status_.error());
  // used_tensors_ also has optional tensors that the file does not have.
  const auto n_used = std::ranges::count_if(
      weights_.all(), [&](const Tensor& tensor) { return used_tensors_.contains(std::string(tensor.name)); });
  for (const Tensor& tensor : weights_.all()) {
    if (used_tensors_.contains(std::string(tensor.name)) || is_of_other_part(tensor.name)) continue;
    if (std::ranges::any_of(ignored, [&](const std::string& prefix) { return tensor.name.starts_with(prefix); }))
      continue;
    return fail(StatusCode::kCorrupt,
                "[arch] {}: tensor \"{}\" is not one that this family knows; {} tensors are used of {}",
                config_.architecture, tensor.name, n_used, weights_.all().size());
  }
  return std::move(graph_);
}

}  // namespace zinc_rt::arch

#include "arch/builder.h"

#include <algorithm>

#include "base/error.h"
#include "ir/op_rules.h"

namespace zinc_rt::arch {

using ir::BufferClass;
using ir::Dim;
using ir::Node;
using ir::Op;

namespace {
constexpr std::uint32_t kPageTokens = 16;
}

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
  buffer.name =
      std::string(buffer_class == BufferClass::kOutput && name == "logits" ? "out." : ir::name_prefix(buffer_class)) +
      std::move(name);
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
  const Tensor* found = weights_.find(tensor);
  if (found == nullptr) return ir::kNoBuffer;
  used_tensors_.insert(tensor);
  std::vector<std::uint64_t> wanted(dims), there(found->dims.begin(), found->dims.begin() + found->n_dims);
  std::ranges::reverse(there);
  while (there.size() > wanted.size() && there.front() == 1) there.erase(there.begin());
  if (there != wanted && status_)
    status_ = fail(StatusCode::kCorrupt, "[arch] {}: tensor \"{}\" has shape [{}], [{}] wanted", config_.architecture,
                   tensor, fmt::join(there, ", "), fmt::join(wanted, ", "));
  ir::Buffer buffer;
  buffer.name = "model." + std::move(name);
  buffer.tensor = tensor;
  buffer.buffer_class = BufferClass::kWeight;
  buffer.dtype = found->dtype;
  for (const auto dim : wanted) buffer.dims[buffer.rank++] = static_cast<std::uint32_t>(dim);
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

std::string Builder::at_layer(std::string_view name) const {
  return fmt::format("{}[{}]", name, layer_);
}

std::uint32_t Builder::width(BufferId buffer) const {
  if (buffer == ir::kNoBuffer) return 1;
  const auto& b = graph_.buffer(buffer);
  return b.dims[b.rank - 1u].n;
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

BufferId Builder::embed(std::string name, BufferId ids, BufferId table, float scale) {
  const BufferId y = activation(std::move(name), {rows(ids), width(table)});
  Node n = node(Op::EMBED, {ids, table}, {y});
  ir::set_attr(n, "scale", scale);
  push(n);
  return y;
}

BufferId Builder::rms_norm(std::string name, BufferId x, BufferId w, float eps, std::uint32_t group) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  Node n = node(Op::RMS_NORM, {x, w}, {y});
  ir::set_attr(n, "eps", eps);
  ir::set_attr(n, "group", group);
  push(n);
  return y;
}

BufferId Builder::linear(std::string name, BufferId x, BufferId w, BufferId bias) {
  const BufferId y = activation(std::move(name), {rows(x), rows(w)});
  push(node(Op::LINEAR, {x, w, bias}, {y}));
  return y;
}

BufferId Builder::rope(std::string name, BufferId x, BufferId pos, BufferId table, std::uint32_t head_dim,
                       std::uint32_t n_rot, bool neox) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  Node n = node(Op::ROPE, {x, pos, table}, {y});
  ir::set_attr(n, "head_dim", head_dim);
  ir::set_attr(n, "n_rot", n_rot);
  ir::set_attr(n, "neox", std::uint32_t{neox});
  push(n);
  return y;
}

void Builder::kv_write(BufferId k, BufferId v, BufferId kv_k, BufferId kv_v, std::uint32_t head_dim) {
  Node n = node(Op::KV_WRITE_BATCHED, {k, v, positions_, slots_, page_table_, kv_k, kv_v}, {kv_k, kv_v});
  ir::set_attr(n, "head_dim", head_dim);
  push(n);
}

BufferId Builder::flash_attn(std::string name, BufferId q, BufferId kv_k, BufferId kv_v, const Attention& attention) {
  const BufferId y = activation(std::move(name), {rows(q), attention.n_heads * attention.v_head_dim});
  const Op op = options_.stage == ir::Stage::kDecode ? Op::FLASH_ATTN : Op::FLASH_ATTN_BATCHED;
  Node n = node(op, {q, kv_k, kv_v, positions_, slots_, page_table_}, {y});
  ir::set_attr(n, "n_heads", attention.n_heads);
  ir::set_attr(n, "n_kv_heads", attention.n_kv_heads);
  ir::set_attr(n, "head_dim", attention.head_dim);
  ir::set_attr(n, "v_head_dim", attention.v_head_dim);
  ir::set_attr(n, "scale", attention.scale);
  ir::set_attr(n, "window", attention.window);
  ir::set_attr(n, "softcap", attention.softcap);
  push(n);
  return y;
}

void Builder::add_into(BufferId x, BufferId y) {
  push(node(Op::ADD, {x, y}, {x}));
}

BufferId Builder::glu(std::string name, BufferId gate, BufferId up, std::uint32_t act) {
  const BufferId y = activation(std::move(name), {rows(gate), width(gate)});
  Node n = node(Op::GLU, {gate, up}, {y});
  ir::set_attr(n, "act", act);
  push(n);
  return y;
}

BufferId Builder::scale(std::string name, BufferId x, float factor) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  Node n = node(Op::SCALE, {x, ir::kNoBuffer}, {y});
  ir::set_attr(n, "scale", factor);
  push(n);
  return y;
}

BufferId Builder::softcap(std::string name, BufferId x, float cap) {
  const BufferId y = activation(std::move(name), {rows(x), width(x)});
  Node n = node(Op::SOFTCAP, {x}, {y});
  ir::set_attr(n, "cap", cap);
  push(n);
  return y;
}

void Builder::head(BufferId hidden, BufferId norm_w, BufferId head_w, float logit_scale, float cap) {
  set_layer(-1);
  const BufferId output_rows = request("output_rows", DType::kI32, {ir::kOutputs});
  const BufferId output_slots = request("output_slots", DType::kI32, {ir::kOutputs});
  const BufferId sampling = request("sampling", DType::kU32, {ir::kOutputs, 16});
  const BufferId history = request("history", DType::kI32, {options_.history_tokens});
  const BufferId gathered = activation("output_hidden", {ir::kOutputs, width(hidden)});
  push(node(Op::GATHER_ROWS, {hidden, output_rows}, {gathered}));
  const BufferId norm = rms_norm("output_norm", gathered, norm_w, static_cast<float>(config_.norm_eps), width(hidden));
  const BufferId logits = output("logits", DType::kF32, {ir::kOutputs, rows(head_w)});
  push(node(Op::LM_HEAD, {norm, head_w}, {logits}));
  const auto in_place = [&](Op op, std::string_view attr, float value) {
    Node n = op == Op::SCALE ? node(op, {logits, ir::kNoBuffer}, {logits}) : node(op, {logits}, {logits});
    ir::set_attr(n, attr, value);
    push(n);
  };
  if (logit_scale != 1.0f) in_place(Op::SCALE, "scale", logit_scale);
  if (cap > 0.0f) in_place(Op::SOFTCAP, "cap", cap);
  const BufferId token = activation("next_token", {ir::kOutputs}, DType::kI32);
  push(node(Op::SAMPLE, {logits, sampling, history}, {token}));
  const BufferId ring = output("tokens", DType::kU32, {options_.ring_entries, 4});
  push(node(Op::STREAM_OUT, {token, output_slots, ring}, {ring}));
}

Result<ir::Graph> Builder::finish(std::initializer_list<std::string_view> ignored) {
  if (!status_) return std::unexpected(status_.error());
  for (const Tensor& tensor : weights_.all()) {
    if (used_tensors_.contains(std::string(tensor.name))) continue;
    if (std::ranges::any_of(ignored, [&](std::string_view prefix) { return tensor.name.starts_with(prefix); }))
      continue;
    return fail(StatusCode::kCorrupt,
                "[arch] {}: tensor \"{}\" is not one that this family knows; {} tensors are used of {}",
                config_.architecture, tensor.name, used_tensors_.size(), weights_.all().size());
  }
  return std::move(graph_);
}

}  // namespace zinc_rt::arch

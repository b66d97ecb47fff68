#include <algorithm>
#include <optional>

#include "base/error.h"
#include "ir/op_rules.h"
#include "lower/passes.h"
#include "lower/rewrite.h"

namespace zinc_rt::lower {
namespace {

using ir::BufferId;
using ir::Node;
using ir::Op;

// The node list under rewriting. Removed nodes stay as holes until the end, so indexes hold.
class Fuser {
 public:
  explicit Fuser(const ir::Graph& graph)
      : graph_(graph), nodes_(compute_nodes(graph)), removed_(nodes_.size(), false) {}

  void fuse_qkv() {
    for (std::size_t i = 0; i + 3 < nodes_.size(); ++i) {
      if (!is_row_norm(i) || !feeds_only(i, 3)) continue;
      const auto width = [&](std::size_t n) { return columns(nodes_[n].outputs[0]); };
      if (width(i + 2) > width(i + 1) || width(i + 3) > width(i + 1)) continue;
      Node fused =
          make(Op::RMS_NORM_FUSED_QKV, nodes_[i],
               {nodes_[i].inputs[0], nodes_[i].inputs[1], nodes_[i + 1].inputs[1], nodes_[i + 2].inputs[1],
                nodes_[i + 3].inputs[1], nodes_[i + 1].inputs[2], nodes_[i + 2].inputs[2], nodes_[i + 3].inputs[2]},
               {nodes_[i + 1].outputs[0], nodes_[i + 2].outputs[0], nodes_[i + 3].outputs[0]});
      replace(fused, i, {i, i + 1, i + 2, i + 3});
    }
  }

  void fuse_gate_up() {
    for (std::size_t i = 0; i + 2 < nodes_.size(); ++i) {
      if (!is_row_norm(i) || !feeds_only(i, 2)) continue;
      const Node &gate = nodes_[i + 1], &up = nodes_[i + 2];
      if (gate.inputs[2] != ir::kNoBuffer || up.inputs[2] != ir::kNoBuffer ||
          columns(gate.outputs[0]) != columns(up.outputs[0]))
        continue;
      Node fused = make(Op::RMS_NORM_FUSED_MLP_GATE_UP, nodes_[i],
                        {nodes_[i].inputs[0], nodes_[i].inputs[1], gate.inputs[1], up.inputs[1]},
                        {gate.outputs[0], up.outputs[0]});
      replace(fused, i, {i, i + 1, i + 2});
    }
  }

  void fuse_rope_kv() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (removed_[i] || nodes_[i].op != Op::KV_WRITE_BATCHED) continue;
      const auto k_rope = producer(nodes_[i].inputs[0], Op::ROPE, i);
      // A table with variants is read at other rows than the cache is written at.
      if (!k_rope || uses(nodes_[i].inputs[0]) != 1 || nodes_[*k_rope].inputs[1] != nodes_[i].inputs[2]) continue;
      std::optional<std::size_t> q_rope;
      for (std::size_t j = 0; j < i; ++j)
        if (!removed_[j] && j != *k_rope && nodes_[j].op == Op::ROPE && nodes_[j].layer == nodes_[i].layer &&
            nodes_[j].attrs == nodes_[*k_rope].attrs && nodes_[j].inputs[2] == nodes_[*k_rope].inputs[2])
          q_rope = j;
      if (!q_rope) continue;
      const auto q_norm = head_norm(nodes_[*q_rope]), k_norm = head_norm(nodes_[*k_rope]);
      if (q_norm && k_norm && ir::attr_u32(nodes_[*q_norm], "eps") != ir::attr_u32(nodes_[*k_norm], "eps")) continue;
      const auto source = [&](std::optional<std::size_t> norm, std::size_t rope) {
        return norm ? nodes_[*norm].inputs[0] : nodes_[rope].inputs[0];
      };
      const auto norm_w = [&](std::optional<std::size_t> norm) {
        return norm ? nodes_[*norm].inputs[1] : ir::kNoBuffer;
      };
      const Node& kv = nodes_[i];
      Node fused =
          make(Op::RMS_NORM_FUSED_ROPE_KV_WRITE, kv,
               {source(q_norm, *q_rope), source(k_norm, *k_rope), kv.inputs[1], norm_w(q_norm), norm_w(k_norm),
                kv.inputs[2], kv.inputs[3], nodes_[*k_rope].inputs[2], kv.inputs[4], kv.inputs[5], kv.inputs[6]},
               {nodes_[*q_rope].outputs[0], kv.inputs[5], kv.inputs[6]});
      fused.inplace = true;
      if (const auto norm = q_norm ? q_norm : k_norm) ir::set_attr(fused, "eps", ir::attr_u32(nodes_[*norm], "eps"));
      for (const auto* name : {"head_dim", "n_rot", "neox"})
        ir::set_attr(fused, name, ir::attr_u32(nodes_[*k_rope], name));
      std::vector<std::size_t> parts{*k_rope, *q_rope, i};
      if (q_norm) parts.push_back(*q_norm);
      if (k_norm) parts.push_back(*k_norm);
      replace(fused, i, parts);
    }
  }

  // Gate and up projections in one node where they read the same type of rows; and, where a step has a token a slot,
  // the down projection with its sum and residual add, which then needs no rows for the experts' outputs.
  void fuse_moe() {
    for (std::size_t i = 0; i + 1 < nodes_.size(); ++i) {
      const Node &gate = nodes_[i], &up = nodes_[i + 1];
      if (removed_[i] || removed_[i + 1] || gate.op != Op::MOE_LINEAR || up.op != Op::MOE_LINEAR ||
          gate.inputs[0] != up.inputs[0] || gate.inputs[2] != up.inputs[2] || ir::attr_u32(gate, "rows") != 1 ||
          ir::attr_u32(up, "rows") != 1 || columns(gate.outputs[0]) != columns(up.outputs[0]) ||
          act_dtype(graph_.buffer(gate.inputs[1]).dtype) != act_dtype(graph_.buffer(up.inputs[1]).dtype))
        continue;
      replace(make(Op::MOE_GATE_UP, gate, {gate.inputs[0], gate.inputs[1], up.inputs[1], gate.inputs[2]},
                   {gate.outputs[0], up.outputs[0]}),
              i, {i, i + 1});
    }
    if (graph_.stage() != ir::Stage::kDecode) return;
    for (std::size_t i = 0; i + 2 < nodes_.size(); ++i) {
      const Node &down = nodes_[i], &sum = nodes_[i + 1], &add = nodes_[i + 2];
      if (removed_[i] || down.op != Op::MOE_LINEAR || sum.op != Op::MOE_SUM || add.op != Op::ADD || !add.inplace ||
          sum.inputs[0] != down.outputs[0] || add.inputs[1] != sum.outputs[0] || sum.inputs[1] != down.inputs[2] ||
          uses(sum.outputs[0]) != 1 || ir::attr_u32(down, "rows") != columns(down.inputs[2]))
        continue;
      Node fused = make(Op::MOE_DOWN_ACC, down,
                        {down.inputs[0], down.inputs[1], down.inputs[2], sum.inputs[2], sum.inputs[3], add.inputs[0]},
                        {add.outputs[0]});
      fused.inplace = true;
      replace(fused, i, {i, i + 1, i + 2});
    }
  }

  void fuse_residual() {
    for (std::size_t i = 0; i + 1 < nodes_.size(); ++i) {
      const Node &add = nodes_[i], &norm = nodes_[i + 1];
      if (removed_[i] || add.op != Op::ADD || !add.inplace || !is_row_norm(i + 1) || norm.inputs[0] != add.outputs[0])
        continue;
      Node fused = make(Op::RESIDUAL_RMS_NORM, norm, {add.inputs[0], add.inputs[1], norm.inputs[1]},
                        {norm.outputs[0], add.outputs[0]});
      fused.inplace = true;
      fused.layer = add.layer;  // the residual stream of a layer is complete at the layer's end
      replace(fused, i, {i, i + 1});
    }
  }

  ir::Graph finish() {
    std::vector<Node> kept;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!removed_[i]) kept.push_back(nodes_[i]);
    return rebuild(graph_, {}, kept);
  }

 private:
  std::uint32_t columns(BufferId id) const { return graph_.buffer(id).dims[graph_.buffer(id).rank - 1u].n; }

  // An RMS_NORM over whole rows with a weight.
  bool is_row_norm(std::size_t i) const {
    const Node& n = nodes_[i];
    return !removed_[i] && n.op == Op::RMS_NORM && !n.inplace && n.inputs[1] != ir::kNoBuffer &&
           ir::attr_u32(n, "group") == columns(n.inputs[0]);
  }
  // The next n nodes are LINEARs of node i's output, and nobody else reads it.
  bool feeds_only(std::size_t i, std::size_t n) const {
    const BufferId h = nodes_[i].outputs[0];
    for (std::size_t j = i + 1; j <= i + n; ++j)
      if (removed_[j] || nodes_[j].op != Op::LINEAR || nodes_[j].inputs[0] != h) return false;
    return uses(h) == n;
  }
  std::size_t uses(BufferId id) const {
    std::size_t n = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!removed_[i]) n += static_cast<std::size_t>(std::ranges::count(nodes_[i].ins(), id));
    return n;
  }
  std::optional<std::size_t> producer(BufferId id, Op op, std::size_t before) const {
    for (std::size_t i = before; i-- > 0;)
      if (!removed_[i] && std::ranges::find(nodes_[i].outs(), id) != nodes_[i].outs().end())
        return nodes_[i].op == op ? std::optional(i) : std::nullopt;
    return std::nullopt;
  }
  // The per-head norm before a ROPE, if it feeds nothing else.
  std::optional<std::size_t> head_norm(const Node& rope) const {
    const auto norm = producer(rope.inputs[0], Op::RMS_NORM, nodes_.size());
    if (!norm || uses(rope.inputs[0]) != 1 || nodes_[*norm].inputs[1] == ir::kNoBuffer) return std::nullopt;
    return ir::attr_u32(nodes_[*norm], "group") == ir::attr_u32(rope, "head_dim") ? norm : std::nullopt;
  }
  Node make(Op op, const Node& like, std::initializer_list<BufferId> inputs,
            std::initializer_list<BufferId> outputs) const {
    Node node;
    node.op = op;
    node.stage = like.stage;
    node.layer = like.layer;
    for (const auto id : inputs) node.inputs[node.n_inputs++] = id;
    for (const auto id : outputs) node.outputs[node.n_outputs++] = id;
    for (const auto& attr : ir::rule(op).attrs)
      if (attr.name == "eps" && like.op == Op::RMS_NORM) ir::set_attr(node, "eps", ir::attr_u32(like, "eps"));
    return node;
  }
  void replace(const Node& fused, std::size_t at, const std::vector<std::size_t>& parts) {
    for (const auto part : parts) removed_[part] = true;
    nodes_[at] = fused;
    removed_[at] = false;
  }

  const ir::Graph& graph_;
  std::vector<Node> nodes_;
  std::vector<bool> removed_;
};

struct Name {
  std::string_view text;
  bool FusionOptions::* flag;
};
constexpr Name kNames[] = {{"qkv", &FusionOptions::qkv},
                           {"gate_up", &FusionOptions::gate_up},
                           {"rope_kv", &FusionOptions::rope_kv},
                           {"moe", &FusionOptions::moe},
                           {"residual", &FusionOptions::residual}};

}  // namespace

Result<FusionOptions> parse_fusion(std::string_view text) {
  if (text == "1") return FusionOptions{};
  FusionOptions options{false, false, false, false, false};
  if (text == "0") return options;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const auto* name = std::ranges::find(kNames, word, &Name::text);
    if (name == std::end(kNames))
      return fail(StatusCode::kInvalidArgument,
                  "[lower] unknown fusion \"{}\"; 0, 1 or a list of qkv, gate_up, rope_kv, moe, residual", word);
    options.*name->flag = true;
  }
  return options;
}

std::string to_string(const FusionOptions& options) {
  std::string text;
  for (const auto& name : kNames)
    if (options.*name.flag) text += (text.empty() ? "" : ",") + std::string(name.text);
  return text.empty() ? "0" : text;
}

ir::Graph fuse(const ir::Graph& graph, const FusionOptions& options) {
  Fuser fuser(graph);
  if (options.qkv) fuser.fuse_qkv();
  if (options.gate_up) fuser.fuse_gate_up();
  if (options.rope_kv) fuser.fuse_rope_kv();
  if (options.moe) fuser.fuse_moe();
  if (options.residual) fuser.fuse_residual();
  return fuser.finish();
}

}  // namespace zinc_rt::lower

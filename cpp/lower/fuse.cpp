#include <algorithm>
#include <optional>

#include "base/error.h"
#include "ir/op_rules.h"
#include "ir/operands.h"
#include "lower/passes.h"
#include "lower/rewrite.h"

namespace zinc_rt::lower {
namespace {

using ir::BufferId;
using ir::Node;
using ir::Op;

// Holds the list of nodes while the fusions rewrite it. Removed nodes stay as marked entries until the end, so that
// indices stay valid.
class Fuser {
 public:
  explicit Fuser(const ir::Graph& graph)
      : graph_(graph), nodes_(compute_nodes(graph)), removed_(nodes_.size(), false) {}

  void fuse_qkv() {
    for (std::size_t i = 0; i + 3 < nodes_.size(); ++i) {
      if (!is_row_norm(i) || !feeds_only(i, 3)) continue;
      const auto norm = of<operand::RmsNorm>(i);
      const auto q = of<operand::Linear>(i + 1), k = of<operand::Linear>(i + 2), v = of<operand::Linear>(i + 3);
      if (columns(k.y) > columns(q.y) || columns(v.y) > columns(q.y)) continue;
      const Node fused = make<operand::RmsNormFusedQkv>(nodes_[i], {.x = norm.x,
                                                                    .norm_w = norm.w,
                                                                    .q_w = q.w,
                                                                    .k_w = k.w,
                                                                    .v_w = v.w,
                                                                    .q_b = q.bias,
                                                                    .k_b = k.bias,
                                                                    .v_b = v.bias,
                                                                    .q = q.y,
                                                                    .k = k.y,
                                                                    .v = v.y});
      replace(fused, i, {i, i + 1, i + 2, i + 3});
    }
  }

  void fuse_gate_up() {
    for (std::size_t i = 0; i + 2 < nodes_.size(); ++i) {
      if (!is_row_norm(i) || !feeds_only(i, 2)) continue;
      const auto norm = of<operand::RmsNorm>(i);
      const auto gate = of<operand::Linear>(i + 1), up = of<operand::Linear>(i + 2);
      if (gate.bias != ir::kNoBuffer || up.bias != ir::kNoBuffer || columns(gate.y) != columns(up.y)) continue;
      const Node fused = make<operand::RmsNormFusedMlpGateUp>(
          nodes_[i], {.x = norm.x, .norm_w = norm.w, .gate_w = gate.w, .up_w = up.w, .gate = gate.y, .up = up.y});
      replace(fused, i, {i, i + 1, i + 2});
    }
  }

  void fuse_rope_kv() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (removed_[i] || nodes_[i].op != Op::KV_WRITE_BATCHED) continue;
      const auto write = of<operand::KvWriteBatched>(i);
      const auto k_at = producer(write.k, Op::ROPE, i);
      if (!k_at || uses(write.k) != 1) continue;
      const auto k_rope = of<operand::Rope>(*k_at);
      // If RoPE has variants, the rows of the table that ROPE reads differ from the positions at which the cache is
      // written. The fused op takes only one list of positions, so such nodes are not fused.
      if (k_rope.pos != write.pos) continue;
      std::optional<std::size_t> q_at;
      for (std::size_t j = 0; j < i; ++j)
        if (!removed_[j] && j != *k_at && nodes_[j].op == Op::ROPE && nodes_[j].layer == nodes_[i].layer &&
            nodes_[j].attrs == nodes_[*k_at].attrs && of<operand::Rope>(j).table == k_rope.table)
          q_at = j;
      if (!q_at) continue;
      const auto q_rope = of<operand::Rope>(*q_at);
      const auto q_norm = head_norm(nodes_[*q_at]), k_norm = head_norm(nodes_[*k_at]);
      if (q_norm && k_norm && ir::attr_u32(nodes_[*q_norm], "eps") != ir::attr_u32(nodes_[*k_norm], "eps")) continue;
      const auto source = [&](std::optional<std::size_t> norm, BufferId rotated) {
        return norm ? of<operand::RmsNorm>(*norm).x : rotated;
      };
      const auto norm_w = [&](std::optional<std::size_t> norm) {
        return norm ? of<operand::RmsNorm>(*norm).w : ir::kNoBuffer;
      };
      Node fused = make<operand::RmsNormFusedRopeKvWrite>(nodes_[i], {.q = source(q_norm, q_rope.x),
                                                                      .k = source(k_norm, k_rope.x),
                                                                      .v = write.v,
                                                                      .q_norm = norm_w(q_norm),
                                                                      .k_norm = norm_w(k_norm),
                                                                      .pos = write.pos,
                                                                      .slot = write.slot,
                                                                      .table = k_rope.table,
                                                                      .page_table = write.page_table,
                                                                      .kv_k = write.kv_k,
                                                                      .kv_v = write.kv_v,
                                                                      .q_out = q_rope.y,
                                                                      .k_cache = write.kv_k,
                                                                      .v_cache = write.kv_v});
      fused.inplace = true;
      if (const auto norm = q_norm ? q_norm : k_norm) ir::set_attr(fused, "eps", ir::attr_u32(nodes_[*norm], "eps"));
      for (const auto* name : {"head_dim", "n_rot", "neox"})
        ir::set_attr(fused, name, ir::attr_u32(nodes_[*k_at], name));
      std::vector<std::size_t> parts{*k_at, *q_at, i};
      if (q_norm) parts.push_back(*q_norm);
      if (k_norm) parts.push_back(*k_norm);
      replace(fused, i, parts);
    }
  }

  // Fuses the gate and up projections if they read rows of the same type. If a step has one token per slot, also fuses
  // the down projection with the sum over experts and the residual add, which saves the memory for the experts'
  // outputs.
  void fuse_moe() {
    for (std::size_t i = 0; i + 1 < nodes_.size(); ++i) {
      if (!are(i, {Op::MOE_LINEAR, Op::MOE_LINEAR})) continue;
      const auto gate = of<operand::MoeLinear>(i), up = of<operand::MoeLinear>(i + 1);
      if (gate.x != up.x || gate.ids != up.ids || ir::attr_u32(nodes_[i], "rows") != 1 ||
          ir::attr_u32(nodes_[i + 1], "rows") != 1 || columns(gate.y) != columns(up.y) ||
          act_dtype(graph_.buffer(gate.w).dtype) != act_dtype(graph_.buffer(up.w).dtype))
        continue;
      replace(
          make<operand::MoeGateUp>(
              nodes_[i], {.x = gate.x, .gate_w = gate.w, .up_w = up.w, .ids = gate.ids, .gate = gate.y, .up = up.y}),
          i, {i, i + 1});
    }
    if (graph_.stage() != ir::Stage::kDecode) return;
    for (std::size_t i = 0; i + 2 < nodes_.size(); ++i) {
      if (!are(i, {Op::MOE_LINEAR, Op::MOE_SUM, Op::ADD}) || !nodes_[i + 2].inplace) continue;
      const auto down = of<operand::MoeLinear>(i);
      const auto sum = of<operand::MoeSum>(i + 1);
      const auto add = of<operand::Add>(i + 2);
      if (sum.y != down.y || add.y != sum.z || sum.ids != down.ids || uses(sum.z) != 1 ||
          ir::attr_u32(nodes_[i], "rows") != columns(down.ids))
        continue;
      Node fused = make<operand::MoeDownAcc>(nodes_[i], {.x = down.x,
                                                         .down_w = down.w,
                                                         .ids = down.ids,
                                                         .weights = sum.weights,
                                                         .expert_scale = sum.expert_scale,
                                                         .hidden = add.x,
                                                         .out = add.z});
      fused.inplace = true;
      replace(fused, i, {i, i + 1, i + 2});
    }
  }

  void fuse_residual() {
    for (std::size_t i = 0; i + 1 < nodes_.size(); ++i) {
      if (!are(i, {Op::ADD, Op::RMS_NORM}) || !nodes_[i].inplace || !is_row_norm(i + 1)) continue;
      const auto add = of<operand::Add>(i);
      const auto norm = of<operand::RmsNorm>(i + 1);
      if (norm.x != add.z) continue;
      Node fused = make<operand::ResidualRmsNorm>(
          nodes_[i + 1], {.residual = add.x, .x = add.y, .w = norm.w, .y = norm.y, .sum = add.z});
      fused.inplace = true;
      fused.layer = nodes_[i].layer;  // the residual stream is complete at the end of the ADD's layer
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

  template <class Names>
  typename Names::template Of<BufferId> of(std::size_t i) const {
    return ir::operands_of<Names>(nodes_[i]);
  }
  // Returns whether the nodes from i on have the ops `ops`, in order, and none of these nodes was removed.
  bool are(std::size_t i, std::initializer_list<Op> ops) const {
    return std::ranges::all_of(ops, [&](Op op) {
      const std::size_t at = i++;
      return !removed_[at] && nodes_[at].op == op;
    });
  }
  // Returns whether node i is an RMS_NORM over whole rows that has a weight.
  bool is_row_norm(std::size_t i) const {
    if (!are(i, {Op::RMS_NORM}) || nodes_[i].inplace) return false;
    const auto norm = of<operand::RmsNorm>(i);
    return norm.w != ir::kNoBuffer && ir::attr_u32(nodes_[i], "group") == columns(norm.x);
  }
  // Returns whether the n nodes after the norm at i are LINEARs that read its output, and no other node reads it.
  bool feeds_only(std::size_t i, std::size_t n) const {
    const BufferId h = of<operand::RmsNorm>(i).y;
    for (std::size_t j = i + 1; j <= i + n; ++j)
      if (!are(j, {Op::LINEAR}) || of<operand::Linear>(j).x != h) return false;
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
  // Returns the index of the per-head norm that feeds this ROPE. Returns nullopt if no such norm feeds the node, or if
  // another node also reads the norm's output.
  std::optional<std::size_t> head_norm(const Node& rope) const {
    const BufferId rotated = ir::operands_of<operand::Rope>(rope).x;
    const auto norm = producer(rotated, Op::RMS_NORM, nodes_.size());
    if (!norm || uses(rotated) != 1 || of<operand::RmsNorm>(*norm).w == ir::kNoBuffer) return std::nullopt;
    return ir::attr_u32(nodes_[*norm], "group") == ir::attr_u32(rope, "head_dim") ? norm : std::nullopt;
  }
  template <class Names>
  Node make(const Node& like, const typename Names::template Of<BufferId>& operands) const {
    Node node;
    const ir::OpRule& rule = ir::rule(ir::kOpOf<Names>);
    ir::set_operands<Names>(node, rule.inputs.size(), operands);
    node.stage = like.stage;
    node.layer = like.layer;
    for (const auto& attr : rule.attrs)
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
  ir::Op ops[2];  // the ops that the fusion creates, for which the tier needs kernels
};
using ir::Op;
constexpr Name kNames[] = {
    {"qkv", &FusionOptions::qkv, {Op::RMS_NORM_FUSED_QKV, Op::RMS_NORM_FUSED_QKV}},
    {"gate_up", &FusionOptions::gate_up, {Op::RMS_NORM_FUSED_MLP_GATE_UP, Op::RMS_NORM_FUSED_MLP_GATE_UP}},
    {"rope_kv", &FusionOptions::rope_kv, {Op::RMS_NORM_FUSED_ROPE_KV_WRITE, Op::RMS_NORM_FUSED_ROPE_KV_WRITE}},
    {"moe", &FusionOptions::moe, {Op::MOE_GATE_UP, Op::MOE_DOWN_ACC}},
    {"residual", &FusionOptions::residual, {Op::RESIDUAL_RMS_NORM, Op::RESIDUAL_RMS_NORM}}};

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

FusionOptions with_kernels(FusionOptions options, const kernel::KernelTable& kernels) {
  for (const auto& name : kNames)
    for (const Op op : name.ops) options.*name.flag = options.*name.flag && kernels.has(op);
  return options;
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

#include "lower/join.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "ir/op_rules.h"

namespace zinc_rt::lower {
namespace {

struct Pattern {
  struct Operand {
    std::string name;
    std::size_t value;  // index into the names of the pattern
  };
  struct Step {
    bool is_optional = false;
    std::vector<ir::Op> ops;
    std::vector<Operand> operands;
    std::vector<std::size_t> kept;  // names whose values must stay valid until this step has run
  };
  std::vector<Step> steps;
  std::vector<std::string> names;
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}
// Returns the part of `text` before the character `end`, and removes both from `text`.
std::string_view take(std::string_view& text, char end) {
  const auto at = std::min(text.find(end), text.size());
  const auto piece = trim(text.substr(0, at));
  text.remove_prefix(std::min(at + 1, text.size()));
  text = trim(text);
  return piece;
}

Result<Pattern> parse(std::string_view pattern) {
  Pattern parsed;
  const auto wrong = [&](std::string_view piece, std::string_view why) {
    return fail(StatusCode::kInternal, "[lower] the join \"{}\": \"{}\" {}", pattern, piece, why);
  };
  const auto number_of = [&](std::string_view name) {
    const auto it = std::ranges::find(parsed.names, name);
    if (it == parsed.names.end()) return parsed.names.emplace_back(name), parsed.names.size() - 1;
    return static_cast<std::size_t>(it - parsed.names.begin());
  };
  for (std::string_view rest = pattern; !rest.empty();) {
    std::string_view words = take(rest, ';');
    std::string_view head = take(words, ' ');
    if (head == "keep") {
      if (parsed.steps.empty()) return wrong(head, "comes before any node");
      while (!words.empty()) {
        const auto name = take(words, ' ');
        if (std::ranges::find(parsed.names, name) == parsed.names.end()) return wrong(name, "is no value");
        parsed.steps.back().kept.push_back(number_of(name));
      }
      continue;
    }
    Pattern::Step step;
    step.is_optional = head.starts_with('?');
    if (step.is_optional) head.remove_prefix(1);
    if (!step.is_optional && !parsed.steps.empty() && parsed.steps.back().is_optional)
      return wrong(head, "must be there, and what is in front need not");
    while (!head.empty()) {
      const auto op = ir::parse_op(take(head, '|'));
      if (!op) return wrong(pattern, "names an op that there is not");
      step.ops.push_back(*op);
    }
    while (!words.empty()) {
      const auto word = take(words, ' ');
      const auto colon = word.find(':');
      if (colon == std::string_view::npos) return wrong(word, "is no operand:value");
      step.operands.push_back({std::string(word.substr(0, colon)), number_of(word.substr(colon + 1))});
      for (const ir::Op op : step.ops) {
        const auto& rule = ir::rule(op);
        const auto has = [&](const auto& list) {
          return std::ranges::find(list, step.operands.back().name, &ir::OperandRule::name) != list.end();
        };
        if (!has(rule.inputs) && !has(rule.outputs)) return wrong(word, "names an operand that the op has not");
      }
    }
    parsed.steps.push_back(std::move(step));
  }
  for (const auto& name : parsed.names)
    if (name.ends_with('\'') && std::ranges::find(parsed.names, name.substr(0, name.size() - 1)) == parsed.names.end())
      return wrong(name, "updates no value");
  return parsed;
}

// Holds the graph's nodes without barriers, with numbered values. A value is the content of a buffer from one write to
// the next, so an operand's number changes when its buffer is written.
class Nodes {
 public:
  explicit Nodes(const ir::Graph& graph) : graph_(graph) {
    std::map<ir::BufferId, std::size_t> current;
    std::size_t n_values = 0;
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      const ir::Node& node = graph.nodes()[i];
      if (node.op == ir::Op::BARRIER) continue;
      One one{i, {}};
      for (const auto id : node.ins()) {
        const auto [it, is_new] = current.try_emplace(id, n_values);
        one.values.push_back(it->second);
        n_values += is_new ? 1 : 0;
      }
      for (const auto id : node.outs()) one.values.push_back(current[id] = n_values++);
      all_.push_back(std::move(one));
    }
  }

  std::size_t size() const { return all_.size(); }
  std::size_t index(std::size_t i) const { return all_[i].node; }  // index of the node in the graph
  const ir::Node& node(std::size_t i) const { return graph_.nodes()[all_[i].node]; }
  std::span<const std::size_t> values(std::size_t i) const { return all_[i].values; }

 private:
  struct One {
    std::size_t node;
    std::vector<std::size_t> values;  // numbers of the input values, then of the output values
  };
  const ir::Graph& graph_;
  std::vector<One> all_;
};

struct Bound {
  std::size_t value;
  ir::BufferId buffer;
};

std::optional<Bound> operand_of(const Nodes& nodes, std::size_t i, std::string_view name) {
  const ir::Node& node = nodes.node(i);
  const auto& rule = ir::rule(node.op);
  for (const bool is_output : {false, true}) {
    const auto& list = is_output ? rule.outputs : rule.inputs;
    const auto it = std::ranges::find(list, name, &ir::OperandRule::name);
    if (it == list.end()) continue;
    const auto at = static_cast<std::size_t>(it - list.begin());
    const ir::BufferId buffer = is_output ? node.outputs[at] : node.inputs[at];
    if (buffer == ir::kNoBuffer) return std::nullopt;
    return Bound{nodes.values(i)[at + (is_output ? node.n_inputs : 0)], buffer};
  }
  return std::nullopt;
}

class Match {
 public:
  Match(const Pattern& pattern, const Nodes& nodes, std::size_t first)
      : pattern_(pattern), nodes_(nodes), first_(first), bound_(pattern.names.size()) {
    for (const auto& step : pattern.steps) {
      if (!takes(step)) {
        is_match_ = step.is_optional;
        return;
      }
    }
    is_match_ = true;
  }

  explicit operator bool() const { return is_match_ && count_ > 0; }
  std::vector<std::size_t> found() const {
    std::vector<std::size_t> indexes;
    for (std::size_t i = 0; i < count_; ++i) indexes.push_back(nodes_.index(first_ + i));
    return indexes;
  }
  const std::vector<Kept>& kept() const { return kept_; }

 private:
  // Returns whether the next node matches this part of the pattern. If so, binds the names of the part to the node's
  // values.
  bool takes(const Pattern::Step& step) {
    const std::size_t at = first_ + count_;
    if (at >= nodes_.size() || std::ranges::find(step.ops, nodes_.node(at).op) == step.ops.end()) return false;
    auto bound = bound_;
    for (const auto& operand : step.operands) {
      const auto here = operand_of(nodes_, at, operand.name);
      if (!here) return false;
      if (const auto& before = bound[operand.value]; before && before->value != here->value) return false;
      for (std::size_t other = 0; other < bound.size(); ++other)
        if (other != operand.value && bound[other] && bound[other]->value == here->value) return false;
      bound[operand.value] = here;
    }
    for (std::size_t i = 0; i < bound.size(); ++i)
      if (const auto& name = pattern_.names[i]; bound[i] && name.ends_with('\'')) {
        const auto updated = std::ranges::find(pattern_.names, std::string_view(name).substr(0, name.size() - 1));
        const auto& before = bound[static_cast<std::size_t>(updated - pattern_.names.begin())];
        if (!before || before->buffer != bound[i]->buffer) return false;
      }
    for (const std::size_t kept : step.kept)
      if (!bound[kept] || is_overwritten(*bound[kept], at)) return false;
    bound_ = std::move(bound);
    ++count_;
    for (const std::size_t kept : step.kept) kept_.push_back({bound_[kept]->buffer, nodes_.index(at)});
    return true;
  }

  // Returns whether a node up to `last` overwrites the memory of this value. Writes before the first node that uses the
  // value do not count.
  bool is_overwritten(const Bound& kept, std::size_t last) const {
    bool is_there = false;
    for (std::size_t i = first_; i <= last; ++i) {
      is_there |= std::ranges::find(nodes_.values(i), kept.value) != nodes_.values(i).end();
      const ir::Node& node = nodes_.node(i);
      for (std::size_t o = 0; o < node.n_outputs; ++o)
        if (is_there && node.outputs[o] == kept.buffer && nodes_.values(i)[node.n_inputs + o] != kept.value)
          return true;
    }
    return false;
  }

  const Pattern& pattern_;
  const Nodes& nodes_;
  std::size_t first_, count_ = 0;
  bool is_match_ = false;
  std::vector<std::optional<Bound>> bound_;
  std::vector<Kept> kept_;
};

}  // namespace

Result<std::vector<JoinedNodes>> find_joins(const ir::Graph& graph, std::span<const std::string_view> patterns) {
  std::vector<Pattern> parsed;
  for (const auto text : patterns) {
    ZRT_TRY(auto pattern, parse(text));
    parsed.push_back(std::move(pattern));
  }
  const Nodes nodes(graph);
  std::vector<JoinedNodes> found;
  for (std::size_t first = 0; first < nodes.size(); ++first)
    for (std::uint32_t p = 0; p < parsed.size(); ++p)
      if (const Match match(parsed[p], nodes, first); match) {
        const auto least = std::ranges::count(parsed[p].steps, false, &Pattern::Step::is_optional);
        found.push_back({p, match.found(), static_cast<std::size_t>(least), match.kept()});
      }
  return found;
}

}  // namespace zinc_rt::lower

#include "grammar/gbnf.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "grammar/gbnf_syntax.h"

namespace zinc_rt::grammar {
namespace {

using GbnfKind = GbnfNode::Kind;

class GbnfLowering {
 public:
  GbnfLowering(const GbnfSyntax& syntax, Rules& rules, const Limits& limits, Fuel& work)
      : syntax_(syntax), rules_(rules), limits_(limits), work_(work) {}

  Result<Symbol> run() {
    ZRT_CHECK_OK(find_regular());
    symbols_.resize(syntax_.rules.size());
    regexes_.resize(syntax_.rules.size());
    return rule_symbol(syntax_.root);
  }

 private:
  // Finds the regular rules. A rule is regular if it reaches neither a token nor a rule that refers to itself. The root
  // is never compiled to one regex, because its parts are lexemes that other rules may share.
  Status find_regular() {
    is_regular_.assign(syntax_.rules.size(), false);
    for (bool is_changed = true; std::exchange(is_changed, false);) {
      for (std::size_t i = syntax_.rules.size(); i-- > 0;) {
        if (is_regular_[i] || i == syntax_.root || !is_regular(syntax_.rules[i])) continue;
        is_regular_[i] = is_changed = true;
      }
      work_.use(syntax_.rules.size());
      ZRT_CHECK_OK(check());
    }
    return {};
  }
  bool is_regular(const GbnfNode& node) {
    work_.use(1);
    if (node.kind == GbnfKind::kRule) return is_regular_[node.rule];
    return node.kind != GbnfKind::kToken &&
           std::ranges::all_of(node.parts, [this](const GbnfNode& part) { return is_regular(part); });
  }

  Status check() const {
    if (rules_.arena.is_full())
      return too_complex("parts of expressions", limits_.max_regex_nodes + 1, limits_.max_regex_nodes);
    if (rules_.n_rules() > limits_.max_rules)
      return too_complex("rules of a grammar", rules_.n_rules(), limits_.max_rules);
    return work_.check("work on a grammar");
  }

  // Returns the regex of a node. REQUIRES: the node is regular.
  Result<Regex> regex_of(const GbnfNode& node, std::size_t depth) {
    RegexArena& arena = rules_.arena;
    work_.use(1);
    ZRT_CHECK_OK(check());
    if (depth > kMaxDepth) return too_complex("rules within rules", depth, kMaxDepth);
    switch (node.kind) {
      case GbnfKind::kLiteral: return arena.literal(node.literal);
      case GbnfKind::kChars: return one_of(arena, node.chars, Spelling::kPlain);
      case GbnfKind::kRule: {
        auto& known = regexes_[node.rule];
        if (!known) {
          ZRT_TRY(known, regex_of(syntax_.rules[node.rule], depth + 1));
        }
        return *known;
      }
      case GbnfKind::kRepeat: {
        ZRT_TRY(const Regex part, regex_of(node.parts[0], depth + 1));
        return arena.repeat(part, node.min, node.max);
      }
      case GbnfKind::kSequence: {
        Regex made = RegexArena::kEpsilon;
        for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part) {
          ZRT_TRY(const Regex one, regex_of(*part, depth + 1));
          made = arena.concat(one, made);
        }
        return made;
      }
      case GbnfKind::kAlternatives: {
        std::vector<Regex> parts;
        for (const GbnfNode& part : node.parts) {
          ZRT_TRY(parts.emplace_back(), regex_of(part, depth + 1));
        }
        return arena.any_of(std::move(parts));
      }
      case GbnfKind::kToken: break;
    }
    return RegexArena::kNothing;
  }

  Result<Symbol> rule_symbol(std::uint32_t rule) {
    if (symbols_[rule]) return *symbols_[rule];
    if (is_regular_[rule]) {
      ZRT_TRY(const Regex regex, regex_of(syntax_.rules[rule], 0));
      symbols_[rule] = rules_.terminal(regex);
      return *symbols_[rule];
    }
    // All symbols are created before rules are added, because a rule may refer to itself.
    symbols_[rule] = rules_.new_symbol();
    todo_.push_back(rule);
    if (is_working_) return *symbols_[rule];
    is_working_ = true;
    const Symbol first = *symbols_[rule];
    while (!todo_.empty()) {
      const std::uint32_t next = todo_.back();
      todo_.pop_back();
      ZRT_TRY(const Symbol right, symbol_of(syntax_.rules[next]));
      rules_.add_sequence(*symbols_[next], {right});
    }
    is_working_ = false;
    return first;
  }

  Result<Symbol> symbol_of(const GbnfNode& node) {
    work_.use(1);
    ZRT_CHECK_OK(check());
    if (node.kind == GbnfKind::kRule) return rule_symbol(node.rule);
    if (node.kind == GbnfKind::kToken) return rules_.token(node.token);
    if (is_regular(node)) {
      ZRT_TRY(const Regex regex, regex_of(node, 0));
      return rules_.terminal(regex);
    }
    std::vector<Symbol> parts;
    for (const GbnfNode& part : node.parts) {
      ZRT_TRY(parts.emplace_back(), symbol_of(part));
    }
    if (node.kind == GbnfKind::kRepeat) return rules_.repeat(parts[0], node.min, node.max);
    return node.kind == GbnfKind::kSequence ? rules_.sequence(std::move(parts)) : rules_.alternatives(parts);
  }

  static constexpr std::size_t kMaxDepth = 1000;

  const GbnfSyntax& syntax_;
  Rules& rules_;
  const Limits& limits_;
  Fuel& work_;
  std::vector<bool> is_regular_;
  std::vector<std::optional<Symbol>> symbols_;
  std::vector<std::optional<Regex>> regexes_;
  std::vector<std::uint32_t> todo_;
  bool is_working_ = false;
};

}  // namespace

Result<Symbol> read_gbnf(std::string_view text, Rules& rules, const Limits& limits, Fuel& work) {
  ZRT_TRY(const GbnfSyntax syntax, parse_gbnf(text, limits));
  return GbnfLowering(syntax, rules, limits, work).run();
}

}  // namespace zinc_rt::grammar

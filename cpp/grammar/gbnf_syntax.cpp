#include "grammar/gbnf_syntax.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/utf8.h"
#include "grammar/syntax_reader.h"

namespace zinc_rt::grammar {
namespace {

using GbnfKind = GbnfNode::Kind;

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

constexpr std::string_view kNoNumber = "a number is wanted";

class GbnfParser final : SyntaxReader {
 public:
  GbnfParser(std::string_view text, const Limits& limits) : SyntaxReader(text, "grammar", limits) {}

  Result<GbnfSyntax> run() {
    skip(true);
    while (pos_ < text_.size()) {
      const std::string_view word = name();
      if (word.empty()) return error("a rule's name is wanted");
      const std::uint32_t rule = number_of(word);
      skip(false);
      if (!take("::=")) return error("::= is wanted behind a rule's name");
      skip(true);
      ZRT_TRY(auto node, alternatives(0, false));
      if (is_defined_[rule]) return error("the rule \"" + std::string(word.substr(0, 80)) + "\" is defined twice");
      is_defined_[rule] = true;
      made_.rules[rule] = std::move(node);
      // An empty alternative at the end of a line has already consumed the line end, so a line end before this position
      // counts.
      const auto before = text_.substr(0, pos_).find_last_not_of(" \t");
      const bool is_new_line = before != std::string_view::npos && text_[before] == '\n';
      if (pos_ < text_.size() && text_[pos_] != '\n' && text_[pos_] != '\r' && !is_new_line)
        return error("the end of the line is wanted");
      skip(true);
    }
    for (std::size_t i = 0; i < is_defined_.size(); ++i)
      if (!is_defined_[i])
        return fail(StatusCode::kInvalidArgument, "[gbnf] the rule \"{}\" is used and not defined",
                    made_.names[i].substr(0, 80));
    const auto root = numbers_.find("root");
    if (root == numbers_.end()) return fail(StatusCode::kInvalidArgument, "[gbnf] there is no rule \"root\"");
    made_.root = root->second;
    return std::move(made_);
  }

 private:
  std::unexpected<Error> error(std::string_view what) const override {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(pos_), '\n');
    return fail(StatusCode::kInvalidArgument, "[gbnf] line {}: {}", line, what);
  }
  // Skips blanks and comments, and line ends too if `lines` is true.
  void skip(bool lines) {
    while (pos_ < text_.size()) {
      const char c = text_[pos_];
      if (c == '#') {
        while (pos_ < text_.size() && text_[pos_] != '\n' && text_[pos_] != '\r') ++pos_;
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++pos_;
      } else {
        break;
      }
    }
  }
  std::string_view name() {
    const std::size_t begin = pos_;
    while (pos_ < text_.size() && is_name(text_[pos_])) ++pos_;
    return text_.substr(begin, pos_ - begin);
  }
  std::uint32_t number_of(std::string_view word) {
    const auto [it, is_new] = numbers_.try_emplace(std::string(word), static_cast<std::uint32_t>(made_.rules.size()));
    if (is_new) {
      made_.names.emplace_back(word);
      made_.rules.emplace_back();
      is_defined_.push_back(false);
    }
    return it->second;
  }

  Result<GbnfNode> alternatives(std::size_t depth, bool in_group) {
    if (depth > limits_.max_depth) return too_complex("nested groups of a grammar", depth, limits_.max_depth);
    GbnfNode all;
    all.kind = GbnfKind::kAlternatives;
    do {
      skip(true);
      GbnfNode sequence;
      for (;;) {
        ZRT_TRY(auto part, quantified(depth));
        if (!part) break;
        sequence.parts.push_back(std::move(*part));
        skip(in_group);
      }
      all.parts.push_back(sequence.parts.size() == 1 ? std::move(sequence.parts[0]) : std::move(sequence));
      // The next line may begin with | and continue this rule.
      const std::size_t before = pos_;
      skip(true);
      if (!at("|")) pos_ = in_group ? pos_ : before;
    } while (take("|"));
    if (all.parts.size() > 1) return all;
    GbnfNode only = std::move(all.parts[0]);
    return only;
  }

  Result<std::optional<GbnfNode>> quantified(std::size_t depth) {
    ZRT_TRY(auto part, atom(depth));
    if (!part) return part;
    for (;;) {
      const auto blanks = [](SyntaxReader& reader) { static_cast<GbnfParser&>(reader).skip(false); };
      ZRT_TRY(const auto repeats, quantifier({blanks, true, kNoNumber}));
      if (!repeats) return part;
      GbnfNode repeat;
      repeat.kind = GbnfKind::kRepeat;
      repeat.min = repeats->min;
      repeat.max = repeats->max;
      repeat.parts.push_back(std::move(*part));
      part = std::move(repeat);
      if (++n_nested_ > limits_.max_source_bytes) return too_complex("repeats of a grammar", n_nested_, n_nested_ - 1);
      if (depth + quantifiers(*part) > limits_.max_depth)
        return too_complex("quantifiers behind one another", quantifiers(*part), limits_.max_depth);
    }
  }
  static std::size_t quantifiers(const GbnfNode& node) {
    std::size_t n = 0;
    for (const GbnfNode* at = &node; at->kind == GbnfKind::kRepeat; at = &at->parts[0]) ++n;
    return n;
  }

  // Reads one element: a literal, class, rule name, token or group. Returns nullopt if no element begins at the current
  // position.
  Result<std::optional<GbnfNode>> atom(std::size_t depth) {
    GbnfNode node;
    if (pos_ == text_.size()) return std::nullopt;
    const char c = text_[pos_];
    if (c == '"') {
      ++pos_;
      node.kind = GbnfKind::kLiteral;
      while (!take("\"")) {
        ZRT_TRY(const char32_t one, character());
        append_utf8(node.literal, one);
      }
      return node;
    }
    if (c == '[') {
      ++pos_;
      node.kind = GbnfKind::kChars;
      const bool is_negated = take("^");
      while (!take("]")) {
        ZRT_TRY(const char32_t first, character());
        char32_t last = first;
        if (at("-") && !at("-]")) {
          ++pos_;
          ZRT_TRY(last, character());
        }
        if (last < first) return error("a range whose end is before its begin");
        node.chars.add(first, last);
      }
      if (is_negated) node.chars = node.chars.complement();
      return node;
    }
    if (c == '(') {
      ++pos_;
      ZRT_TRY(node, alternatives(depth + 1, true));
      skip(true);
      if (!take(")")) return error("a ) is wanted");
      return node;
    }
    if (c == '.') {
      ++pos_;
      node.kind = GbnfKind::kChars;
      node.chars = CharSet::any();
      return node;
    }
    if (take("<[")) {
      node.kind = GbnfKind::kToken;
      const auto id = number();
      if (!id) return error(kNoNumber);
      if (!take("]>") || *id > INT32_MAX) return error("a token is written <[number]>");
      node.token = static_cast<std::int32_t>(*id);
      return node;
    }
    if (c == '<' || c == '!') return error("tokens by name and their negation are not supported; <[number]> is");
    const std::size_t begin = pos_;
    const std::string_view word = name();
    if (word.empty()) return std::nullopt;
    // If ::= follows the name, the name begins the next rule, and this rule ends before it.
    const std::size_t behind = pos_;
    skip(false);
    if (at("::=")) {
      pos_ = begin;
      return std::nullopt;
    }
    pos_ = behind;
    node.kind = GbnfKind::kRule;
    node.rule = number_of(word);
    return node;
  }

  Result<char32_t> character() {
    if (pos_ == text_.size() || text_[pos_] == '\n') return error("a literal or class that does not end");
    if (take("\\")) {
      const char c = pos_ < text_.size() ? text_[pos_++] : '\0';
      switch (c) {
        case 'n': return '\n';
        case 'r': return '\r';
        case 't': return '\t';
        case 'x': return escaped(2);
        case 'u': return escaped(4);
        case 'U': return escaped(8);
        case '\\':
        case '"':
        case '[':
        case ']':
        case '-':
        case '^':
        case '/': return static_cast<char32_t>(c);
        default: return error("an escape that is not known");
      }
    }
    return code_point();
  }
  Result<char32_t> escaped(std::size_t n_digits) {
    ZRT_TRY(const char32_t value, hex(n_digits));
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return error("an escape of no character");
    return value;
  }

  std::size_t n_nested_ = 0;
  GbnfSyntax made_;
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<bool> is_defined_;
};

}  // namespace

Result<GbnfSyntax> parse_gbnf(std::string_view text, const Limits& limits) {
  if (text.size() > limits.max_source_bytes)
    return too_complex("bytes of a grammar", text.size(), limits.max_source_bytes);
  return GbnfParser(text, limits).run();
}

}  // namespace zinc_rt::grammar

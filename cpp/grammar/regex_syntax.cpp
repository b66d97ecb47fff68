#include "grammar/regex_syntax.h"

#include <algorithm>
#include <optional>

#include "grammar/syntax_reader.h"

namespace zinc_rt::grammar {
namespace {

using SyntaxKind = RegexSyntax::Kind;

const CharSet& digits() {
  static const CharSet set = CharSet::of({{'0', '9'}});
  return set;
}
const CharSet& word_characters() {
  static const CharSet set = CharSet::of({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  return set;
}
const CharSet& spaces() {
  static const CharSet set = CharSet::of({{0x09, 0x0D},
                                          {0x20, 0x20},
                                          {0xA0, 0xA0},
                                          {0x1680, 0x1680},
                                          {0x2000, 0x200A},
                                          {0x2028, 0x2029},
                                          {0x202F, 0x202F},
                                          {0x205F, 0x205F},
                                          {0x3000, 0x3000},
                                          {0xFEFF, 0xFEFF}});
  return set;
}
const CharSet& line_ends() {
  static const CharSet set = CharSet::of({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
  return set;
}

class RegexParser final : SyntaxReader {
 public:
  RegexParser(std::string_view text, const Limits& limits) : SyntaxReader(text, "pattern", limits) {}

  Result<RegexSyntax> run() {
    ZRT_TRY(auto made, alternatives(0));
    if (pos_ < text_.size()) return error("a ) that closes nothing");
    return made;
  }

 private:
  std::unexpected<Error> error(std::string_view what) const override {
    return fail(StatusCode::kInvalidArgument, "[regex] byte {}: {}", pos_, what);
  }

  Result<RegexSyntax> alternatives(std::size_t depth) {
    if (depth > limits_.max_depth) return too_complex("nested groups of a pattern", depth, limits_.max_depth);
    RegexSyntax all;
    all.kind = SyntaxKind::kAlternatives;
    do {
      RegexSyntax sequence;
      while (pos_ < text_.size() && !at("|") && !at(")")) {
        ZRT_TRY(auto part, quantified(depth));
        sequence.parts.push_back(std::move(part));
      }
      all.parts.push_back(sequence.parts.size() == 1 ? std::move(sequence.parts[0]) : std::move(sequence));
    } while (take("|"));
    if (all.parts.size() == 1) {
      RegexSyntax only = std::move(all.parts[0]);
      return only;
    }
    return all;
  }

  Result<RegexSyntax> quantified(std::size_t depth) {
    ZRT_TRY(auto part, atom(depth));
    for (bool is_repeated = false;; is_repeated = true) {
      ZRT_TRY(const auto repeats, quantifier({.no_number = "a number is wanted in { }; a plain { is written \\{"}));
      if (!repeats) return part;
      if (is_repeated) return error("a quantifier behind a quantifier");
      if (part.kind == SyntaxKind::kBegin || part.kind == SyntaxKind::kEnd) return error("a quantifier behind ^ or $");
      if (part.kind == SyntaxKind::kAhead || part.kind == SyntaxKind::kNotAhead)
        return error("a quantifier behind a look ahead");
      if (!take("?") && at("+")) return error("a possessive quantifier, which is not supported");
      RegexSyntax repeat;
      repeat.kind = SyntaxKind::kRepeat;
      repeat.min = repeats->min;
      repeat.max = repeats->max;
      repeat.parts.push_back(std::move(part));
      part = std::move(repeat);
    }
  }

  Result<RegexSyntax> atom(std::size_t depth) {
    RegexSyntax made;
    if (take("^")) {
      made.kind = SyntaxKind::kBegin;
      return made;
    }
    if (take("$")) {
      made.kind = SyntaxKind::kEnd;
      return made;
    }
    if (take("(")) {
      const bool is_ahead = take("?="), is_not_ahead = !is_ahead && take("?!");
      if (!is_ahead && !is_not_ahead && take("?")) ZRT_CHECK_OK(group_kind());
      ZRT_TRY(made, alternatives(depth + 1));
      if (!take(")")) return error("a ) is wanted");
      if (!is_ahead && !is_not_ahead) return made;
      RegexSyntax look;
      look.kind = is_ahead ? SyntaxKind::kAhead : SyntaxKind::kNotAhead;
      look.parts.push_back(std::move(made));
      return look;
    }
    for (const std::string_view quantifier : {"*", "+", "?", "{"})
      if (at(quantifier)) return error("a quantifier behind nothing");
    made.kind = SyntaxKind::kChars;
    if (take(".")) {
      made.chars = line_ends().complement();
      return made;
    }
    if (take("[")) {
      ZRT_TRY(made.chars, char_class());
      return made;
    }
    ZRT_TRY(const Unit unit, one_unit(false));
    made.chars = unit.set ? *unit.set : CharSet::of({{unit.c, unit.c}});
    return made;
  }

  Status group_kind() {
    if (take(":")) return {};
    if (at("<=") || at("<!")) return error("a look behind, which is not supported");
    if (take("P<") || take("<")) {
      const auto end = text_.find('>', pos_);
      if (end == std::string_view::npos || end == pos_) return error("a group's name that does not end");
      pos_ = end + 1;
      return {};
    }
    return error("a group of a kind that is not supported (flags, conditions, atomic groups)");
  }

  struct Unit {
    char32_t c = 0;
    std::optional<CharSet> set;
  };

  Result<Unit> one_unit(bool in_class) {
    Unit unit;
    if (take("\\")) return escape(in_class);
    ZRT_TRY(unit.c, code_point());
    return unit;
  }

  Result<Unit> escape(bool in_class) {
    if (pos_ == text_.size()) return error("a \\ at the end");
    Unit unit;
    const char c = text_[pos_++];
    switch (c) {
      case 'd':
      case 'D': unit.set = c == 'd' ? digits() : digits().complement(); return unit;
      case 'w':
      case 'W': unit.set = c == 'w' ? word_characters() : word_characters().complement(); return unit;
      case 's':
      case 'S': unit.set = c == 's' ? spaces() : spaces().complement(); return unit;
      case 't': unit.c = '\t'; return unit;
      case 'n': unit.c = '\n'; return unit;
      case 'r': unit.c = '\r'; return unit;
      case 'f': unit.c = '\f'; return unit;
      case 'v': unit.c = '\v'; return unit;
      case '0':
        if (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') return error("an octal escape");
        return unit;
      case 'x': {
        ZRT_TRY(unit.c, hex(2));
        return unit;
      }
      case 'u': {
        if (take("{")) {
          const std::size_t end = std::min(text_.find('}', pos_), text_.size());
          if (end == pos_ || end - pos_ > 6) return error("1 to 6 hexadecimal digits are wanted in \\u{ }");
          ZRT_TRY(unit.c, hex(end - pos_));
          if (!take("}")) return error("a } is wanted");
        } else {
          ZRT_TRY(unit.c, hex(4));
          // Two \u escapes that form a pair of surrogates encode one character.
          if (unit.c >= 0xD800 && unit.c < 0xDC00 && take("\\u")) {
            ZRT_TRY(const char32_t low, hex(4));
            if (low < 0xDC00 || low > 0xDFFF) return error("half of a pair of surrogates");
            unit.c = 0x10000 + ((unit.c - 0xD800) << 10) + (low - 0xDC00);
          }
        }
        if (unit.c > 0x10FFFF || (unit.c >= 0xD800 && unit.c <= 0xDFFF)) return error("an escape of no character");
        return unit;
      }
      case 'b':
        if (in_class) {
          unit.c = '\b';
          return unit;
        }
        return error("\\b, which is not supported");
      default: break;
    }
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
      return error(fmt::format("\\{}, which is not supported", c));
    --pos_;
    ZRT_TRY(unit.c, code_point());
    return unit;
  }

  Result<CharSet> char_class() {
    const bool is_negated = take("^");
    CharSet set;
    // In ECMA-262 [] matches nothing and [^] matches everything; a ] in a class is written \].
    while (!take("]")) {
      if (pos_ == text_.size()) return error("a class that does not end");
      if (at("[:")) return error("a named class, which is not supported");
      ZRT_TRY(const Unit first, one_unit(true));
      if (at("-") && pos_ + 1 < text_.size() && text_[pos_ + 1] != ']') {
        ++pos_;
        ZRT_TRY(const Unit last, one_unit(true));
        if (first.set || last.set) return error("a range that ends in a class");
        if (last.c < first.c) return error("a range whose end is before its begin");
        set.add(first.c, last.c);
      } else if (first.set) {
        set.add(*first.set);
      } else {
        set.add(first.c, first.c);
      }
    }
    return is_negated ? set.complement() : set;
  }
};

}  // namespace

Result<RegexSyntax> parse_regex_syntax(std::string_view pattern, const Limits& limits) {
  if (pattern.size() > limits.max_pattern_bytes)
    return too_complex("bytes of a pattern", pattern.size(), limits.max_pattern_bytes);
  return RegexParser(pattern, limits).run();
}

}  // namespace zinc_rt::grammar

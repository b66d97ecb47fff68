#include "grammar/regex_syntax.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"

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

class RegexParser {
 public:
  RegexParser(std::string_view text, const Limits& limits) : text_(text), limits_(limits) {}

  Result<RegexSyntax> run() {
    ZRT_TRY(auto made, alternatives(0));
    if (pos_ < text_.size()) return error("a ) that closes nothing");
    return made;
  }

 private:
  std::unexpected<Error> error(std::string_view what) const {
    return fail(StatusCode::kInvalidArgument, "[regex] byte {}: {}", pos_, what);
  }
  bool at(std::string_view what) const { return text_.substr(pos_).starts_with(what); }
  bool take(std::string_view what) {
    if (!at(what)) return false;
    pos_ += what.size();
    return true;
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
    bool is_repeated = false;
    for (;;) {
      std::uint32_t min = 0, max = RegexArena::kUnbounded;
      if (take("*")) {
      } else if (take("+")) {
        min = 1;
      } else if (take("?")) {
        max = 1;
      } else if (at("{")) {
        ZRT_CHECK_OK(counts(min, max));
      } else {
        return part;
      }
      if (is_repeated) return error("a quantifier behind a quantifier");
      if (part.kind == SyntaxKind::kBegin || part.kind == SyntaxKind::kEnd) return error("a quantifier behind ^ or $");
      if (part.kind == SyntaxKind::kAhead || part.kind == SyntaxKind::kNotAhead)
        return error("a quantifier behind a look ahead");
      is_repeated = true;
      if (!take("?") && at("+")) return error("a possessive quantifier, which is not supported");
      RegexSyntax repeat;
      repeat.kind = SyntaxKind::kRepeat;
      repeat.min = min;
      repeat.max = max;
      repeat.parts.push_back(std::move(part));
      part = std::move(repeat);
    }
  }

  Result<std::uint32_t> number() {
    std::uint64_t value = 0;
    const std::size_t begin = pos_;
    while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9' && value < UINT32_MAX)
      value = value * 10 + static_cast<std::uint64_t>(text_[pos_++] - '0');
    if (pos_ == begin) return error("a number is wanted in { }; a plain { is written \\{");
    if (value > limits_.max_repeat) return too_complex("repeats of a pattern", value, limits_.max_repeat);
    return static_cast<std::uint32_t>(value);
  }

  Status counts(std::uint32_t& min, std::uint32_t& max) {
    ++pos_;
    ZRT_TRY(min, number());
    max = min;
    if (take(",")) {
      max = RegexArena::kUnbounded;
      if (!at("}")) {
        ZRT_TRY(max, number());
      }
    }
    if (!take("}")) return error("a } is wanted");
    if (max < min) return error("{m,n} with n below m");
    return {};
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
    const std::size_t n = utf8_sequence_bytes(text_.substr(pos_));
    if (n == 0) return error("bytes that are not UTF-8");
    unit.c = utf8_code_point(text_.substr(pos_, n));
    pos_ += n;
    return unit;
  }

  Result<char32_t> hex(std::size_t n_digits) {
    char32_t value = 0;
    for (std::size_t i = 0; i < n_digits; ++i, ++pos_) {
      const char c = pos_ < text_.size() ? text_[pos_] : '\0';
      const char lower = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9') {
        value = value * 16 + static_cast<char32_t>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value * 16 + static_cast<char32_t>(lower - 'a' + 10);
      } else {
        return error("a hexadecimal digit is wanted");
      }
    }
    return value;
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
          // A pair of surrogates is one character.
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
    const std::size_t n = utf8_sequence_bytes(text_.substr(pos_));
    if (n == 0) return error("bytes that are not UTF-8");
    unit.c = utf8_code_point(text_.substr(pos_, n));
    pos_ += n;
    return unit;
  }

  Result<CharSet> char_class() {
    const bool is_negated = take("^");
    CharSet set;
    // ECMA-262: [] is empty and [^] is everything; a ] is written \].
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

  std::string_view text_;
  const Limits& limits_;
  std::size_t pos_ = 0;
};

}  // namespace

Result<RegexSyntax> parse_regex_syntax(std::string_view pattern, const Limits& limits) {
  if (pattern.size() > limits.max_pattern_bytes)
    return too_complex("bytes of a pattern", pattern.size(), limits.max_pattern_bytes);
  return RegexParser(pattern, limits).run();
}

}  // namespace zinc_rt::grammar

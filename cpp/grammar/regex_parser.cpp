#include "grammar/regex_parser.h"

#include <algorithm>

#include "grammar/regex_syntax.h"

namespace zinc_rt::grammar {
namespace {

using SyntaxKind = RegexSyntax::Kind;

bool has_anchor(const RegexSyntax& syntax) {
  if (syntax.kind == SyntaxKind::kBegin || syntax.kind == SyntaxKind::kEnd) return true;
  return std::ranges::any_of(syntax.parts, has_anchor);
}

class RegexLowering {
 public:
  RegexLowering(RegexArena& arena, Spelling spelling, const Limits& limits)
      : arena_(arena), spelling_(spelling), work_(limits.compile_work / 64) {}

  // The texts of which a part matches; with free_left false, a part at the beginning, and so on.
  Result<Regex> find(const RegexSyntax& syntax, bool free_left, bool free_right) {
    work_.use(1 + syntax.parts.size());
    ZRT_CHECK_OK(work_.check("alternatives of a pattern"));
    switch (syntax.kind) {
      case SyntaxKind::kBegin: return pad(free_right);
      case SyntaxKind::kEnd: return pad(free_left);
      case SyntaxKind::kAlternatives: {
        std::vector<Regex> parts;
        for (const RegexSyntax& part : syntax.parts) {
          ZRT_TRY(parts.emplace_back(), find(part, free_left, free_right));
        }
        return arena_.any_of(std::move(parts));
      }
      case SyntaxKind::kSequence: return find_sequence(syntax.parts, free_left, free_right);
      default: break;
    }
    ZRT_TRY(const Regex inner, lower(syntax));
    return arena_.concat({pad(free_left), inner, pad(free_right)});
  }

 private:
  Regex pad(bool is_free) {
    if (!is_free) return RegexArena::kEpsilon;
    return arena_.repeat(one_of(arena_, CharSet::any(), spelling_), 0, RegexArena::kUnbounded);
  }

  Result<Regex> find_sequence(std::vector<RegexSyntax> parts, bool free_left, bool free_right) {
    while (!parts.empty() && parts.front().kind == SyntaxKind::kBegin) {
      free_left = false;
      parts.erase(parts.begin());
    }
    while (!parts.empty() && parts.back().kind == SyntaxKind::kEnd) {
      free_right = false;
      parts.pop_back();
    }
    if (parts.empty()) return pad(free_left || free_right);
    if (parts.size() == 1) return find(parts[0], free_left, free_right);
    // An anchor within a group at an end: each of the group's alternatives with the rest.
    for (const bool first : {true, false}) {
      RegexSyntax& end = first ? parts.front() : parts.back();
      if (!has_anchor(end)) continue;
      if (end.kind == SyntaxKind::kSequence) {
        const std::vector<RegexSyntax> inner = std::move(end.parts);
        const auto at = first ? parts.erase(parts.begin()) : parts.erase(parts.end() - 1);
        parts.insert(at, inner.begin(), inner.end());
        return find_sequence(std::move(parts), free_left, free_right);
      }
      if (end.kind != SyntaxKind::kAlternatives) break;
      std::vector<Regex> made;
      for (const RegexSyntax& choice : std::vector<RegexSyntax>(end.parts)) {
        (first ? parts.front() : parts.back()) = choice;
        ZRT_TRY(made.emplace_back(), find_sequence(parts, free_left, free_right));
      }
      return arena_.any_of(std::move(made));
    }
    RegexSyntax whole;
    whole.parts = std::move(parts);
    ZRT_TRY(const Regex inner, lower(whole));
    return arena_.concat({pad(free_left), inner, pad(free_right)});
  }

  Result<Regex> lower(const RegexSyntax& syntax) {
    switch (syntax.kind) {
      case SyntaxKind::kChars: return one_of(arena_, syntax.chars, spelling_);
      case SyntaxKind::kBegin:
      case SyntaxKind::kEnd:
        return fail(StatusCode::kInvalidArgument, "[regex] {} in the middle, which is not supported",
                    syntax.kind == SyntaxKind::kBegin ? "^" : "$");
      case SyntaxKind::kRepeat: {
        ZRT_TRY(const Regex part, lower(syntax.parts[0]));
        return arena_.repeat(part, syntax.min, syntax.max);
      }
      case SyntaxKind::kSequence: {
        Regex made = RegexArena::kEpsilon;
        for (auto part = syntax.parts.rbegin(); part != syntax.parts.rend(); ++part) {
          ZRT_TRY(const Regex one, lower(*part));
          made = arena_.concat(one, made);
        }
        return made;
      }
      case SyntaxKind::kAlternatives: {
        std::vector<Regex> parts;
        for (const RegexSyntax& part : syntax.parts) {
          ZRT_TRY(parts.emplace_back(), lower(part));
        }
        return arena_.any_of(std::move(parts));
      }
    }
    return RegexArena::kNothing;
  }

  RegexArena& arena_;
  Spelling spelling_;
  Fuel work_;
};

}  // namespace

Result<Regex> parse_regex(RegexArena& arena, std::string_view pattern, Spelling spelling, Anchoring anchoring,
                          const Limits& limits) {
  ZRT_TRY(const RegexSyntax syntax, parse_regex_syntax(pattern, limits));
  const bool is_free = anchoring == Anchoring::kFind;
  return RegexLowering(arena, spelling, limits).find(syntax, is_free, is_free);
}

}  // namespace zinc_rt::grammar

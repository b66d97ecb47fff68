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

bool is_look(const RegexSyntax& syntax) {
  return syntax.kind == SyntaxKind::kAhead || syntax.kind == SyntaxKind::kNotAhead;
}

bool has_look(const RegexSyntax& syntax) {
  return is_look(syntax) || std::ranges::any_of(syntax.parts, has_look);
}

// Returns whether the part may match the empty text.
bool may_be_empty(const RegexSyntax& syntax) {
  switch (syntax.kind) {
    case SyntaxKind::kChars: return false;
    case SyntaxKind::kSequence: return std::ranges::all_of(syntax.parts, may_be_empty);
    case SyntaxKind::kAlternatives: return std::ranges::any_of(syntax.parts, may_be_empty);
    case SyntaxKind::kRepeat: return syntax.min == 0 || may_be_empty(syntax.parts[0]);
    default: return true;
  }
}

// Says whether a position is the beginning of the text. A ^ can only match there.
enum class AtBegin : std::uint8_t { kYes, kNo, kMaybe };

AtBegin behind(const RegexSyntax& part, AtBegin before) {
  if (before == AtBegin::kNo || part.kind == SyntaxKind::kBegin || part.kind == SyntaxKind::kEnd || is_look(part))
    return before;
  return may_be_empty(part) ? AtBegin::kMaybe : AtBegin::kNo;
}

class RegexLowering {
 public:
  RegexLowering(RegexArena& arena, Spelling spelling, const Limits& limits)
      : arena_(arena), spelling_(spelling), work_(limits.compile_work / 64) {}

  // Returns a regex for the texts in which the part matches. If free_left is false, the match must begin where the text
  // begins. If free_right is false, it must end where the text ends.
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

  // Compiles a pattern that contains a look-ahead; find() compiles all other patterns. A look-ahead checks text that
  // later parts of the pattern match. So each part is compiled together with everything after it, up to the end of the
  // text, and a look-ahead becomes a conjunction.
  Result<Regex> find_looking(const RegexSyntax& syntax, bool is_free) {
    const Regex rest = pad(is_free);
    ZRT_TRY(const Regex at_begin, match(syntax, rest, AtBegin::kYes));
    if (!is_free) return at_begin;
    ZRT_TRY(const Regex later, match(syntax, rest, AtBegin::kNo));
    const Regex some = arena_.repeat(any_character(), 1, RegexArena::kUnbounded);
    return arena_.any_of({at_begin, arena_.concat(some, later)});
  }

 private:
  // Returns a regex for the texts that begin with a match of the part and continue with a text of `rest`.
  Result<Regex> match(const RegexSyntax& syntax, Regex rest, AtBegin at) {
    work_.use(1 + syntax.parts.size());
    ZRT_CHECK_OK(work_.check("looks ahead of a pattern"));
    if (!has_look(syntax) && !has_anchor(syntax)) {
      ZRT_TRY(const Regex own, lower(syntax));
      return arena_.concat(own, rest);
    }
    switch (syntax.kind) {
      case SyntaxKind::kBegin:
        if (at == AtBegin::kMaybe)
          return fail(StatusCode::kInvalidArgument, "[regex] ^ behind what may be empty, which is not supported");
        return at == AtBegin::kYes ? rest : RegexArena::kNothing;
      case SyntaxKind::kEnd: return arena_.is_nullable(rest) ? RegexArena::kEpsilon : RegexArena::kNothing;
      case SyntaxKind::kAhead:
      case SyntaxKind::kNotAhead: {
        ZRT_TRY(const Regex seen, match(syntax.parts[0], pad(true), at));
        return arena_.all_of({rest, syntax.kind == SyntaxKind::kAhead ? seen : arena_.complement(seen)});
      }
      case SyntaxKind::kAlternatives: {
        std::vector<Regex> made;
        for (const RegexSyntax& part : syntax.parts) {
          ZRT_TRY(made.emplace_back(), match(part, rest, at));
        }
        return arena_.any_of(std::move(made));
      }
      case SyntaxKind::kSequence: {
        std::vector<AtBegin> places;
        for (const RegexSyntax& part : syntax.parts) {
          places.push_back(at);
          at = behind(part, at);
        }
        for (std::size_t i = syntax.parts.size(); i-- > 0;) {
          ZRT_TRY(rest, match(syntax.parts[i], rest, places[i]));
        }
        return rest;
      }
      case SyntaxKind::kRepeat: {
        constexpr std::uint32_t kMostUnrolled = 16;
        if (syntax.max > kMostUnrolled)
          return fail(StatusCode::kInvalidArgument,
                      "[regex] a look ahead or anchor that is repeated more than {} times", kMostUnrolled);
        const RegexSyntax& part = syntax.parts[0];
        const Regex end = rest;
        for (std::uint32_t i = syntax.max; i-- > 0;) {
          const auto place = i == 0 ? at : behind(part, at);
          ZRT_TRY(const Regex one, match(part, rest, place));
          rest = i >= syntax.min ? arena_.any_of({end, one}) : one;
        }
        return rest;
      }
      case SyntaxKind::kChars: break;
    }
    return RegexArena::kNothing;
  }

  Regex any_character() { return one_of(arena_, CharSet::any(), spelling_); }

  Regex pad(bool is_free) {
    if (!is_free) return RegexArena::kEpsilon;
    return arena_.repeat(any_character(), 0, RegexArena::kUnbounded);
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
    // A group begins or ends with an anchor, so each alternative of the group is combined with the parts beside the
    // group.
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
      case SyntaxKind::kAhead:
      case SyntaxKind::kNotAhead: break;  // match() handles every part with a look-ahead
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
  RegexLowering lowering(arena, spelling, limits);
  return has_look(syntax) ? lowering.find_looking(syntax, is_free) : lowering.find(syntax, is_free, is_free);
}

}  // namespace zinc_rt::grammar

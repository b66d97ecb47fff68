// The numbers, strings and other single values that a shape allows, as one regular expression each.
#include <algorithm>

#include "grammar/char_set.h"
#include "grammar/formats.h"
#include "grammar/regex_parser.h"
#include "grammar/schema.h"

namespace zinc_rt::grammar {
namespace {

constexpr std::uint32_t kMaxDivisor = 1'000'000;

struct BoundKeyword {
  const char* name;
  bool is_upper, is_exclusive;
};
constexpr BoundKeyword kBounds[] = {{"minimum", false, false},
                                    {"maximum", true, false},
                                    {"exclusiveMinimum", false, true},
                                    {"exclusiveMaximum", true, true}};

}  // namespace

Result<Regex> SchemaCompiler::numbers_of(const Shape& shape) {
  RegexArena& arena = rules_.arena;
  std::vector<Regex> bounds;
  for (const Json* schema : shape.schemas) {
    for (const BoundKeyword& bound : kBounds) {
      const auto it = schema->find(bound.name);
      if (it == schema->end()) continue;
      if (!it->is_number()) return refuse(&*it, "", "a number is wanted");
      bounds.push_back(number_bound(arena, plain_digits(*it), bound.is_upper, bound.is_exclusive));
    }
    if (const auto it = schema->find("multipleOf"); it != schema->end()) {
      if (!it->is_number() || it->get<double>() <= 0) return refuse(&*it, "", "a number above 0 is wanted");
      const std::string step = plain_digits(*it);
      const Regex minus = arena.optional(arena.literal("-"));
      if (step.find('.') == std::string::npos && it->get<double>() <= kMaxDivisor) {
        bounds.push_back(arena.concat(minus, arena.multiple_of(static_cast<std::uint32_t>(it->get<double>()))));
      } else if (step.starts_with("0.") && step.find_first_not_of('0', 2) == step.size() - 1 && step.back() == '1') {
        const auto n = static_cast<std::uint32_t>(step.size() - 2);
        const Regex digit = arena.bytes(ByteSet::range('0', '9'));
        bounds.push_back(arena.concat({minus, arena.repeat(digit, 1, RegexArena::kUnbounded),
                                       arena.optional(arena.concat(arena.literal("."), arena.repeat(digit, 1, n)))}));
      } else {
        return refuse(&*it, "", "whole numbers up to {} and 0.1, 0.01 and so on are enforced, not {}", kMaxDivisor,
                      step);
      }
    }
  }
  const bool is_whole = (shape.types & kFractionType) == 0;
  bounds.push_back(is_whole ? lexemes_.integer : bounds.empty() ? lexemes_.number : lexemes_.decimal);
  return arena.all_of(std::move(bounds));
}

// The texts that a pattern or format allows, as they are written between quotes.
Result<Regex> SchemaCompiler::pattern_of(const Json& schema, const char* keyword) {
  const Json& value = *schema.find(keyword);
  if (const auto it = patterns_.find(&value); it != patterns_.end()) return it->second;
  if (!value.is_string()) return refuse(&value, "", "a string is wanted");
  const auto& text = value.get_ref<const std::string&>();
  Result<Regex> made = RegexArena::kNothing;
  if (std::string_view(keyword) == "format") {
    const auto pattern = format_pattern(text);
    if (!pattern)
      return refuse(&value, "", "\"{}\" is not enforced; these are: {}", text.substr(0, 40), format_names());
    made = parse_regex(rules_.arena, *pattern, lexemes_.notation.spelling, Anchoring::kWhole, limits_);
  } else {
    made = parse_regex(rules_.arena, text, lexemes_.notation.spelling, Anchoring::kFind, limits_);
  }
  if (!made && is_too_complex(made.error())) return made;
  if (!made) return refuse(&value, "", "{}", made.error().message);
  patterns_.emplace(&value, *made);
  return made;
}

Result<Regex> SchemaCompiler::texts_of(const Shape& shape) {
  RegexArena& arena = rules_.arena;
  std::vector<Regex> parts;
  std::uint32_t min = 0, max = RegexArena::kUnbounded;
  for (const Json* schema : shape.schemas) {
    for (const char* keyword : {"pattern", "format"}) {
      if (!schema->contains(keyword)) continue;
      ZRT_TRY(parts.emplace_back(), pattern_of(*schema, keyword));
    }
    ZRT_TRY(const auto least, count_of(*schema, "minLength"));
    ZRT_TRY(const auto most, count_of(*schema, "maxLength"));
    min = std::max(min, least.value_or(0));
    max = std::min(max, most.value_or(RegexArena::kUnbounded));
  }
  if (min > max) return RegexArena::kNothing;
  // A pattern allows only characters as they are written, so a length need not be said again without bounds.
  if (parts.empty() || min > 0 || max != RegexArena::kUnbounded)
    parts.push_back(arena.repeat(lexemes_.character, min, max));
  if (!lexemes_.has_all_texts()) parts.push_back(lexemes_.texts);
  return arena.all_of(std::move(parts));
}

Result<Regex> SchemaCompiler::scalars_of(const Shape& shape) {
  RegexArena& arena = rules_.arena;
  std::vector<Regex> parts;
  if ((shape.types & kNullType) != 0) parts.push_back(arena.literal("null"));
  if ((shape.types & kBooleanType) != 0) {
    parts.push_back(arena.literal("true"));
    parts.push_back(arena.literal("false"));
  }
  if ((shape.types & (kIntegerType | kFractionType)) != 0) {
    ZRT_TRY(parts.emplace_back(), numbers_of(shape));
  }
  return arena.any_of(std::move(parts));
}

bool SchemaCompiler::matches(Regex regex, std::string_view text) {
  work_.use(text.size() * 4);
  for (const char byte : text) {
    regex = rules_.arena.derivative(regex, static_cast<std::uint8_t>(byte));
    if (regex == RegexArena::kNothing) return false;
  }
  return rules_.arena.is_nullable(regex);
}

}  // namespace zinc_rt::grammar

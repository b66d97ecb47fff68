// Makes regexes for the scalars that a shape allows: numbers, strings and other single values, one regex per kind.
#include <algorithm>

#include "base/json_number.h"
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
  const char* excludes;  // the boolean keyword that makes the bound exclusive if it is true
};
constexpr BoundKeyword kBounds[] = {{"minimum", false, false, "exclusiveMinimum"},
                                    {"maximum", true, false, "exclusiveMaximum"},
                                    {"exclusiveMinimum", false, true, nullptr},
                                    {"exclusiveMaximum", true, true, nullptr}};

// Returns whether the keyword is a format that is unknown, and therefore only an annotation.
bool is_unknown_format(const Json& schema, std::string_view keyword) {
  const Json* format = keyword == "format" ? find(schema, "format") : nullptr;
  return format != nullptr && format->is_string() && !format_pattern(format->get_ref<const std::string&>());
}

}  // namespace

// Returns a regex for the unsigned multiples of a step in plain digits. Returns nullopt if the step has too many
// digits.
std::optional<Regex> SchemaCompiler::multiples_of(std::string step) {
  RegexArena& arena = rules_.arena;
  const auto point = step.find('.');
  const auto n_fraction = point == std::string::npos ? 0 : step.size() - point - 1;
  if (n_fraction > 0) step.erase(point, 1);
  step.erase(0, step.find_first_not_of('0'));
  const auto n_zeros = step.size() - 1 - step.find_last_not_of('0');
  step.resize(step.size() - n_zeros);
  if (step.size() > std::to_string(kMaxDivisor).size() || std::stoul(step) > kMaxDivisor) return std::nullopt;
  const auto divisor = static_cast<std::uint32_t>(std::stoul(step));
  if (n_zeros == 0) return arena.multiple_of(divisor, 0, static_cast<std::uint32_t>(n_fraction));
  const auto zeros = static_cast<std::uint32_t>(n_zeros);
  const Regex zero = arena.literal("0");
  return arena.any_of({zero, arena.concat(arena.multiple_of(divisor), arena.repeat(zero, zeros, zeros))});
}

Result<Regex> SchemaCompiler::numbers_of(const Shape& shape) {
  RegexArena& arena = rules_.arena;
  std::vector<Regex> bounds;
  for (const Json* schema : shape.schemas) {
    for (const BoundKeyword& bound : kBounds) {
      const auto it = schema->find(bound.name);
      // Before draft 6, and in OpenAPI 3.0, exclusiveMinimum and exclusiveMaximum are booleans that qualify the other
      // bound.
      if (it == schema->end() || (bound.is_exclusive && it->is_boolean())) continue;
      const Json* excludes = bound.excludes == nullptr ? nullptr : find(*schema, bound.excludes);
      if (!is_json_number(*it)) return refuse(&*it, "", "a number is wanted");
      const auto digits = plain_digits(*it);
      if (!digits) return refuse(&*it, "", "a number of at most {} digits is wanted", kMaxPlainDigits);
      bounds.push_back(number_bound(arena, *digits, bound.is_upper,
                                    bound.is_exclusive || (excludes != nullptr && *excludes == true)));
    }
    if (const auto it = schema->find("multipleOf"); it != schema->end()) {
      const auto step = is_json_number(*it) ? plain_digits(*it) : std::nullopt;
      if (!step || *step == "0" || step->starts_with('-'))
        return refuse(&*it, "", "a number above 0 of at most {} digits is wanted", kMaxPlainDigits);
      const auto multiples = multiples_of(*step);
      if (!multiples)
        return refuse(&*it, "", "{} is not enforced: without its point and the zeros at its ends it may be at most {}",
                      number_text(*it).substr(0, 40), kMaxDivisor);
      bounds.push_back(arena.concat(arena.optional(arena.literal("-")), *multiples));
    }
  }
  const bool is_whole = (shape.types & kFractionType) == 0;
  bounds.push_back(is_whole ? lexemes_.integer : bounds.empty() ? lexemes_.number : lexemes_.decimal);
  return arena.all_of(std::move(bounds));
}

// Returns a regex for the texts that a pattern or format allows, as they are written between quotes.
Result<Regex> SchemaCompiler::pattern_of(const Json& schema, const char* keyword) {
  const Json& value = *schema.find(keyword);
  if (const auto it = patterns_.find(&value); it != patterns_.end()) return it->second;
  if (!value.is_string()) return refuse(&value, "", "a string is wanted");
  const auto& text = value.get_ref<const std::string&>();
  Result<Regex> made = RegexArena::kNothing;
  if (std::string_view(keyword) == "format") {
    const auto pattern = format_pattern(text);
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
      if (!schema->contains(keyword) || is_unknown_format(*schema, keyword)) continue;
      ZRT_TRY(parts.emplace_back(), pattern_of(*schema, keyword));
    }
    ZRT_TRY(const auto least, count_of(*schema, "minLength"));
    ZRT_TRY(const auto most, count_of(*schema, "maxLength"));
    min = std::max(min, least.value_or(0));
    max = std::min(max, most.value_or(RegexArena::kUnbounded));
  }
  if (min > max) return RegexArena::kNothing;
  // A pattern already allows only characters that can be written. So a length without bounds adds no condition to it.
  if (parts.empty() || min > 0 || max != RegexArena::kUnbounded)
    parts.push_back(arena.repeat(lexemes_.character, min, max));
  if (!lexemes_.has_all_texts()) parts.push_back(lexemes_.texts);
  return arena.all_of(std::move(parts));
}

Result<Regex> SchemaCompiler::scalars_of(const Shape& shape) {
  RegexArena& arena = rules_.arena;
  std::vector<Regex> parts;
  const auto word = [&](const Json& value) { return arena.literal(lexemes_.scalar_text(value)); };
  if ((shape.types & kNullType) != 0) parts.push_back(word(nullptr));
  if ((shape.types & kBooleanType) != 0) {
    parts.push_back(word(true));
    parts.push_back(word(false));
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

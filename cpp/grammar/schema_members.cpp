// Collects the members that a shape's objects may have: first the members that the schemas name, in their order, then
// members with other names.
#include <algorithm>
#include <set>

#include "grammar/char_set.h"
#include "grammar/regex_parser.h"
#include "grammar/schema.h"

namespace zinc_rt::grammar {
namespace {

// A schema may have at most this many patterns of names, because with n patterns the names that the schemas do not list
// fall into up to 2^n groups.
constexpr std::size_t kMaxPatterns = 6;

}  // namespace

Result<SchemaCompiler::Members> SchemaCompiler::members_of(const Shape& shape) {
  Members made;
  std::map<std::string_view, std::size_t> number;
  const auto put = [&](std::string_view name) {
    if (number.emplace(name, made.members.size()).second) made.members.push_back({std::string(name), {}, false});
  };
  for (const Json* schema : shape.schemas) {
    const Json* properties = find(*schema, "properties");
    if (properties == nullptr) continue;
    if (!properties->is_object()) return refuse(properties, "", "an object is wanted");
    for (const auto& property : properties->get_ref<const Json::object_t&>()) put(property.first);
  }
  std::size_t n_required = 0;
  for (const Json* schema : shape.schemas) {
    const Json* required = find(*schema, "required");
    if (required == nullptr) continue;
    if (!required->is_array()) return refuse(required, "", "a list of names is wanted");
    for (const Json& name : *required) {
      if (!name.is_string()) return refuse(required, "", "a list of names is wanted");
      const auto& text = name.get_ref<const std::string&>();
      put(text);
      bool& is_required = made.members[number.at(text)].is_required;
      n_required += is_required ? 0 : 1;
      is_required = true;
    }
  }
  work_.use(made.members.size() * (1 + shape.schemas.size()));
  ZRT_CHECK_OK(work_.check("work on a schema"));

  for (const Json* schema : shape.schemas) {
    const auto& properties = properties_of(*schema);
    const Json* patterns = find(*schema, "patternProperties");
    if (patterns != nullptr && !patterns->is_object()) return refuse(patterns, "", "an object is wanted");
    const Json* additional = find(*schema, "additionalProperties");
    const Json* names = find(*schema, "propertyNames");
    for (Members::Member& member : made.members) {
      const auto it = properties.find(member.name);
      bool is_known = it != properties.end();
      if (is_known) member.claim = with(member.claim, it->second);
      if (patterns != nullptr) {
        for (const auto& pattern : patterns->get_ref<const Json::object_t&>()) {
          ZRT_TRY(const Regex regex, name_pattern(*patterns, pattern.first));
          if (!matches(regex, lexemes_.spelling_of(member.name))) continue;
          is_known = true;
          member.claim = with(member.claim, &pattern.second);
        }
      }
      if (!is_known && additional != nullptr) member.claim = with(member.claim, additional);
      if (names != nullptr) {
        static const Json kNever = false;
        ZRT_TRY(const bool fits, is_valid(member.name, {{names}, {}}));
        if (!fits) member.claim = with(member.claim, &kNever);
      }
    }
  }
  ZRT_CHECK_OK(add_rests(shape, made));

  // The grammar does not count members. So a limit on their number is accepted only if the rest of the schema implies
  // it.
  for (const Json* schema : shape.schemas) {
    ZRT_TRY(const auto least, count_of(*schema, "minProperties"));
    ZRT_TRY(const auto most, count_of(*schema, "maxProperties"));
    if (least.value_or(0) > n_required)
      return refuse(schema, "minProperties", "enforced only up to the number of required properties, {}", n_required);
    const bool is_closed = std::ranges::all_of(made.rests, [&](const Members::Rest& rest) {
      return std::ranges::any_of(rest.claim.schemas, [](const Json* s) { return s->is_boolean() && !s->get<bool>(); });
    });
    if (most && (!is_closed || *most < made.members.size()))
      return refuse(schema, "maxProperties",
                    "enforced only from the number of properties on where no others are allowed");
  }
  return made;
}

Result<Regex> SchemaCompiler::name_pattern(const Json& patterns, const std::string& pattern) {
  const Json& value = *patterns.find(pattern);
  if (const auto it = patterns_.find(&value); it != patterns_.end()) return it->second;
  const auto made = parse_regex(rules_.arena, pattern, lexemes_.notation.spelling, Anchoring::kFind, limits_);
  if (!made && is_too_complex(made.error())) return made;
  if (!made) return refuse(&value, "", "{}", made.error().message);
  patterns_.emplace(&value, *made);
  return made;
}

Status SchemaCompiler::add_rests(const Shape& shape, Members& made) {
  RegexArena& arena = rules_.arena;
  struct Pattern {
    const Json* of;  // the schema that contains the pattern
    Regex regex;
    const Json* value;
  };
  std::vector<Pattern> patterns;
  std::vector<Regex> allowed = {lexemes_.names};
  for (const Json* schema : shape.schemas) {
    if (const Json* list = find(*schema, "patternProperties")) {
      for (const auto& pattern : list->get_ref<const Json::object_t&>()) {
        ZRT_TRY(const Regex regex, name_pattern(*list, pattern.first));
        patterns.push_back({schema, regex, &pattern.second});
      }
      if (patterns.size() > kMaxPatterns)
        return too_complex("patterns of patternProperties", patterns.size(), kMaxPatterns);
    }
    if (const Json* names = find(*schema, "propertyNames")) {
      // Names are strings, so only keywords for strings matter.
      Kinds kinds;
      ZRT_CHECK_OK(collect({{names}, {}}, kinds));
      allowed.push_back(arena.any_of(std::move(kinds.texts)));
    }
  }
  std::vector<std::string_view> names;
  for (const Members::Member& member : made.members) names.push_back(member.name);
  allowed.push_back(arena.complement(lexemes_.any_text(names)));
  for (std::size_t group = 0; group < std::size_t{1} << patterns.size(); ++group) {
    Members::Rest rest{RegexArena::kNothing, {}};
    std::vector<Regex> parts = allowed;
    std::set<const Json*> matched;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const bool is_in = (group >> i & 1) != 0;
      parts.push_back(is_in ? patterns[i].regex : arena.complement(patterns[i].regex));
      if (!is_in) continue;
      rest.claim = with(rest.claim, patterns[i].value);
      matched.insert(patterns[i].of);
    }
    for (const Json* schema : shape.schemas) {
      const Json* additional = find(*schema, "additionalProperties");
      if (additional != nullptr && !matched.contains(schema)) rest.claim = with(rest.claim, additional);
    }
    rest.names = arena.all_of(std::move(parts));
    if (!arena.is_nothing(rest.names, search_left_)) made.rests.push_back(std::move(rest));
  }
  if (search_left_ == 0 || arena.is_full())
    return too_complex("work to see whether expressions match anything", limits_.compile_work / 8 + 1,
                       limits_.compile_work / 8);
  return {};
}

}  // namespace zinc_rt::grammar

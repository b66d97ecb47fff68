#include "grammar/schema_keywords.h"

#include <algorithm>

namespace zinc_rt::grammar {
namespace {

using enum KeywordUse;

struct Keyword {
  std::string_view name;
  KeywordUse use;
};

// Lists all keywords that constrain a value, in draft 2020-12 and in earlier drafts.
constexpr Keyword kKeywords[] = {
    {"$dynamicAnchor", kRefused},
    {"$dynamicRef", kRefused},
    {"$id", kEnforced},
    {"$recursiveRef", kRefused},
    {"$ref", kEnforced},
    {"$schema", kEnforced},
    {"$vocabulary", kRefused},
    {"additionalItems", kEnforced},
    {"additionalProperties", kEnforced},
    {"allOf", kEnforced},
    {"anyOf", kEnforced},
    {"const", kEnforced},
    {"contains", kRefused},
    {"dependencies", kRefused},
    {"dependentRequired", kRefused},
    {"dependentSchemas", kRefused},
    {"else", kRefused},
    {"enum", kEnforced},
    {"exclusiveMaximum", kEnforced},
    {"exclusiveMinimum", kEnforced},
    {"format", kEnforced},
    {"if", kRefused},
    {"items", kEnforced},
    {"maxContains", kRefused},
    {"maxItems", kEnforced},
    {"maxLength", kEnforced},
    {"maxProperties", kEnforced},
    {"maximum", kEnforced},
    {"minContains", kRefused},
    {"minItems", kEnforced},
    {"minLength", kEnforced},
    {"minProperties", kEnforced},
    {"minimum", kEnforced},
    {"multipleOf", kEnforced},
    {"not", kRefused},
    {"oneOf", kEnforced},
    {"pattern", kEnforced},
    {"patternProperties", kEnforced},
    {"prefixItems", kEnforced},
    {"properties", kEnforced},
    {"propertyNames", kEnforced},
    {"required", kEnforced},
    {"then", kRefused},
    {"type", kEnforced},
    {"unevaluatedItems", kRefused},
    {"unevaluatedProperties", kRefused},
    {"uniqueItems", kEnforced},
};
static_assert(std::ranges::is_sorted(kKeywords, {}, &Keyword::name));

}  // namespace

KeywordUse use_of(std::string_view keyword) {
  const auto it = std::ranges::lower_bound(kKeywords, keyword, {}, &Keyword::name);
  return it != std::end(kKeywords) && it->name == keyword ? it->use : kAnnotation;
}

}  // namespace zinc_rt::grammar

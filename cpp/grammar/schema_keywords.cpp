#include "grammar/schema_keywords.h"

#include <algorithm>

namespace zinc_rt::grammar {
namespace {

using enum KeywordUse;

struct Keyword {
  std::string_view name;
  KeywordUse use;
};

constexpr Keyword kKeywords[] = {
    {"$anchor", kAnnotation},
    {"$comment", kAnnotation},
    {"$defs", kAnnotation},
    {"$dynamicAnchor", kRefused},
    {"$dynamicRef", kRefused},
    {"$id", kEnforced},
    {"$ref", kEnforced},
    {"$schema", kEnforced},
    {"$vocabulary", kRefused},
    {"additionalProperties", kEnforced},
    {"allOf", kEnforced},
    {"anyOf", kEnforced},
    {"const", kEnforced},
    {"contains", kRefused},
    {"contentEncoding", kAnnotation},
    {"contentMediaType", kAnnotation},
    {"contentSchema", kAnnotation},
    {"default", kAnnotation},
    {"definitions", kAnnotation},
    {"dependentRequired", kRefused},
    {"dependentSchemas", kRefused},
    {"deprecated", kAnnotation},
    {"description", kAnnotation},
    {"else", kRefused},
    {"enum", kEnforced},
    {"example", kAnnotation},
    {"examples", kAnnotation},
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
    {"readOnly", kAnnotation},
    {"required", kEnforced},
    {"then", kRefused},
    {"title", kAnnotation},
    {"type", kEnforced},
    {"unevaluatedItems", kRefused},
    {"unevaluatedProperties", kRefused},
    {"uniqueItems", kEnforced},
    {"writeOnly", kAnnotation},
};
static_assert(std::ranges::is_sorted(kKeywords, {}, &Keyword::name));

}  // namespace

KeywordUse use_of(std::string_view keyword) {
  const auto it = std::ranges::lower_bound(kKeywords, keyword, {}, &Keyword::name);
  return it != std::end(kKeywords) && it->name == keyword ? it->use : kUnknown;
}

}  // namespace zinc_rt::grammar

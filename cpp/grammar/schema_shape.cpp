// Resolves a claim to a shape: follows $ref and allOf, intersects types, and finds the next anyOf or oneOf.
#include <algorithm>

#include "base/json_number.h"
#include "grammar/schema.h"
#include "grammar/schema_keywords.h"

namespace zinc_rt::grammar {
namespace {

struct TypeName {
  std::string_view name;
  std::uint8_t bits;
};
constexpr TypeName kTypeNames[] = {
    {"null", kNullType},     {"boolean", kBooleanType}, {"integer", kIntegerType},
    {"string", kStringType}, {"array", kArrayType},     {"number", kIntegerType | kFractionType},
    {"object", kObjectType},
};

// Returns the bits of a type's name, or 0 if there is no such type.
std::uint8_t type_bits(const Json& name) {
  if (!name.is_string()) return 0;
  for (const TypeName& type : kTypeNames)
    if (name.get_ref<const std::string&>() == type.name) return type.bits;
  return 0;
}

bool allows_all(const Json& schema) {
  return schema == true || (schema.is_object() && schema.empty());
}

// Returns whether a keyword that the compiler does not enforce has no effect in this schema, so that it need not be
// refused.
bool constrains_nothing(const Json& schema, std::string_view keyword, const Json& value) {
  if (keyword == "if") return !schema.contains("then") && !schema.contains("else");
  if (keyword == "then" || keyword == "else") return !schema.contains("if") || allows_all(value);
  if (keyword == "minContains" || keyword == "maxContains") return !schema.contains("contains");
  if (keyword == "not") return value == false;
  if (keyword == "unevaluatedItems" || keyword == "unevaluatedProperties") return allows_all(value);
  return keyword.starts_with("dependen") && value.is_object() && value.empty();
}

void insert_sorted(std::vector<const Json*>& list, const Json* item) {
  const auto it = std::ranges::lower_bound(list, item);
  if (it == list.end() || *it != item) list.insert(it, item);
}

}  // namespace

Claim SchemaCompiler::with(const Claim& claim, const Json* schema, const Json* choice) {
  work_.use(1 + claim.schemas.size() + claim.chosen.size());
  Claim made = claim;
  insert_sorted(made.schemas, schema);
  if (choice != nullptr) insert_sorted(made.chosen, choice);
  return made;
}

std::string SchemaCompiler::pointer_to(const Json* part) const {
  struct Step {
    const Json* value;
    std::string pointer;
  };
  std::vector<Step> open = {{&root_, ""}};
  while (!open.empty()) {
    const Step step = std::move(open.back());
    open.pop_back();
    if (step.value == part) return step.pointer;
    if (!step.value->is_structured()) continue;
    for (const auto& item : step.value->items()) {
      std::string name;
      for (const char c : item.key()) name += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
      open.push_back({&item.value(), step.pointer + "/" + name});
    }
  }
  return "";
}

// Returns a member of an object. An object with many members is sorted once, because references look up names
// repeatedly.
const Json* SchemaCompiler::member_of(const Json& object, const std::string& name) {
  constexpr std::size_t kFew = 16;
  if (object.size() <= kFew) return find(object, name.c_str());
  auto& sorted = sorted_[&object];
  if (sorted.empty()) {
    work_.use(object.size());
    for (const auto& [key, value] : object.get_ref<const Json::object_t&>()) sorted.emplace(key, &value);
  }
  const auto it = sorted.find(name);
  return it == sorted.end() ? nullptr : it->second;
}

Result<const Json*> SchemaCompiler::resolve(const Json& schema, const std::string& reference) {
  if (!reference.starts_with('#'))
    return refuse(&schema, "$ref", "\"{}\" is not in this schema; only references that begin with # are followed",
                  reference.substr(0, 80));
  const Json* at = &root_;
  std::string_view rest = std::string_view(reference).substr(1);
  if (!rest.empty() && !rest.starts_with('/'))
    return refuse(&schema, "$ref", "\"{}\": references to anchors are not followed", reference.substr(0, 80));
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(part.size());
    std::string name;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const auto hex = [](char c) {
        return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
      };
      if (part[i] == '~' && i + 1 < part.size()) {
        name += part[++i] == '1' ? '/' : '~';
      } else if (part[i] == '%' && i + 2 < part.size() && hex(part[i + 1]) >= 0 && hex(part[i + 2]) >= 0) {
        name += static_cast<char>(hex(part[i + 1]) * 16 + hex(part[i + 2]));
        i += 2;
      } else {
        name += part[i];
      }
    }
    const Json* next = nullptr;
    if (at->is_object()) {
      next = member_of(*at, name);
    } else if (at->is_array() && !name.empty() && name.size() < 8 &&
               name.find_first_not_of("0123456789") == std::string::npos) {
      const auto i = static_cast<std::size_t>(std::stoul(name));
      if (i < at->size()) next = &(*at)[i];
    }
    if (next == nullptr) return refuse(&schema, "$ref", "\"{}\" leads nowhere", reference.substr(0, 80));
    at = next;
    if (const Json* id = find(*at, "$id"); id != nullptr && id->is_string())
      return refuse(&schema, "$ref", "\"{}\" leads through a schema with an $id of its own", reference.substr(0, 80));
  }
  if (!at->is_object() && !at->is_boolean())
    return refuse(&schema, "$ref", "\"{}\" is no schema", reference.substr(0, 80));
  return at;
}

// Fails if a schema refers to itself through $ref or in-place keywords, because such a schema has no meaning.
Status SchemaCompiler::check_no_cycle(const Json* schema) {
  struct Step {
    const Json* schema;
    std::vector<const Json*> next;
  };
  const auto step_of = [this](const Json* s) -> Result<Step> {
    Step step{s, {}};
    if (!s->is_object()) return step;
    if (const Json* ref = find(*s, "$ref"); ref != nullptr && ref->is_string()) {
      ZRT_TRY(const Json* target, resolve(*s, ref->get_ref<const std::string&>()));
      step.next.push_back(target);
    }
    for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
      if (const Json* list = find(*s, keyword); list != nullptr && list->is_array())
        for (const Json& branch : *list) step.next.push_back(&branch);
    }
    work_.use(1 + step.next.size());
    return step;
  };
  if (acyclic_.contains(schema)) return {};
  std::set<const Json*> on_path = {schema};
  std::vector<Step> path;
  ZRT_TRY(path.emplace_back(), step_of(schema));
  while (!path.empty()) {
    ZRT_CHECK_OK(work_.check("work on a schema"));
    if (path.back().next.empty()) {
      acyclic_.insert(path.back().schema);
      on_path.erase(path.back().schema);
      path.pop_back();
      continue;
    }
    const Json* next = path.back().next.back();
    path.back().next.pop_back();
    if (on_path.contains(next)) return refuse(next, "", "this schema refers to itself");
    if (acyclic_.contains(next)) continue;
    on_path.insert(next);
    ZRT_TRY(auto step, step_of(next));
    path.push_back(std::move(step));
  }
  return {};
}

Result<Shape> SchemaCompiler::shape_of(const Claim& claim) {
  Shape shape;
  work_.use(claim.schemas.size());
  std::vector<const Json*> todo = claim.schemas;
  std::ranges::reverse(todo);
  std::set<const Json*> met;
  while (!todo.empty()) {
    const Json* schema = todo.back();
    todo.pop_back();
    if (!met.insert(schema).second) continue;
    work_.use(1);
    ZRT_CHECK_OK(work_.check("work on a schema"));
    if (schema->is_boolean()) {
      if (!schema->get<bool>()) shape.types = 0;
      continue;
    }
    if (!schema->is_object()) return refuse(schema, "", "a schema is an object, true or false");
    ZRT_CHECK_OK(check_no_cycle(schema));
    ZRT_CHECK_OK(read_keywords(*schema, shape, todo, claim));
    shape.schemas.push_back(schema);
  }
  return shape;
}

// Returns a schema that requires the property that OpenAPI's discriminator names, because that property tells the
// branches apart. Schemas that give the property a default do not list it in `required`, but the answer must still
// contain it. Returns null if the schema has no discriminator.
const Json* SchemaCompiler::tag_of(const Json& schema) {
  const Json* discriminator = find(schema, "discriminator");
  const Json* name =
      discriminator != nullptr && discriminator->is_object() ? find(*discriminator, "propertyName") : nullptr;
  if (name == nullptr || !name->is_string()) return nullptr;
  auto& made = tags_[&schema];
  if (made == nullptr) made = std::make_unique<Json>(Json{{"required", Json::array({*name})}});
  return made.get();
}

Status SchemaCompiler::read_keywords(const Json& schema, Shape& shape, std::vector<const Json*>& todo,
                                     const Claim& claim) {
  for (const auto& [keyword, value] : schema.items()) {
    work_.use(1);
    switch (use_of(keyword)) {
      case KeywordUse::kAnnotation: continue;
      case KeywordUse::kRefused:
        if (constrains_nothing(schema, keyword, value)) continue;
        if (keyword != "not" || !allows_all(value)) return refuse(&value, "", "this keyword is not enforced");
        shape.types = 0;
        continue;
      case KeywordUse::kEnforced: break;
    }
    if (keyword == "type") {
      std::uint8_t types = 0;
      const bool is_list = value.is_array();
      for (std::size_t i = 0; i < (is_list ? value.size() : 1); ++i) {
        const std::uint8_t bits = type_bits(is_list ? value[i] : value);
        if (bits == 0) return refuse(&value, "", "no such type");
        types |= bits;
      }
      shape.types &= types;
    } else if (keyword == "const") {
      shape.values.push_back(&value);
      shape.has_values = true;
    } else if (keyword == "enum") {
      if (!value.is_array()) return refuse(&value, "", "a list is wanted");
      shape.values.push_back(&value);
      shape.has_values = true;
    } else if (keyword == "$ref") {
      if (!value.is_string()) return refuse(&value, "", "a string is wanted");
      ZRT_TRY(const Json* target, resolve(schema, value.get_ref<const std::string&>()));
      todo.push_back(target);
    } else if (keyword == "$id") {
      if (&schema != &root_) return refuse(&value, "", "$id is known in the root alone");
    } else if (keyword == "$schema") {
      if (!value.is_string() || value.get_ref<const std::string&>().find("://json-schema.org/") == std::string::npos)
        return refuse(&value, "", "only the dialects of json-schema.org are known");
    } else if (keyword == "allOf" || keyword == "anyOf" || keyword == "oneOf") {
      if (!value.is_array() || value.empty()) return refuse(&value, "", "a list of schemas is wanted");
      if (keyword == "allOf") {
        for (std::size_t i = value.size(); i-- > 0;) todo.push_back(&value[i]);
        continue;
      }
      const Json* tagged = tag_of(schema);
      if (tagged != nullptr) todo.push_back(tagged);
      if (std::ranges::binary_search(claim.chosen, &value) || shape.choice != nullptr) continue;
      if (keyword == "oneOf") ZRT_CHECK_OK(check_disjoint(value, tagged));
      shape.choice = &value;
    }
  }
  return {};
}

Result<std::optional<std::uint32_t>> SchemaCompiler::count_of(const Json& schema, const char* keyword) {
  const Json* value = find(schema, keyword);
  if (value == nullptr) return std::nullopt;
  const bool is_number = is_json_number(*value) && number_value(*value) >= 0;
  const auto digits = is_number ? plain_digits(*value) : std::nullopt;
  if (!digits || digits->contains('.')) return refuse(value, "", "a whole number from 0 on is wanted");
  const double count = number_value(*value);
  // An upper bound costs work only for the text that is written, so it may exceed max_repeat. No answer is as long as
  // the largest bounds allow.
  if (std::string_view(keyword).starts_with("max"))
    return static_cast<std::uint32_t>(std::min<double>(count, RegexArena::kUnbounded));
  if (count > limits_.max_repeat) {
    return too_complex(fmt::format("{}: repeats", pointer_to(value)), static_cast<std::uint64_t>(std::min(count, 9e18)),
                       limits_.max_repeat);
  }
  return static_cast<std::uint32_t>(count);
}

const std::map<std::string_view, const Json*>& SchemaCompiler::properties_of(const Json& schema) {
  auto& made = properties_[&schema];
  const Json* properties = find(schema, "properties");
  if (made.empty() && properties != nullptr && properties->is_object())
    for (const auto& [name, value] : properties->get_ref<const Json::object_t&>()) made.emplace(name, &value);
  return made;
}

}  // namespace zinc_rt::grammar

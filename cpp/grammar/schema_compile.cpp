// Claims to rules: which kinds of value one allows, and the insides of objects and lists.
#include <algorithm>
#include <utility>

#include "grammar/char_set.h"
#include "grammar/schema.h"

namespace zinc_rt::grammar {
namespace {

// Claims nest where schemas refer to themselves in ever new combinations; ordinary schemas stay far below.
constexpr int kMaxClaimDepth = 300;

class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(++depth) {}
  ~Deeper() { --depth_; }

 private:
  int& depth_;
};

}  // namespace

SchemaCompiler::SchemaCompiler(const Json& root, Rules& rules, JsonLexemes& lexemes, const Limits& limits)
    : root_(root),
      rules_(rules),
      lexemes_(lexemes),
      limits_(limits),
      work_(limits.compile_work),
      search_budget_(limits.compile_work / 8) {}

Result<Symbol> SchemaCompiler::run() {
  return symbol_of({{&root_}, {}}, false);
}

Status SchemaCompiler::collect(const Claim& claim, Kinds& kinds) {
  ZRT_TRY(const Shape shape, shape_of(claim));
  if (rules_.arena.is_full())
    return too_complex("parts of expressions", limits_.max_regex_nodes + 1, limits_.max_regex_nodes);
  if (shape.is_empty()) return {};
  if (shape.has_values) {
    std::vector<std::string_view> texts;
    const Json& first = *shape.values[0];
    // A const that is itself a list is one value; only enum's list is told apart by whom it belongs to.
    const bool is_enum = std::ranges::any_of(shape.schemas, [&](const Json* s) { return find(*s, "enum") == &first; });
    for (std::size_t i = 0; i < (is_enum ? first.size() : 1); ++i) {
      const Json& value = is_enum ? first[i] : first;
      ZRT_TRY(const bool fits, is_valid(value, claim, &first));
      if (!fits) continue;
      if (value.is_string()) {
        texts.push_back(value.get_ref<const std::string&>());
      } else {
        kinds.scalars.push_back(lexemes_.constant(value));
      }
    }
    if (!texts.empty()) kinds.scalars.push_back(lexemes_.in_quotes(lexemes_.any_text(texts)));
    return {};
  }
  if (shape.choice != nullptr) {
    for (const Json& branch : *shape.choice) ZRT_CHECK_OK(collect(with(claim, &branch, shape.choice), kinds));
    return {};
  }
  ZRT_TRY(const Regex scalars, scalars_of(shape));
  if (scalars != RegexArena::kNothing) kinds.scalars.push_back(scalars);
  if ((shape.types & kArrayType) != 0) kinds.arrays.push_back(claim);
  if ((shape.types & kObjectType) != 0) kinds.objects.push_back(claim);
  return {};
}

Result<Symbol> SchemaCompiler::symbol_of(const Claim& claim, bool with_space) {
  const auto key = std::pair(claim, with_space);
  if (const auto it = symbols_.find(key); it != symbols_.end()) return it->second;
  const Deeper deeper(depth_);
  if (depth_ > kMaxClaimDepth) return too_complex("nesting of a schema", kMaxClaimDepth + 1, kMaxClaimDepth);
  const Symbol made = rules_.new_symbol();
  symbols_.emplace(key, made);
  Kinds kinds;
  ZRT_CHECK_OK(collect(claim, kinds));
  if (!kinds.scalars.empty()) {
    const Regex scalars = rules_.arena.any_of(std::move(kinds.scalars));
    rules_.add_sequence(made, {rules_.terminal(with_space ? lexemes_.with_space(scalars) : scalars)});
  }
  for (const bool is_object : {false, true}) {
    for (const Claim& one : is_object ? kinds.objects : kinds.arrays) {
      const Symbol open = rules_.terminal(lexemes_.sign(is_object ? "{" : "[", with_space));
      ZRT_TRY(const Symbol body, body_of(one, is_object));
      rules_.add_sequence(made, {open, body});
    }
  }
  return made;
}

Result<Symbol> SchemaCompiler::body_of(const Claim& claim, bool is_object) {
  const auto key = std::pair(claim, is_object);
  if (const auto it = bodies_.find(key); it != bodies_.end()) return it->second;
  const Symbol made = rules_.new_symbol();
  bodies_.emplace(key, made);
  ZRT_TRY(const Shape shape, shape_of(claim));
  const Symbol inside = rules_.new_symbol();
  const Symbol comma = rules_.terminal(lexemes_.sign(",", true));
  rules_.add_sequence(made, {inside, rules_.terminal(lexemes_.sign(is_object ? "}" : "]", true))});
  if (!is_object) {
    ZRT_TRY(const Parts parts, parts_of(shape));
    ListRule rule;
    for (const Claim& part : parts.first) {
      ZRT_TRY(rule.first.emplace_back(), symbol_of(part, true));
    }
    ZRT_TRY(rule.rest, symbol_of(parts.rest, true));
    rule.min = parts.min;
    rule.max = parts.max;
    rule.separator = comma;
    rules_.add_list(inside, std::move(rule));
    return made;
  }
  ZRT_TRY(const Members members, members_of(shape));
  RegexArena& arena = rules_.arena;
  const auto add = [&](std::vector<ObjectRule::Member>& to, Regex name, const Claim& value,
                       bool is_required) -> Status {
    ZRT_TRY(const Symbol symbol, symbol_of(value, true));
    const Regex named = arena.concat(lexemes_.with_space(name), lexemes_.sign(":", true));
    to.push_back(
        {rules_.lexeme(named), rules_.lexeme(arena.concat(lexemes_.sign(",", true), named)), symbol, is_required});
    return {};
  };
  ObjectRule rule;
  for (const auto& member : members.members)
    ZRT_CHECK_OK(add(rule.members, lexemes_.in_quotes(spelled(arena, member.name, Spelling::kJson)), member.claim,
                     member.is_required));
  for (const auto& rest : members.rests) ZRT_CHECK_OK(add(rule.rests, rest.names, rest.claim, false));
  rules_.add_object(inside, std::move(rule));
  return made;
}

Result<SchemaCompiler::Parts> SchemaCompiler::parts_of(const Shape& shape) {
  Parts made;
  bool is_unique = false;
  std::size_t n_first = 0;
  for (const Json* schema : shape.schemas) {
    if (const Json* prefix = find(*schema, "prefixItems")) {
      if (!prefix->is_array()) return refuse(prefix, "", "a list of schemas is wanted");
      n_first = std::max(n_first, prefix->size());
    }
    if (const Json* unique = find(*schema, "uniqueItems")) {
      if (!unique->is_boolean()) return refuse(unique, "", "true or false is wanted");
      is_unique |= unique->get<bool>();
    }
    ZRT_TRY(const auto least, count_of(*schema, "minItems"));
    ZRT_TRY(const auto most, count_of(*schema, "maxItems"));
    made.min = std::max(made.min, least.value_or(0));
    made.max = std::min(made.max, most.value_or(RegexArena::kUnbounded));
  }
  if (is_unique && made.max > 1) {
    for (const Json* schema : shape.schemas)
      if (const Json* unique = find(*schema, "uniqueItems")) return refuse(unique, "", "this keyword is not enforced");
  }
  made.first.resize(n_first);
  for (const Json* schema : shape.schemas) {
    const Json* prefix = find(*schema, "prefixItems");
    const Json* items = find(*schema, "items");
    if (items != nullptr && items->is_array())
      return refuse(items, "", "a list of schemas here is prefixItems since draft 2020-12");
    for (std::size_t i = 0; i < n_first; ++i) {
      work_.use(1);
      if (prefix != nullptr && i < prefix->size()) {
        made.first[i] = with(made.first[i], &(*prefix)[i]);
      } else if (items != nullptr) {
        made.first[i] = with(made.first[i], items);
      }
    }
    if (items != nullptr) made.rest = with(made.rest, items);
  }
  return made;
}

}  // namespace zinc_rt::grammar

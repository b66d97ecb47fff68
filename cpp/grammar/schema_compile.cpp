// Turns claims into rules: collects the kinds of values that a claim allows, and compiles the contents of objects and
// lists.
#include <algorithm>
#include <utility>

#include "grammar/char_set.h"
#include "grammar/schema.h"

namespace zinc_rt::grammar {
namespace {

// Claims may be nested at most this deep. Only a schema that refers to itself in ever new combinations reaches the
// limit.
constexpr int kMaxClaimDepth = 300;

class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(++depth) {}
  ~Deeper() { --depth_; }

 private:
  int& depth_;
};

}  // namespace

SchemaCompiler::SchemaCompiler(const Json& root, Rules& rules, JsonLexemes& lexemes, const Limits& limits,
                               CompileWork& work)
    : root_(root), rules_(rules), lexemes_(lexemes), limits_(limits), work_(work.fuel), search_left_(work.search) {}

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
    // A list in const is one value, but a list in enum is a list of values. The keyword that contains the list decides.
    const bool is_enum = std::ranges::any_of(shape.schemas, [&](const Json* s) { return find(*s, "enum") == &first; });
    for (std::size_t i = 0; i < (is_enum ? first.size() : 1); ++i) {
      const Json& value = is_enum ? first[i] : first;
      ZRT_TRY(const bool fits, is_valid(value, claim, &first));
      if (!fits || !can_be_written(value)) continue;
      if (value.is_string())
        texts.push_back(value.get_ref<const std::string&>());
      else if (value.is_structured())
        kinds.constants.push_back(&value);
      else
        kinds.scalars.push_back(rules_.arena.literal(lexemes_.scalar_text(value)));
    }
    if (!texts.empty()) kinds.texts.push_back(lexemes_.any_text(texts));
    kinds.given.insert(kinds.given.end(), texts.begin(), texts.end());
    return {};
  }
  if (shape.choice != nullptr) {
    for (const Json& branch : *shape.choice) ZRT_CHECK_OK(collect(with(claim, &branch, shape.choice), kinds));
    return {};
  }
  ZRT_TRY(const Regex scalars, scalars_of(shape));
  if (scalars != RegexArena::kNothing) kinds.scalars.push_back(scalars);
  if ((shape.types & kStringType) != 0) {
    ZRT_TRY(kinds.texts.emplace_back(), texts_of(shape));
    kinds.has_only_given = false;
  }
  if ((shape.types & kArrayType) != 0) kinds.arrays.push_back(claim);
  if ((shape.types & kObjectType) != 0) kinds.objects.push_back(claim);
  return {};
}

Result<Symbol> SchemaCompiler::symbol_of(const Claim& claim, bool with_space) {
  work_.use(claim.schemas.size());
  const auto key = std::pair(claim, with_space);
  if (const auto it = symbols_.find(key); it != symbols_.end()) return it->second;
  const Deeper deeper(depth_);
  if (depth_ > kMaxClaimDepth) return too_complex("nesting of a schema", kMaxClaimDepth + 1, kMaxClaimDepth);
  const Symbol made = rules_.new_symbol();
  symbols_.emplace(key, made);
  Kinds kinds;
  ZRT_CHECK_OK(collect(claim, kinds));
  ZRT_CHECK_OK(add_values(made, kinds, with_space));
  return made;
}

Status SchemaCompiler::add_values(Symbol to, const Kinds& kinds, bool with_space) {
  RegexArena& arena = rules_.arena;
  const auto quote_token = lexemes_.notation.quote_token;
  std::vector<Regex> scalars = kinds.scalars;
  const Regex texts = arena.any_of(kinds.texts);
  if (!quote_token) {
    scalars.push_back(lexemes_.in_quotes(texts));
    for (const Json* value : kinds.constants) scalars.push_back(lexemes_.constant(*value));
  }
  const Regex all = arena.any_of(std::move(scalars));
  if (all != RegexArena::kNothing)
    rules_.add_sequence(to, {rules_.terminal(with_space ? lexemes_.with_space(all) : all)});
  if (quote_token) {
    const auto add = [&](std::vector<Symbol> parts) {
      if (with_space && lexemes_.whitespace != RegexArena::kEpsilon)
        parts.insert(parts.begin(), rules_.terminal(lexemes_.whitespace));
      rules_.add_sequence(to, std::move(parts));
    };
    const Symbol quote = rules_.token(*quote_token);
    if (texts != RegexArena::kNothing) add({quote, rules_.terminal(texts), quote});
    for (const Json* value : kinds.constants) add({constant(*value)});
  }
  for (const bool is_object : {false, true}) {
    for (const Claim& one : is_object ? kinds.objects : kinds.arrays) {
      const Symbol open = rules_.terminal(lexemes_.sign(is_object ? "{" : "[", with_space));
      ZRT_TRY(const Symbol body, body_of(one, is_object));
      rules_.add_sequence(to, {open, body});
    }
  }
  return {};
}

// Returns the symbol of one given value. If the quote is a token, a value that contains texts consists of several
// lexemes.
Symbol SchemaCompiler::constant(const Json& value) {
  RegexArena& arena = rules_.arena;
  if (value.is_string()) {
    const Symbol quote = rules_.token(*lexemes_.notation.quote_token);
    return rules_.sequence({quote, rules_.terminal(lexemes_.text(value.get_ref<const std::string&>())), quote});
  }
  if (!value.is_structured()) return rules_.terminal(arena.literal(lexemes_.scalar_text(value)));
  std::vector<Symbol> parts = {rules_.terminal(arena.literal(value.is_object() ? "{" : "["))};
  for (const auto& item : value.items()) {
    if (parts.size() > 1) parts.push_back(rules_.terminal(lexemes_.sign(",", true)));
    if (value.is_object())
      parts.push_back(rules_.terminal(
          arena.concat(lexemes_.with_space(lexemes_.name(lexemes_.text(item.key()))), lexemes_.sign(":", true))));
    parts.push_back(constant(item.value()));
  }
  parts.push_back(rules_.terminal(lexemes_.sign(value.is_object() ? "}" : "]", true)));
  return rules_.sequence(std::move(parts));
}

bool SchemaCompiler::can_be_written(const Json& value) {
  if (value.is_string())
    return lexemes_.has_all_texts() || matches(lexemes_.texts, value.get_ref<const std::string&>());
  if (lexemes_.notation.spelling == Spelling::kJson || !value.is_structured()) return true;
  return std::ranges::all_of(value.items(), [&](const auto& item) {
    return (!value.is_object() || matches(lexemes_.names, item.key())) && can_be_written(item.value());
  });
}

Result<Symbol> SchemaCompiler::run_object() {
  Kinds kinds;
  ZRT_CHECK_OK(collect({{&root_}, {}}, kinds));
  std::erase_if(kinds.constants, [](const Json* value) { return !value->is_object(); });
  kinds.scalars.clear();
  kinds.texts.clear();
  kinds.arrays.clear();
  if (kinds.objects.empty() && kinds.constants.empty()) return refuse(&root_, "", "it allows no object");
  const Symbol made = rules_.new_symbol();
  ZRT_CHECK_OK(add_values(made, kinds, false));
  return made;
}

Result<Symbol> SchemaCompiler::body_of(const Claim& claim, bool is_object) {
  work_.use(claim.schemas.size());
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
  for (const auto& member : members.members) {
    ZRT_TRY(const Regex name, name_of(member.name, shape));
    ZRT_CHECK_OK(add(rule.members, lexemes_.name(name), member.claim, member.is_required));
  }
  for (const auto& rest : members.rests) ZRT_CHECK_OK(add(rule.rests, lexemes_.name(rest.names), rest.claim, false));
  rules_.add_object(inside, std::move(rule));
  return made;
}

Result<Regex> SchemaCompiler::name_of(const std::string& name, const Shape& shape) {
  const bool fits = lexemes_.notation.not_in_names.empty() || matches(lexemes_.names, name);
  if (!fits)
    return refuse(shape.schemas.front(), "properties", "the name {} cannot be written in the model's calls",
                  Json(name).dump());
  return lexemes_.text(name);
}

namespace {

// Returns prefixItems. Before draft 2020-12, `items` could be a list with the same meaning.
const Json* first_items_of(const Json& schema) {
  if (const Json* prefix = find(schema, "prefixItems")) return prefix;
  const Json* items = find(schema, "items");
  return items != nullptr && items->is_array() ? items : nullptr;
}

}  // namespace

Result<SchemaCompiler::Parts> SchemaCompiler::parts_of(const Shape& shape) {
  Parts made;
  bool is_unique = false;
  std::size_t n_first = 0;
  for (const Json* schema : shape.schemas) {
    if (const Json* prefix = first_items_of(*schema)) {
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
    const Json* prefix = first_items_of(*schema);
    const Json* items = find(*schema, "items");
    if (items != nullptr && items->is_array()) {
      if (prefix != items) return refuse(items, "", "a list of schemas beside prefixItems");
      items = find(*schema, "additionalItems");
    }
    work_.use(n_first);
    ZRT_CHECK_OK(work_.check("work on a schema"));
    for (std::size_t i = 0; i < n_first; ++i) {
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

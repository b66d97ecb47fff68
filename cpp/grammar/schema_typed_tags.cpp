// Compiles members as tags that say whether their value is a text. Texts are written without quotes, other values as
// JSON. Parts of a tag may be single tokens.
#include <utility>

#include "grammar/schema.h"

namespace zinc_rt::grammar {

// Returns the sequence of `before`, the text and `behind`. If `text` contains the marker's text, the marker's token
// takes the place of it, with as few terminals as possible around the token. Otherwise `before`, `text` and `behind`
// form one terminal, so that a value ends only before its closing tag.
Symbol SchemaCompiler::marked(Regex before, std::string_view text, const Marker& mark, Regex behind) {
  RegexArena& arena = rules_.arena;
  std::vector<Symbol> parts;
  while (mark.token) {
    const auto at = text.find(mark.text);
    if (at == std::string_view::npos) break;
    if (const Regex part = arena.concat(before, arena.literal(text.substr(0, at))); part != RegexArena::kEpsilon)
      parts.push_back(rules_.terminal(part));
    parts.push_back(rules_.token(*mark.token));
    before = RegexArena::kEpsilon;
    text.remove_prefix(at + mark.text.size());
  }
  parts.push_back(rules_.terminal(arena.concat({before, arena.literal(text), behind})));
  return rules_.sequence(std::move(parts));
}

Result<Symbol> SchemaCompiler::typed_value(const Claim& claim, const ArgumentForm& form, SchemaCompiler& inner) {
  RegexArena& arena = rules_.arena;
  const Symbol made = rules_.new_symbol();
  Kinds kinds;
  ZRT_CHECK_OK(collect(claim, kinds));
  const auto add = [&](const std::string& name_end, Regex value) {
    if (value == RegexArena::kNothing) return;
    rules_.add_sequence(made, {marked(arena.concat(arena.literal(name_end), value), form.close, form.mark)});
  };
  add(form.name_end, arena.any_of(std::move(kinds.texts)));
  std::vector<Regex> scalars = std::move(kinds.scalars);
  for (const Json* value : kinds.constants) scalars.push_back(inner.lexemes_.constant(*value));
  add(form.json_name_end, arena.any_of(std::move(scalars)));
  for (const bool is_object : {false, true})
    for (const Claim& one : is_object ? kinds.objects : kinds.arrays) {
      ZRT_TRY(const Symbol body, inner.body_of(one, is_object));
      const Symbol open = rules_.terminal(arena.literal(form.json_name_end + (is_object ? "{" : "[")));
      rules_.add_sequence(made, {open, body, marked(RegexArena::kEpsilon, form.close, form.mark)});
    }
  return made;
}

Result<Symbol> SchemaCompiler::run_typed_tags(const ArgumentForm& form, SchemaCompiler& inner) {
  return tagged_objects([&](Symbol made, const Shape& shape, const Members& members) -> Status {
    std::vector<Symbol> parts;
    const auto add = [&](Regex name, const Claim& value, std::uint32_t min, std::uint32_t max) -> Status {
      ZRT_TRY(const Symbol typed, typed_value(value, form, inner));
      const Symbol member = rules_.sequence({marked(RegexArena::kEpsilon, form.open, form.mark, name), typed});
      parts.push_back(rules_.repeat(member, min, max));
      return {};
    };
    for (const auto& member : members.members) {
      ZRT_TRY(const Regex name, name_of(member.name, shape));
      ZRT_CHECK_OK(add(name, member.claim, member.is_required ? 1 : 0, 1));
    }
    for (const auto& rest : members.rests) ZRT_CHECK_OK(add(rest.names, rest.claim, 0, RegexArena::kUnbounded));
    rules_.add_sequence(made, std::move(parts));
    return {};
  });
}

}  // namespace zinc_rt::grammar

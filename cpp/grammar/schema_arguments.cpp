// Compiles members as the arguments of a call in Python: name=value, with a comma and a space between two.
#include "grammar/schema.h"

namespace zinc_rt::grammar {

Result<Symbol> SchemaCompiler::run_keywords(SchemaCompiler& inner) {
  RegexArena& arena = rules_.arena;
  return tagged_objects([&](Symbol made, const Shape& shape, const Members& members) -> Status {
    ObjectRule rule;
    const auto add = [&](std::vector<ObjectRule::Member>& to, Regex name, const Claim& value,
                         bool is_required) -> Status {
      ZRT_TRY(const Symbol symbol, inner.symbol_of(value, false));
      const Regex keyword = arena.concat(name, arena.literal("="));
      to.push_back(
          {rules_.lexeme(keyword), rules_.lexeme(arena.concat(arena.literal(", "), keyword)), symbol, is_required});
      return {};
    };
    for (const auto& member : members.members) {
      ZRT_TRY(const Regex name, name_of(member.name, shape));
      ZRT_CHECK_OK(add(rule.members, name, member.claim, member.is_required));
    }
    for (const auto& rest : members.rests) ZRT_CHECK_OK(add(rule.rests, rest.names, rest.claim, false));
    rules_.add_object(made, std::move(rule));
    return {};
  });
}

}  // namespace zinc_rt::grammar

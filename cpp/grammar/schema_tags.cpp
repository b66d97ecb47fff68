// Compiles members as tags whose values have no quotes. The output parser reads a value by the schema: if a value may
// have several types, the parser takes the type that the value looks like. So the grammar allows no text that looks
// like a value of another possible type. It also allows no value of another type that would be read as text.
#include <utility>

#include "grammar/schema.h"

namespace zinc_rt::grammar {
namespace {

Regex spelled_in_any_case(RegexArena& arena, std::string_view word) {
  Regex made = RegexArena::kEpsilon;
  for (std::size_t i = word.size(); i-- > 0;) {
    ByteSet letter;
    letter.add(static_cast<std::uint8_t>(word[i]));
    letter.add(static_cast<std::uint8_t>(word[i] - 'a' + 'A'));
    made = arena.concat(arena.bytes(letter), made);
  }
  return made;
}

// Maps JSON's words for values that are not texts to Python's, which some templates write instead.
constexpr std::pair<const char*, const char*> kPythonWords[] = {{"null", "None"}, {"true", "True"}, {"false", "False"}};

}  // namespace

Regex SchemaCompiler::not_read_as(std::uint8_t types) {
  RegexArena& arena = rules_.arena;
  ByteSet blanks;
  for (const char byte : {' ', '\t', '\n', '\r'}) blanks.add(static_cast<std::uint8_t>(byte));
  const Regex space = arena.repeat(arena.bytes(blanks), 0, RegexArena::kUnbounded);
  const auto words = [&](std::initializer_list<std::string_view> list) {
    std::vector<Regex> parts;
    for (const auto word : list) parts.push_back(spelled_in_any_case(arena, word));
    return arena.any_of(std::move(parts));
  };
  std::vector<Regex> read;
  if ((types & kStringType) == 0) read.push_back(RegexArena::kEpsilon);
  if ((types & kNullType) != 0) read.push_back(words({"null", "none"}));
  if ((types & kBooleanType) != 0) read.push_back(words({"true", "false"}));
  if ((types & (kIntegerType | kFractionType)) != 0) read.push_back(lexemes_.number);
  if ((types & kArrayType) != 0) read.push_back(arena.concat(arena.literal("["), RegexArena::kAll));
  if ((types & kObjectType) != 0) read.push_back(arena.concat(arena.literal("{"), RegexArena::kAll));
  return arena.complement(arena.concat({space, arena.any_of(std::move(read)), space}));
}

Result<Symbol> SchemaCompiler::tagged_value(const Claim& claim, std::uint8_t read_as, const ArgumentForm& form,
                                            SchemaCompiler& inner) {
  RegexArena& arena = rules_.arena;
  Kinds kinds;
  ZRT_CHECK_OK(collect(claim, kinds));
  std::vector<Regex> readable;
  if ((read_as & kNullType) != 0) readable.push_back(arena.literal("null"));
  if ((read_as & kBooleanType) != 0) readable.push_back(arena.any_of({arena.literal("true"), arena.literal("false")}));
  if ((read_as & kIntegerType) != 0) readable.push_back(lexemes_.integer);
  if ((read_as & kFractionType) != 0) readable.push_back(lexemes_.number);
  const Regex scalars = arena.all_of({arena.any_of(std::move(kinds.scalars)), arena.any_of(std::move(readable))});
  std::vector<Regex> values = {scalars, arena.all_of({arena.any_of(std::move(kinds.texts)), not_read_as(read_as)})};
  for (const auto& [json, python] : kPythonWords)
    if (matches(scalars, json)) values.push_back(arena.literal(python));
  const auto bit_of = [](const Json& value) { return value.is_object() ? kObjectType : kArrayType; };
  for (const Json* value : kinds.constants)
    if ((read_as & bit_of(*value)) != 0) values.push_back(inner.lexemes_.constant(*value));

  const Regex close = arena.literal(form.close);
  const Symbol made = rules_.new_symbol();
  if (const Regex all = arena.any_of(std::move(values)); all != RegexArena::kNothing)
    rules_.add_sequence(made, {rules_.terminal(arena.concat(all, close))});
  for (const bool is_object : {false, true}) {
    if ((read_as & (is_object ? kObjectType : kArrayType)) == 0) continue;
    for (const Claim& one : is_object ? kinds.objects : kinds.arrays) {
      ZRT_TRY(const Symbol body, inner.body_of(one, is_object));
      rules_.add_sequence(made, {rules_.terminal(arena.literal(is_object ? "{" : "[")), body, rules_.terminal(close)});
    }
  }
  return made;
}

Result<Symbol> SchemaCompiler::tagged_objects(const AddMembers& add) {
  Kinds kinds;
  ZRT_CHECK_OK(collect({{&root_}, {}}, kinds));
  if (kinds.objects.empty()) return refuse(&root_, "", "it allows no object");
  const Symbol made = rules_.new_symbol();
  for (const Claim& claim : kinds.objects) {
    ZRT_TRY(const Shape shape, shape_of(claim));
    ZRT_TRY(const Members members, members_of(shape));
    ZRT_CHECK_OK(add(made, shape, members));
  }
  return made;
}

Result<Symbol> SchemaCompiler::run_tags(const ArgumentForm& form, SchemaCompiler& inner) {
  RegexArena& arena = rules_.arena;
  return tagged_objects([&](Symbol made, const Shape& shape, const Members& members) -> Status {
    ObjectRule rule;
    const auto add = [&](std::vector<ObjectRule::Member>& to, Regex name, const Claim& value, std::uint8_t read_as,
                         bool is_required) -> Status {
      ZRT_TRY(const Symbol symbol, tagged_value(value, read_as, form, inner));
      const auto key = rules_.lexeme(arena.concat({arena.literal(form.open), name, arena.literal(form.name_end)}));
      to.push_back({key, key, symbol, is_required});
      return {};
    };
    for (const auto& member : members.members) {
      ZRT_TRY(const Regex name, name_of(member.name, shape));
      ZRT_CHECK_OK(add(rule.members, name, member.claim, form.read_as(&member.name), member.is_required));
    }
    for (const auto& rest : members.rests)
      ZRT_CHECK_OK(add(rule.rests, rest.names, rest.claim, form.read_as(nullptr), false));
    rules_.add_object(made, std::move(rule));
    return {};
  });
}

}  // namespace zinc_rt::grammar

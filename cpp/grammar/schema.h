// Compiles JSON Schema (draft 2020-12) to rules.
//
// A value must satisfy a set of schemas, called a Claim: a schema, the schemas that its $ref and allOf name, and one
// branch of each anyOf and oneOf. All keywords of all of them apply at once. The members of an object and the parts of
// a list have claims again. So allOf needs no merging, and each keyword is read in one place.
// Thread rule: one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/json_lexemes.h"
#include "grammar/json_reader.h"
#include "grammar/limits.h"
#include "grammar/rules.h"

namespace zinc_rt::grammar {

struct Claim {
  std::vector<const Json*> schemas;  // sorted
  std::vector<const Json*> chosen;   // lists of anyOf and oneOf of which a branch is among the schemas; sorted
  auto operator<=>(const Claim&) const = default;
};

// A claim's schemas with $ref and allOf resolved, and their keywords by the type that they apply to.
struct Shape {
  std::uint8_t types = kAllTypes;
  std::vector<const Json*> schemas;  // all, with those that $ref and allOf name; objects only
  const Json* choice = nullptr;      // a list of branches that is still to choose from
  std::vector<const Json*> values;   // lists of enum, or single values of const
  bool has_values = false;
  bool is_empty() const { return types == 0; }
};

class SchemaCompiler {
 public:
  // `work` is shared by all that one grammar is made of.
  SchemaCompiler(const Json& root, Rules& rules, JsonLexemes& lexemes, const Limits& limits, CompileWork& work);

  // A value that fits the root, without leading white space. Errors: kInvalidArgument with a JSON pointer.
  Result<Symbol> run();
  // The same for objects only. Fails if the root allows none.
  Result<Symbol> run_object();
  // The members of the root's objects as tags. This compiler's notation for values is plain; `inner` is a compiler of
  // the same root with JSON notation.
  Result<Symbol> run_tags(const ArgumentForm& form, SchemaCompiler& inner);
  // The same for tags that say whether their value is a text.
  Result<Symbol> run_typed_tags(const ArgumentForm& form, SchemaCompiler& inner);

 private:
  struct Kinds {                          // what a claim allows
    std::vector<Regex> scalars;           // but texts
    std::vector<Regex> texts;             // without quotes
    std::vector<const Json*> constants;   // lists and objects
    std::vector<Claim> arrays, objects;   // without anyOf left to choose from
    std::vector<std::string_view> given;  // texts that enum and const list, each a part of `texts`
    bool has_only_given = true;           // no other text
  };
  struct Members {
    struct Member {
      std::string name;
      Claim claim;
      bool is_required = false;
    };
    struct Rest {
      Regex names;  // without quotes
      Claim claim;
    };
    std::vector<Member> members;
    std::vector<Rest> rests;
  };
  struct Parts {
    std::vector<Claim> first;
    Claim rest;
    std::uint32_t min = 0, max = RegexArena::kUnbounded;
  };

  // schema_shape.cpp
  Result<Shape> shape_of(const Claim& claim);
  Status read_keywords(const Json& schema, Shape& shape, std::vector<const Json*>& todo, const Claim& claim);
  const Json* member_of(const Json& object, const std::string& name);
  Result<const Json*> resolve(const Json& schema, const std::string& reference);
  Status check_no_cycle(const Json* schema);
  Claim with(const Claim& claim, const Json* schema, const Json* choice = nullptr);
  const Json* tag_of(const Json& schema);

  // schema_scalar.cpp
  Result<Regex> scalars_of(const Shape& shape);  // but texts
  Result<Regex> numbers_of(const Shape& shape);
  std::optional<Regex> multiples_of(std::string step);
  Result<Regex> texts_of(const Shape& shape);  // without quotes
  Result<Regex> pattern_of(const Json& schema, const char* keyword);
  bool matches(Regex regex, std::string_view text);

  // schema_compile.cpp
  Result<Symbol> symbol_of(const Claim& claim, bool with_space);
  Status collect(const Claim& claim, Kinds& kinds);
  Status add_values(Symbol to, const Kinds& kinds, bool with_space);
  Symbol constant(const Json& value);
  bool can_be_written(const Json& value);
  Result<Regex> name_of(const std::string& name, const Shape& shape);
  Result<Symbol> body_of(const Claim& claim, bool is_object);
  Result<Parts> parts_of(const Shape& shape);

  // schema_members.cpp
  Result<Members> members_of(const Shape& shape);
  Status add_rests(const Shape& shape, Members& made);
  Result<Regex> name_pattern(const Json& patterns, const std::string& pattern);

  // schema_typed_tags.cpp
  Result<Symbol> typed_value(const Claim& claim, const ArgumentForm& form, SchemaCompiler& inner);
  Symbol marked(Regex before, std::string_view text, const Marker& mark, Regex behind = RegexArena::kEpsilon);

  // schema_tags.cpp
  using AddMembers = std::function<Status(Symbol made, const Shape& shape, const Members& members)>;
  // Makes a symbol for the root's objects. `add` adds one rule per shape of them. Fails if the root has no objects.
  Result<Symbol> tagged_objects(const AddMembers& add);
  Result<Symbol> tagged_value(const Claim& claim, std::uint8_t read_as, const ArgumentForm& form,
                              SchemaCompiler& inner);
  Regex not_read_as(std::uint8_t types);

  // schema_values.cpp
  // listed_in: the claim's own const or enum that the value comes from, if any.
  Result<bool> is_valid(const Json& value, const Claim& claim, const Json* listed_in = nullptr);
  Result<bool> are_disjoint(const Claim& a, const Claim& b, int depth);
  // `also`: a claim that holds beside the branches, or null.
  Status check_disjoint(const Json& branches, const Json* also);
  bool is_same(const Json& a, const Json& b);
  bool is_listed(const Json& value, const Json& list, bool is_enum);
  // Whether two claims have no text and no scalar in common.
  Result<bool> have_disjoint_scalars(Kinds& a, Kinds& b);
  // What a claim allows, and its objects' members. Cached, because oneOf asks for each branch once per other branch.
  Result<Kinds*> kinds_of(const Claim& claim);
  Result<const Members*> kept_members_of(const Claim& claim);

  // The JSON pointer of a part of the root, for messages.
  std::string pointer_to(const Json* part) const;
  template <class... Args>
  std::unexpected<Error> refuse(const Json* schema, std::string_view keyword, fmt::format_string<Args...> format,
                                Args&&... args) const {
    std::string at = pointer_to(schema);
    if (!keyword.empty()) at += "/" + std::string(keyword);
    return fail(StatusCode::kInvalidArgument, "[schema] {}: {}", at.empty() ? "the root" : at,
                fmt::format(format, std::forward<Args>(args)...));
  }
  // Reads a keyword's value as a count.
  Result<std::optional<std::uint32_t>> count_of(const Json& schema, const char* keyword);
  const std::map<std::string_view, const Json*>& properties_of(const Json& schema);

  const Json& root_;
  Rules& rules_;
  JsonLexemes& lexemes_;
  const Limits& limits_;
  Fuel& work_;
  std::uint64_t& search_left_;
  int depth_ = 0;
  std::map<std::pair<Claim, bool>, Symbol> symbols_;  // with white space before it, or not
  std::map<std::pair<Claim, bool>, Symbol> bodies_;   // behind the { or [
  std::map<Claim, Kinds> kinds_;
  std::map<Claim, Members> members_;
  std::map<const Json*, Regex> patterns_;
  std::map<const Json*, std::map<std::string_view, const Json*>> properties_, sorted_;
  std::map<const Json*, std::unique_ptr<const Json>> tags_;
  std::set<const Json*> acyclic_, checked_disjoint_;
};

}  // namespace zinc_rt::grammar

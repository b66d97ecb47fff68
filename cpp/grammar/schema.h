// SchemaCompiler compiles JSON Schema (draft 2020-12) to grammar rules.
//
// A value must satisfy a set of schemas at once. The set is called a Claim. It contains a schema, the schemas that its
// $ref and allOf name, and one branch of each anyOf and oneOf. All keywords of all these schemas apply. The members of
// an object and the elements of a list have claims of their own. So schemas in allOf need not be merged, and each
// keyword is read in one place.
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
  std::vector<const Json*> schemas;  // sorted, so that equal claims compare equal
  std::vector<const Json*> chosen;   // the anyOf and oneOf lists of which `schemas` contains a branch; sorted
  auto operator<=>(const Claim&) const = default;
};

// Shape is a claim with $ref and allOf resolved: its schemas, and the types and values that they allow.
struct Shape {
  std::uint8_t types = kAllTypes;
  std::vector<const Json*> schemas;  // all schemas, including those that $ref and allOf name; only JSON objects
  const Json* choice = nullptr;      // the next anyOf or oneOf of which no branch is chosen yet
  std::vector<const Json*> values;   // the lists of enum, and the single values of const
  bool has_values = false;
  bool is_empty() const { return types == 0; }
};

class SchemaCompiler {
 public:
  // All parts of one grammar share `work`.
  SchemaCompiler(const Json& root, Rules& rules, JsonLexemes& lexemes, const Limits& limits, CompileWork& work);

  // Compiles the values that satisfy the root schema, without leading white space. Returns their symbol. Errors:
  // kInvalidArgument with a JSON pointer.
  Result<Symbol> run();
  // Compiles only the objects that satisfy the root. Fails if the root allows no object.
  Result<Symbol> run_object();
  // Compiles the members of the root's objects as tags (ArgumentForm::kTags). This compiler uses the plain notation for
  // values; `inner` is a compiler of the same root that uses JSON notation.
  Result<Symbol> run_tags(const ArgumentForm& form, SchemaCompiler& inner);
  // Compiles the members of the root's objects as tags that say whether their value is a text
  // (ArgumentForm::kTypedTags).
  Result<Symbol> run_typed_tags(const ArgumentForm& form, SchemaCompiler& inner);
  // Compiles the members of the root's objects as keywords (ArgumentForm::kKeywords). `inner` is a compiler of the same
  // root, for the values.
  Result<Symbol> run_keywords(SchemaCompiler& inner);

 private:
  struct Kinds {                          // the values that a claim allows, by kind
    std::vector<Regex> scalars;           // regexes of all scalars except texts
    std::vector<Regex> texts;             // regexes of texts, without quotes
    std::vector<const Json*> constants;   // lists and objects that const or enum name
    std::vector<Claim> arrays, objects;   // claims in which every anyOf and oneOf has a chosen branch
    std::vector<std::string_view> given;  // texts in enum and const, which are also alternatives in `texts`
    bool has_only_given = true;           // whether no text outside `given` is allowed
  };
  struct Members {
    struct Member {
      std::string name;
      Claim claim;
      bool is_required = false;
    };
    struct Rest {
      Regex names;  // regex of the names, without quotes
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

  // The following functions resolve claims. They are defined in schema_shape.cpp.
  Result<Shape> shape_of(const Claim& claim);
  Status read_keywords(const Json& schema, Shape& shape, std::vector<const Json*>& todo, const Claim& claim);
  const Json* member_of(const Json& object, const std::string& name);
  Result<const Json*> resolve(const Json& schema, const std::string& reference);
  Status check_no_cycle(const Json* schema);
  Claim with(const Claim& claim, const Json* schema, const Json* choice = nullptr);
  const Json* tag_of(const Json& schema);

  // The following functions return regexes of scalars. They are defined in schema_scalar.cpp.
  Result<Regex> scalars_of(const Shape& shape);  // returns all scalars except texts
  Result<Regex> numbers_of(const Shape& shape);
  std::optional<Regex> multiples_of(std::string step);
  Result<Regex> texts_of(const Shape& shape);  // returns the texts, without quotes
  Result<Regex> pattern_of(const Json& schema, const char* keyword);
  bool matches(Regex regex, std::string_view text);

  // The following functions turn claims into rules. They are defined in schema_compile.cpp.
  Result<Symbol> symbol_of(const Claim& claim, bool with_space);
  Status collect(const Claim& claim, Kinds& kinds);
  Status add_values(Symbol to, const Kinds& kinds, bool with_space);
  Symbol constant(const Json& value);
  bool can_be_written(const Json& value);
  Result<Regex> name_of(const std::string& name, const Shape& shape);
  Result<Symbol> body_of(const Claim& claim, bool is_object);
  Result<Parts> parts_of(const Shape& shape);

  // The following functions collect the members of objects. They are defined in schema_members.cpp.
  Result<Members> members_of(const Shape& shape);
  Status add_rests(const Shape& shape, Members& made);
  Result<Regex> name_pattern(const Json& patterns, const std::string& pattern);

  // schema_typed_tags.cpp implements these functions.
  Result<Symbol> typed_value(const Claim& claim, const ArgumentForm& form, SchemaCompiler& inner);
  Symbol marked(Regex before, std::string_view text, const Marker& mark, Regex behind = RegexArena::kEpsilon);

  // schema_tags.cpp implements these functions.
  using AddMembers = std::function<Status(Symbol made, const Shape& shape, const Members& members)>;
  // Returns a symbol for the root's objects. Calls `add` for each shape of them, which adds a rule. Fails if the root
  // allows no object.
  Result<Symbol> tagged_objects(const AddMembers& add);
  Result<Symbol> tagged_value(const Claim& claim, std::uint8_t read_as, const ArgumentForm& form,
                              SchemaCompiler& inner);
  Regex not_read_as(std::uint8_t types);

  // The following functions check values and compare claims. They are defined in schema_values.cpp.

  // Returns whether the value satisfies the claim. listed_in is the claim's own const or enum that contains the value,
  // or null.
  Result<bool> is_valid(const Json& value, const Claim& claim, const Json* listed_in = nullptr);
  Result<bool> are_disjoint(const Claim& a, const Claim& b, int depth);
  // Checks that no value satisfies two branches of a oneOf. `also` is a claim that must hold in addition, or null.
  Status check_disjoint(const Json& branches, const Json* also);
  bool is_same(const Json& a, const Json& b);
  bool is_listed(const Json& value, const Json& list, bool is_enum);
  // Returns whether two claims have no text and no scalar in common.
  Result<bool> have_disjoint_scalars(Kinds& a, Kinds& b);
  // kinds_of() returns the values that a claim allows. kept_members_of() returns the members of the objects that it
  // allows. Both cache their results, because the check of a oneOf compares each branch with every other branch.
  Result<Kinds*> kinds_of(const Claim& claim);
  Result<const Members*> kept_members_of(const Claim& claim);

  // Returns the JSON pointer of a part of the root, for error messages.
  std::string pointer_to(const Json* part) const;
  template <class... Args>
  std::unexpected<Error> refuse(const Json* schema, std::string_view keyword, fmt::format_string<Args...> format,
                                Args&&... args) const {
    std::string at = pointer_to(schema);
    if (!keyword.empty()) at += "/" + std::string(keyword);
    return fail(StatusCode::kInvalidArgument, "[schema] {}: {}", at.empty() ? "the root" : at,
                fmt::format(format, std::forward<Args>(args)...));
  }
  // Returns a keyword's value as a number of items. Returns nullopt if the schema does not have the keyword.
  Result<std::optional<std::uint32_t>> count_of(const Json& schema, const char* keyword);
  const std::map<std::string_view, const Json*>& properties_of(const Json& schema);

  const Json& root_;
  Rules& rules_;
  JsonLexemes& lexemes_;
  const Limits& limits_;
  Fuel& work_;
  std::uint64_t& search_left_;
  int depth_ = 0;
  std::map<std::pair<Claim, bool>, Symbol> symbols_;  // keyed by the claim, and whether white space may come first
  std::map<std::pair<Claim, bool>, Symbol> bodies_;   // contents after the opening { or [, by the same key
  // Caches of kinds_of(), kept_members_of() and the functions that read keywords, by claim or schema.
  std::map<Claim, Kinds> kinds_;
  std::map<Claim, Members> members_;
  std::map<const Json*, Regex> patterns_;
  std::map<const Json*, std::map<std::string_view, const Json*>> properties_, sorted_;
  std::map<const Json*, std::unique_ptr<const Json>> tags_;
  std::set<const Json*> acyclic_, checked_disjoint_;
};

}  // namespace zinc_rt::grammar

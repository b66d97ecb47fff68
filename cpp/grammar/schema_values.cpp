// Given values (const, enum) against a claim, and whether two claims have a value in common (oneOf).
#include <algorithm>

#include "base/json_number.h"
#include "grammar/char_set.h"
#include "grammar/schema.h"

namespace zinc_rt::grammar {
namespace {

bool is_listed(const Json& value, const Json& list, bool is_enum) {
  if (!is_enum) return is_same_value(value, list);
  return std::ranges::any_of(list, [&](const Json& one) { return is_same_value(value, one); });
}

}  // namespace

Result<bool> SchemaCompiler::is_valid(const Json& value, const Claim& claim, const Json* listed_in) {
  work_.use(4);
  ZRT_CHECK_OK(work_.check("work on a schema"));
  ZRT_TRY(const Shape shape, shape_of(claim));
  if (shape.choice != nullptr) {
    for (const Json& branch : *shape.choice) {
      ZRT_TRY(const bool fits, is_valid(value, with(claim, &branch, shape.choice), listed_in));
      if (fits) return true;
    }
    return false;
  }
  for (const Json* schema : shape.schemas) {
    for (const char* keyword : {"const", "enum"}) {
      const auto it = schema->find(keyword);
      if (it == schema->end() || &*it == listed_in) continue;
      work_.use(it->size());
      if (!is_listed(value, *it, std::string_view(keyword) == "enum")) return false;
    }
  }
  if (value.is_array()) {
    if ((shape.types & kArrayType) == 0) return false;
    ZRT_TRY(const Parts parts, parts_of(shape));
    if (value.size() < parts.min || value.size() > parts.max) return false;
    for (std::size_t i = 0; i < value.size(); ++i) {
      ZRT_TRY(const bool fits, is_valid(value[i], i < parts.first.size() ? parts.first[i] : parts.rest));
      if (!fits) return false;
    }
    return true;
  }
  if (value.is_object()) {
    if ((shape.types & kObjectType) == 0) return false;
    ZRT_TRY(const Members members, members_of(shape));
    std::size_t n_known = 0;
    for (const auto& member : members.members) {
      const auto it = value.find(member.name);
      if (it == value.end()) {
        if (member.is_required) return false;
        continue;
      }
      ++n_known;
      ZRT_TRY(const bool fits, is_valid(*it, member.claim));
      if (!fits) return false;
    }
    if (n_known == value.size()) return true;
    for (const auto& item : value.get_ref<const Json::object_t&>()) {
      if (std::ranges::any_of(members.members, [&](const auto& member) { return member.name == item.first; })) continue;
      bool is_known = false;
      for (const auto& rest : members.rests) {
        if (!matches(rest.names, lexemes_.spelling_of(item.first))) continue;
        is_known = true;
        ZRT_TRY(const bool fits, is_valid(item.second, rest.claim));
        if (!fits) return false;
      }
      if (!is_known) return false;
    }
    return true;
  }
  if (value.is_string()) {
    if ((shape.types & kStringType) == 0) return false;
    ZRT_TRY(const Regex texts, texts_of(shape));
    return matches(texts, lexemes_.spelling_of(value.get_ref<const std::string&>()));
  }
  ZRT_TRY(const Regex scalars, scalars_of(shape));
  // A number is written in one way, and bounds know only that without an exponent.
  const auto plain = is_json_number(value) ? plain_digits(value) : std::nullopt;
  return matches(scalars, plain ? *plain : scalar_text(value));
}

Result<bool> SchemaCompiler::are_disjoint(const Claim& a, const Claim& b, int depth) {
  Kinds of_a, of_b;
  ZRT_CHECK_OK(collect(a, of_a));
  ZRT_CHECK_OK(collect(b, of_b));
  RegexArena& arena = rules_.arena;
  for (const auto part : {&Kinds::scalars, &Kinds::texts}) {
    const Regex common = arena.all_of({arena.any_of(of_a.*part), arena.any_of(of_b.*part)});
    if (!arena.is_nothing(common, search_budget_) || search_budget_ == 0) return false;
  }
  if (!of_a.arrays.empty() && !of_b.arrays.empty()) return false;
  for (const Json* value : of_a.constants) {
    ZRT_TRY(const bool is_common, is_valid(*value, b));
    if (is_common) return false;
  }
  for (const Json* value : of_b.constants) {
    ZRT_TRY(const bool is_common, is_valid(*value, a));
    if (is_common) return false;
  }
  // Two objects differ by a member that both must have, and of which the values differ.
  for (const Claim& first : of_a.objects) {
    ZRT_TRY(const Shape first_shape, shape_of(first));
    ZRT_TRY(const Members first_members, members_of(first_shape));
    for (const Claim& second : of_b.objects) {
      ZRT_TRY(const Shape second_shape, shape_of(second));
      ZRT_TRY(const Members second_members, members_of(second_shape));
      bool differs = false;
      for (const auto& one : first_members.members) {
        for (const auto& other : second_members.members) {
          work_.use(1);
          if (differs || depth == 0 || one.name != other.name || !(one.is_required && other.is_required)) continue;
          ZRT_TRY(differs, are_disjoint(one.claim, other.claim, depth - 1));
        }
      }
      ZRT_CHECK_OK(work_.check("work on a schema"));
      if (!differs) return false;
    }
  }
  return true;
}

Status SchemaCompiler::check_disjoint(const Json& branches, const Json* also) {
  constexpr int kDepth = 3;
  if (!checked_disjoint_.insert(&branches).second) return {};
  const auto claim_of = [&](const Json& branch) {
    const Claim claim{{&branch}, {}};
    return also == nullptr ? claim : with(claim, also);
  };
  for (std::size_t i = 0; i < branches.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      ZRT_TRY(const bool are, are_disjoint(claim_of(branches[i]), claim_of(branches[k]), kDepth));
      if (!are)
        return refuse(&branches, "",
                      "branches {} and {} may have values in common, or are not seen to have none (by type, or by a "
                      "required property whose values differ); anyOf says that this is no matter",
                      k, i);
    }
  }
  return {};
}

}  // namespace zinc_rt::grammar

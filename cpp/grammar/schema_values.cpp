// Checks whether given values (const, enum) satisfy a claim, and whether two claims have a value in common (oneOf).
#include <algorithm>
#include <iterator>
#include <map>

#include "base/json_number.h"
#include "grammar/char_set.h"
#include "grammar/schema.h"

namespace zinc_rt::grammar {

// Returns whether two values are equal. Numbers are compared by value (1 equals 1.0), objects regardless of the order
// of members. Each visited value costs work. If the work is used up, returns false, and the next check() reports that.
bool SchemaCompiler::is_same(const Json& a, const Json& b) {
  work_.use(1);
  if (work_.is_spent()) return false;
  if (is_json_number(a) && is_json_number(b)) {
    const auto x = plain_digits(a), y = plain_digits(b);
    work_.use(x ? x->size() / 8 : 1);
    return x && y ? *x == *y : number_text(a) == number_text(b);
  }
  if (a.type() != b.type() || a.size() != b.size()) return false;
  if (a.is_array()) return std::ranges::equal(a, b, [this](const Json& x, const Json& y) { return is_same(x, y); });
  if (a.is_string()) {
    const auto &x = a.get_ref<const std::string&>(), &y = b.get_ref<const std::string&>();
    if (x.size() == y.size()) work_.use(x.size() / 32);
    return x == y;
  }
  if (!a.is_object()) return a == b;
  work_.use(a.size());
  std::map<std::string_view, const Json*> others;
  for (const auto& [name, value] : b.get_ref<const Json::object_t&>()) others.emplace(name, &value);
  return std::ranges::all_of(a.get_ref<const Json::object_t&>(), [&](const auto& member) {
    const auto other = others.find(member.first);
    return other != others.end() && is_same(member.second, *other->second);
  });
}

bool SchemaCompiler::is_listed(const Json& value, const Json& list, bool is_enum) {
  if (!is_enum) return is_same(value, list);
  return std::ranges::any_of(list, [&](const Json& one) { return is_same(value, one); });
}

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
      const bool is_in = is_listed(value, *it, std::string_view(keyword) == "enum");
      ZRT_CHECK_OK(work_.check("work on a schema"));
      if (!is_in) return false;
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
    work_.use(members.members.size() + value.size());
    std::map<std::string_view, const Json*> there;
    for (const auto& [name, one] : value.get_ref<const Json::object_t&>()) there.emplace(name, &one);
    for (const auto& member : members.members) {
      const auto it = there.find(member.name);
      if (it == there.end()) {
        if (member.is_required) return false;
        continue;
      }
      ++n_known;
      ZRT_TRY(const bool fits, is_valid(*it->second, member.claim));
      if (!fits) return false;
      there.erase(it);
    }
    if (n_known == value.size()) return true;
    for (const auto& item : value.get_ref<const Json::object_t&>()) {
      if (!there.contains(item.first)) continue;
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
  // Numbers are compared in one notation, because the regexes of bounds match only numbers without an exponent.
  const auto plain = is_json_number(value) ? plain_digits(value) : std::nullopt;
  return matches(scalars, plain ? *plain : lexemes_.scalar_text(value));
}

Result<SchemaCompiler::Kinds*> SchemaCompiler::kinds_of(const Claim& claim) {
  work_.use(1 + claim.schemas.size());
  if (const auto it = kinds_.find(claim); it != kinds_.end()) return &it->second;
  Kinds made;
  ZRT_CHECK_OK(collect(claim, made));
  std::ranges::sort(made.given);
  return &kinds_.emplace(claim, std::move(made)).first->second;
}

Result<const SchemaCompiler::Members*> SchemaCompiler::kept_members_of(const Claim& claim) {
  work_.use(1 + claim.schemas.size());
  if (const auto it = members_.find(claim); it != members_.end()) return &it->second;
  ZRT_TRY(const Shape shape, shape_of(claim));
  ZRT_TRY(auto made, members_of(shape));
  return &members_.emplace(claim, std::move(made)).first->second;
}

Result<bool> SchemaCompiler::have_disjoint_scalars(Kinds& a, Kinds& b) {
  RegexArena& arena = rules_.arena;
  for (const auto part : {&Kinds::scalars, &Kinds::texts}) {
    // Two lists of given texts are compared directly, which needs no search.
    if (part == &Kinds::texts && a.has_only_given && b.has_only_given) {
      work_.use(a.given.size() + b.given.size());
      std::vector<std::string_view> common;
      std::ranges::set_intersection(a.given, b.given, std::back_inserter(common));
      if (!common.empty()) return false;
      continue;
    }
    for (Kinds* kinds : {&a, &b})
      if ((kinds->*part).size() > 1) kinds->*part = {arena.any_of(kinds->*part)};
    if ((a.*part).empty() || (b.*part).empty()) continue;
    const bool are = arena.is_nothing(arena.all_of({(a.*part)[0], (b.*part)[0]}), search_left_);
    if (search_left_ == 0)
      return too_complex("work to see whether branches have values in common", limits_.compile_work / 8 + 1,
                         limits_.compile_work / 8);
    if (!are) return false;
  }
  return true;
}

Result<bool> SchemaCompiler::are_disjoint(const Claim& a, const Claim& b, int depth) {
  ZRT_TRY(Kinds * first_kinds, kinds_of(a));
  ZRT_TRY(Kinds * second_kinds, kinds_of(b));
  Kinds &of_a = *first_kinds, &of_b = *second_kinds;
  ZRT_TRY(const bool scalars_differ, have_disjoint_scalars(of_a, of_b));
  if (!scalars_differ) return false;
  if (!of_a.arrays.empty() && !of_b.arrays.empty()) return false;
  for (const Json* value : of_a.constants) {
    ZRT_TRY(const bool is_common, is_valid(*value, b));
    if (is_common) return false;
  }
  for (const Json* value : of_b.constants) {
    ZRT_TRY(const bool is_common, is_valid(*value, a));
    if (is_common) return false;
  }
  // Two objects cannot be equal if both require a member of the same name and no value is allowed in both members.
  for (const Claim& first : of_a.objects) {
    ZRT_TRY(const Members* first_members, kept_members_of(first));
    for (const Claim& second : of_b.objects) {
      ZRT_TRY(const Members* second_members, kept_members_of(second));
      bool differs = false;
      for (const auto& one : first_members->members) {
        for (const auto& other : second_members->members) {
          work_.use(1);
          if (differs || depth == 0 || !(one.is_required && other.is_required) || one.name != other.name) continue;
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

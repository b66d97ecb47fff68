#include "zinc_rt/engine_options.h"

#include <gmock/gmock.h>

#include <set>
#include <utility>

#include "base/options.h"

namespace zinc_rt {
namespace {

using testing::HasSubstr;

// Becomes a value of any type, so that it can stand for each member of a struct.
struct AnyValue {
  template <class T>
  operator T() const;
};
template <class T, std::size_t... Is>
constexpr bool has_members(std::index_sequence<Is...>) {
  return requires { T{(static_cast<void>(Is), AnyValue{})...}; };
}
template <class T, std::size_t n = 0>
constexpr std::size_t count_members() {
  if constexpr (has_members<T>(std::make_index_sequence<n + 1>{}))
    return count_members<T, n + 1>();
  else
    return n;
}

TEST(EngineOptions, EachMemberHasOneRow) {
  std::set<std::string> names;
  for (const auto& row : engine_options()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is there twice";
    EXPECT_FALSE(row.help.empty()) << row.name;
  }
  EXPECT_EQ(names.size() + 1, count_members<EngineOptions>()) << "all but on_progress";
}

// A text that differs from the default of the option and of all its variables.
std::string other_value(const EngineOption& row) {
  const EngineOptions defaults;
  if (const auto* is_on = std::get_if<bool EngineOptions::*>(&row.member)) return defaults.**is_on ? "0" : "1";
  if (std::holds_alternative<std::vector<std::uint32_t> EngineOptions::*>(row.member)) return "1,2";
  if (std::holds_alternative<std::uint32_t EngineOptions::*>(row.member)) return "7";
  return row.choices.empty() ? "a text" : row.choices.back();
}

TEST(EngineOptions, EachRowSetsAMemberOfItsOwn) {
  std::vector<EngineOptions> changed;
  for (const auto& row : engine_options()) {
    auto& options = changed.emplace_back();
    const auto set = set_option(options, row, other_value(row));
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_NE(options, EngineOptions()) << row.name;
  }
  for (std::size_t i = 0; i < changed.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(changed[i], changed[j]) << i << " and " << j;
}

TEST(EngineOptions, VariablesAreThoseOfTheEnvironment) {
  std::set<std::string_view> known;
  for (const auto& variable : options::variables()) known.insert(variable.name);
  for (const auto& row : engine_options())
    EXPECT_TRUE(*row.variable == '\0' || known.contains(row.variable)) << row.name << ": " << row.variable;
}

const EngineOption& row_of(std::string_view name) {
  for (const auto& row : engine_options())
    if (name == row.name) return row;
  ADD_FAILURE() << "there is no option " << name;
  return engine_options().front();
}

TEST(EngineOptions, TextsOfAnotherFormAreRefusedWithWhatIsWanted) {
  const auto refusal = [](const char* name, const char* text) {
    EngineOptions options;
    const auto set = set_option(options, row_of(name), text);
    return set ? std::string("taken") : set.error().message;
  };
  EXPECT_THAT(refusal("max_slots", "many"), HasSubstr("max_slots=many: 1 to 4096 wanted"));
  EXPECT_THAT(refusal("max_slots", "0"), HasSubstr("max_slots is 0, 1 to 4096 allowed"));
  EXPECT_THAT(refusal("threads", "1025"), HasSubstr("threads is 1025, 0 to 1024 allowed"));
  EXPECT_THAT(refusal("threads", "-1"), HasSubstr("threads=-1: 0 to 1024 wanted"));
  EXPECT_THAT(refusal("kv_pages", "4294967296"), HasSubstr("kv_pages=4294967296: 0 to 2147483647 wanted"));
  EXPECT_THAT(refusal("arithmetic", "exakt"), HasSubstr("arithmetic \"exakt\" is not one of exact, fast"));
  EXPECT_THAT(refusal("kv_dtype", "q4_0"), HasSubstr("is not one of f16, f32, q8_0, k8v4, k4v4, i16"));
  EXPECT_THAT(refusal("pooling", "max"), HasSubstr("is not one of none, mean, cls, last, rank"));
  EXPECT_THAT(refusal("tools", "xml"), HasSubstr("tools \"xml\" is not one of hermes"));
  EXPECT_THAT(refusal("repack", "yes"), HasSubstr("repack=yes: 1 or 0 wanted"));
  EXPECT_THAT(refusal("devices", "0;1"), HasSubstr("devices=0;1: numbers joined by commas wanted"));
  EXPECT_THAT(refusal("tier", ""), HasSubstr("tier=: a text wanted"));
  EXPECT_EQ(refusal("devices", "0,1"), "taken");
}

TEST(EngineOptions, AllRowsAreChecked) {
  EngineOptions options;
  EXPECT_TRUE(check(options));
  options.queue_cap = 0;
  EXPECT_EQ(check(options).error().field, "queue_cap");
  EXPECT_THAT(check(options).error().message, HasSubstr("queue_cap is 0, 1 to 4294967295 allowed"));
}

}  // namespace
}  // namespace zinc_rt

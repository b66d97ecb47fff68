// Inputs made to stall, crash or fill the memory: each ends with an error or within its fuel.
#include <gmock/gmock.h>

#include <chrono>
#include <random>

#include "base/platform/this_thread.h"
#include "tests_cpp/grammar/grammar_fixture.h"

namespace zinc_rt::grammar {
namespace {

// 30,000 tokens of letters, digits and JSON's signs.
const std::shared_ptr<const Vocabulary>& many_tokens() {
  static const std::shared_ptr<const Vocabulary> made = [] {
    std::mt19937 random(3);
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    constexpr std::string_view kLetters = "aaaabcdefghijklmnopqrstuvwxyz      0123456789\"{}[]:,";
    while (tokens.size() < 30000) {
      std::string token;
      for (std::size_t n = 1 + random() % 9; n > 0; --n) token += kLetters[random() % kLetters.size()];
      tokens.push_back(token);
    }
    tokens.emplace_back();
    return Vocabulary::make(tokens, {static_cast<std::int32_t>(tokens.size()) - 1}).value();
  }();
  return made;
}

double cpu_ms() {
  return std::chrono::duration<double, std::milli>(thread_time()).count();
}

struct Outcome {
  std::string error;
  std::size_t n_masks = 0;
  std::size_t most_bytes = 0;
  double compile_ms = 0, most_step_ms = 0;
};

Outcome drive(const Source& source, std::size_t n_steps = 8) {
  Outcome outcome;
  double since = cpu_ms();
  const auto made = compile(source);
  outcome.compile_ms = cpu_ms() - since;
  if (!made) {
    outcome.error = made.error().message;
    return outcome;
  }
  Matcher matcher(*made, many_tokens());
  std::vector<std::uint32_t> mask(many_tokens()->n_mask_words());
  std::mt19937 random(5);
  for (std::size_t step = 0; step < n_steps && outcome.error.empty(); ++step) {
    since = cpu_ms();
    const auto ok = matcher.fill(mask);
    outcome.most_step_ms = std::max(outcome.most_step_ms, cpu_ms() - since);
    outcome.most_bytes = std::max(outcome.most_bytes, made->n_bytes() + matcher.n_bytes());
    if (!ok) {
      outcome.error = ok.error().message;
      // It stays so.
      EXPECT_EQ(matcher.fill(mask).error().message, outcome.error);
      EXPECT_EQ(matcher.accept(0).error().message, outcome.error);
      break;
    }
    ++outcome.n_masks;
    std::vector<std::int32_t> allowed;
    for (std::int32_t id = 0; many_tokens()->contains(id); ++id)
      if (has_bit(mask, id) && !many_tokens()->is_end(id)) allowed.push_back(id);
    if (allowed.empty()) break;
    since = cpu_ms();
    const auto fits = matcher.accept(allowed[random() % allowed.size()]);
    outcome.most_step_ms = std::max(outcome.most_step_ms, cpu_ms() - since);
    if (!fits) outcome.error = fits.error().message;
    EXPECT_TRUE(!fits || *fits);
  }
  return outcome;
}

// These took up to seconds and hundreds of MB in other engines. Times are in the report; work is bounded by fuel.
void expect_bounded(const Outcome& outcome, const std::string& what) {
  EXPECT_TRUE(outcome.error.empty() || outcome.error.starts_with("[grammar_too_complex]"))
      << what << ": " << outcome.error;
  EXPECT_LT(outcome.most_bytes, std::size_t{64} << 20) << what;
  ::testing::Test::RecordProperty(
      what, fmt::format("compile {:.1f} ms, step {:.1f} ms, {} bytes, {} masks {}", outcome.compile_ms,
                        outcome.most_step_ms, outcome.most_bytes, outcome.n_masks, outcome.error));
}

std::string repeated(std::string_view part, int n) {
  std::string made;
  for (int i = 0; i < n; ++i) made += part;
  return made;
}

TEST(Hostile, Patterns) {
  for (const std::string& pattern :
       {std::string(".*a.{20}"), std::string(".*a.{1000}"), std::string("(((a?){100}){100}){100}"),
        std::string("((a|b)*c){10000}"), std::string("(.*a){500}"), std::string("(a|aa|aaa)*b{1000}"),
        std::string("(?:(?:.{0,1000}){0,1000}){0,1000}x"), repeated("a?", 1000) + repeated("a", 1000),
        repeated("(a|b)*", 500), std::string("([a-z]{0,10000}[0-9]{0,10000}){0,10000}")}) {
    expect_bounded(drive({SourceKind::kRegex, pattern, {}}), pattern.substr(0, 60));
    expect_bounded(
        drive({SourceKind::kJsonSchema, fmt::format(R"({{"type": "string", "pattern": "{}"}})", pattern), {}}),
        "schema " + pattern.substr(0, 60));
  }
}

TEST(Hostile, WideSchemas) {
  std::string properties, values, branches, strings;
  for (int i = 0; i < 5000; ++i) properties += fmt::format("{}\"p{}\": {{}}", i == 0 ? "" : ", ", i);
  const Outcome optional =
      drive({SourceKind::kJsonSchema, fmt::format(R"({{"type": "object", "properties": {{{}}}}})", properties), {}});
  expect_bounded(optional, "5,000 optional properties");
  EXPECT_GT(optional.n_masks, 0u);
  for (int i = 0; i < 5000; ++i) values += fmt::format("{}\"v{}\"", i == 0 ? "" : ",", i * 7919);
  const Outcome enumerated = drive({SourceKind::kJsonSchema, fmt::format(R"({{"enum": [{}]}})", values), {}});
  EXPECT_EQ(enumerated.error, "");
  for (int i = 0; i < 4096; ++i)
    branches += fmt::format(R"({}{{"type": "object", "required": ["a{}"]}})", i == 0 ? "" : ",", i);
  expect_bounded(drive({SourceKind::kJsonSchema, fmt::format(R"({{"anyOf": [{}]}})", branches), {}}), "anyOf of 4,096");
  expect_bounded(drive({SourceKind::kJsonSchema, fmt::format(R"({{"oneOf": [{}]}})", branches), {}})
                         .error.starts_with("[schema] /oneOf")
                     ? Outcome()
                     : Outcome{"oneOf was not refused"},
                 "oneOf of 4,096");
  const Outcome all_of = drive({SourceKind::kJsonSchema, fmt::format(R"({{"allOf": [{}]}})", branches), {}});
  expect_bounded(all_of, "allOf of 4,096");
}

TEST(Hostile, Products) {
  // anyOf in allOf: 2 to the 30.
  std::string all;
  for (int i = 0; i < 30; ++i)
    all += fmt::format(R"({}{{"anyOf": [{{"required": ["a{}"]}}, {{"required": ["b{}"]}}]}})", i == 0 ? "" : ",", i, i);
  EXPECT_TRUE(drive({SourceKind::kJsonSchema, fmt::format(R"({{"allOf": [{}]}})", all), {}})
                  .error.starts_with("[grammar_too_complex]"));
  // References that double.
  std::string defs;
  for (int i = 0; i < 40; ++i)
    defs += fmt::format(
        R"("d{}": {{"type": "array", "prefixItems": [{{"$ref": "#/$defs/d{}"}}, {{"$ref": "#/$defs/d{}"}}], "minItems": 2, "items": false}},)",
        i, i + 1, i + 1);
  expect_bounded(drive({SourceKind::kJsonSchema,
                        fmt::format(R"({{"$defs": {{{} "d40": {{"type": "null"}}}}, "$ref": "#/$defs/d0"}})", defs),
                        {}}),
                 "doubling");
  std::string gbnf = "root ::= r0\n";
  for (int i = 0; i < 40; ++i) gbnf += fmt::format("r{} ::= r{} r{}\n", i, i + 1, i + 1);
  expect_bounded(drive({SourceKind::kGbnf, gbnf + "r40 ::= \"a\"", {}}), "doubling rules");
}

// Two enums that share one value, each of lists that are equal but for their last number, and many branches.
std::string deep_enums(int n_lists, int n_numbers, int n_branches) {
  const std::string same = repeated("7,", n_numbers - 1);
  const auto lists = [&](int first) {
    std::string made;
    for (int i = 0; i < n_lists; ++i) made += fmt::format("{}[{}{}]", i == 0 ? "" : ",", same, first + i);
    return made;
  };
  std::string branches;
  for (int i = 0; i < n_branches; ++i)
    branches += fmt::format(R"({}{{"$ref": "#/$defs/{}"}})", i == 0 ? "" : ",", i + 1 == n_branches ? "a" : "b");
  return fmt::format(R"({{"$defs": {{"a": {{"enum": [{}]}}, "b": {{"enum": [{}]}}}}, "$ref": "#/$defs/a",
      "anyOf": [{}]}})",
                     lists(0), lists(n_lists - 1), branches);
}

TEST(Hostile, WorkIsWhatIsLookedAt) {
  const Outcome deep = drive({SourceKind::kJsonSchema, deep_enums(16, 1200, 400), {}});
  EXPECT_TRUE(deep.error.starts_with("[grammar_too_complex]")) << deep.error;
  expect_bounded(deep, "enums of long lists");
  EXPECT_EQ(drive({SourceKind::kJsonSchema, deep_enums(4, 10, 4), {}}).error, "");
  // Each token of a vocabulary is looked up once.
  std::string tokens = "root ::= <[0]>";
  for (int i = 1; i < 20000; ++i) tokens += fmt::format(" | <[{}]>", i);
  expect_bounded(drive({SourceKind::kGbnf, tokens, {}}), "20,000 tokens");
  // Rules of which each is regular once the next one is known to be.
  std::string rules = "root ::= r0\n";
  for (int i = 0; i < 15000; ++i) rules += fmt::format("r{} ::= r{}\n", i, i + 1);
  for (const bool is_recursive : {false, true})
    expect_bounded(
        drive({SourceKind::kGbnf, rules + (is_recursive ? "r15000 ::= \"a\" root?" : "r15000 ::= \"a\""), {}}),
        "rules that lead to the last");
}

TEST(Hostile, AllPartsOfAGrammarShareItsWork) {
  const std::string part = deep_enums(16, 40, 20);
  Options options;
  const auto n_parts = [&] {
    Builder builder(options);
    int n = 0;
    while (n < 100 && builder.json(part).has_value()) ++n;
    return n;
  };
  const int n = n_parts();
  EXPECT_GT(n, 0);
  EXPECT_LT(n, 100);
  options.limits.compile_work *= 2;
  EXPECT_NEAR(n_parts(), 2 * n, 1 + n / 4);
  // A part that may take half of what is left leaves the other half.
  options.limits.compile_work = 100'000;
  Builder builder(options);
  const std::string schema = R"({"type": "object", "properties": {"v": )" + deep_enums(16, 100, 20) + "}}";
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(builder.arguments(schema, {}, 0.5).has_value());
  EXPECT_TRUE(builder.json(R"({"type": "object"})").has_value());
}

TEST(Hostile, CompilingLooksAtCancel) {
  std::stop_source gone;
  EXPECT_TRUE(compile({SourceKind::kJsonSchema, R"({"type": "object"})", {}}, {.cancel = gone.get_token()}));
  gone.request_stop();
  for (const Source& source : {Source{SourceKind::kJsonSchema, R"({"type": "object"})", {}},
                               Source{SourceKind::kGbnf, "root ::= \"a\"", {}}, Source{SourceKind::kRegex, "a", {}},
                               Source{SourceKind::kChoice, "", {"a"}}, Source{SourceKind::kJsonObject, "", {}}}) {
    const auto made = compile(source, {.cancel = gone.get_token()});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, StatusCode::kCancelled) << made.error().message;
  }
}

TEST(Hostile, ManyBranchesThatATagTellsApart) {
  std::string branches;
  for (int i = 0; i < 300; ++i)
    branches += fmt::format(
        R"({}{{"type": "object", "properties": {{"kind": {{"const": "kind_{}"}}, "n": {{"type": "integer"}}}}, "required": ["kind"]}})",
        i == 0 ? "" : ",", i);
  EXPECT_EQ(drive({SourceKind::kJsonSchema, fmt::format(R"({{"oneOf": [{}]}})", branches), {}}).error, "");
  // Two of them that do have values in common are found out.
  EXPECT_THAT(drive({SourceKind::kJsonSchema,
                     fmt::format(R"({{"oneOf": [{}, {{"properties": {{"kind": {{"const": "kind_7"}}}}}}]}})", branches),
                     {}})
                  .error,
              ::testing::HasSubstr("branches 0 and 300 may have values in common"));
}

TEST(Hostile, Depth) {
  EXPECT_TRUE(drive({SourceKind::kJsonSchema, repeated(R"({"items":)", 100) + "{}" + std::string(100, '}'), {}})
                  .error.starts_with("[grammar_too_complex]"));
  EXPECT_TRUE(
      drive({SourceKind::kJsonSchema, std::string(100000, '['), {}}).error.starts_with("[grammar_too_complex]"));
  EXPECT_TRUE(drive({SourceKind::kRegex, std::string(2000, '(') + "a" + std::string(2000, ')'), {}})
                  .error.starts_with("[grammar_too_complex]"));
  EXPECT_TRUE(drive({SourceKind::kGbnf, "root ::= " + std::string(100000, '(') + std::string(100000, ')'), {}})
                  .error.starts_with("[grammar_too_complex]"));
  EXPECT_TRUE(drive({SourceKind::kGbnf, "root ::= \"a\"" + std::string(100000, '*'), {}})
                  .error.starts_with("[grammar_too_complex]"));
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 5000; ++i) chain += fmt::format("r{} ::= r{}\n", i, i + 1);
  expect_bounded(drive({SourceKind::kGbnf, chain + "r5000 ::= \"a\"", {}}), "a chain of rules");
  std::string refs;
  for (int i = 0; i < 5000; ++i) refs += fmt::format(R"("d{}": {{"$ref": "#/$defs/d{}"}},)", i, i + 1);
  expect_bounded(drive({SourceKind::kJsonSchema,
                        fmt::format(R"({{"$defs": {{{} "d5000": {{}}}}, "$ref": "#/$defs/d0"}})", refs),
                        {}}),
                 "a chain of references");
}

TEST(Hostile, AmbiguousGrammars) {
  for (const char* text :
       {"root ::= root root | \"a\" |", "root ::= a a a a a a\na ::= b*\nb ::= c*\nc ::= \"x\"* a",
        "root ::= (x | y)*\nx ::= [a-z]+ x | [a-z]+\ny ::= y [a-z]* | [a-z]", "root ::= \"a\" root \"a\" | \"a\"",
        "root ::= \"a\" root | \"a\"", "root ::= ([a-z]* [a-z]*){0,10000} root | \"1\""})
    expect_bounded(drive({SourceKind::kGbnf, text, {}}, 20), text);
}

TEST(Hostile, SizesOfSources) {
  const std::string long_text((256u << 10) + 1, 'a');
  EXPECT_TRUE(compile({SourceKind::kJsonSchema, long_text, {}}).error().message.starts_with("[grammar_too_complex]"));
  EXPECT_TRUE(compile({SourceKind::kGbnf, long_text, {}}).error().message.starts_with("[grammar_too_complex]"));
  EXPECT_TRUE(compile({SourceKind::kChoice, "", {long_text}}).error().message.starts_with("[grammar_too_complex]"));
  EXPECT_EQ(drive({SourceKind::kJsonSchema, R"({"minItems": 10001})", {}}).error,
            "[grammar_too_complex] /minItems: repeats: 10001 wanted, at most 10000 allowed");
  const Outcome long_string =
      drive({SourceKind::kJsonSchema, R"({"type": "string", "minLength": 10000, "maxLength": 10000})", {}});
  EXPECT_EQ(long_string.error, "");
}

TEST(Hostile, AFullTableEndsNobodyElse) {
  // One matcher fills what it shares; the next begins anew.
  Options options;
  options.limits.max_lexer_bytes = 1u << 20;
  const auto made = compile({SourceKind::kRegex, ".*a.{200}", {}}, options);
  ASSERT_TRUE(made);
  for (int round = 0; round < 3; ++round) {
    Matcher matcher(*made, many_tokens());
    ASSERT_TRUE(matcher.accept_text("aab").value());
    std::mt19937 random(static_cast<unsigned>(round));
    std::string error;
    for (int i = 0; i < 20000 && error.empty(); ++i) {
      const auto fits = matcher.accept(random() % 2 == 0 ? 'a' : 'b');
      if (!fits) error = fits.error().message;
    }
    EXPECT_TRUE(error.starts_with("[grammar_too_complex]")) << error;
  }
}

}  // namespace
}  // namespace zinc_rt::grammar

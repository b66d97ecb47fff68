// Calls that are forced, in every format that is written: what fits the grammar comes out of the answer's reader as
// calls of the tools, with arguments that fit their schemas.
#include "engine/output_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/strict_json.h"
#include "engine/answer_mask.h"

namespace zinc_rt {
namespace {

using testing::HasSubstr;

constexpr const char* kTools = R"([
  {"type":"function","function":{"name":"get_weather","strict":true,"parameters":{"type":"object","properties":{
     "city":{"type":"string","maxLength":12},"days":{"type":"integer","minimum":1,"maximum":14}},
   "required":["city","days"],"additionalProperties":false}}},
  {"type":"function","function":{"name":"now"}},
  {"type":"function","function":{"name":"all","parameters":{"type":"object","$defs":{"colour":{"enum":["red","null","5"]}},
   "properties":{
     "note":{"type":["string","null"],"maxLength":8},
     "either":{"anyOf":[{"type":"integer","maximum":9},{"type":"string","pattern":"^[a-z0-9]{1,3}$"}]},
     "colour":{"$ref":"#/$defs/colour"},
     "deep":{"type":"boolean"},
     "ratio":{"type":"number","minimum":0},
     "tags":{"type":"array","items":{"type":"string","maxLength":4},"maxItems":2},
     "inner":{"type":"object","properties":{"a":{"const":1},"b":{"enum":["x",["y"],{"z":"w"},null]}},
              "required":["a"],"additionalProperties":false},
     "any":{"enum":[1,"1",null,true,"true",["x"],{"k":"v"}]},
     "empty":{"type":"string","maxLength":0},
     "loose":{"maxLength":6}},
   "required":["either","inner"],"additionalProperties":{"type":"string","maxLength":5}}}}])";

// A model's formats over a vocabulary of bytes and, if wanted, a token for each sign of the format.
struct Bench {
  Bench(const char* name, bool with_tokens)
      : format(output::find_call_format(name)), formats(format, &output::reasoning_formats()[0], [&](auto text) {
          return with_tokens ? find(text) : std::nullopt;
        }) {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    tokens.resize(256 + signs.size() + 1);
    end = static_cast<std::int32_t>(tokens.size() - 1);
    vocabulary = grammar::Vocabulary::make(tokens, {end}).value();
    request.parse_output = true;
    request.tool_choice = ToolChoice::kRequired;
  }

  std::optional<std::int32_t> find(std::string_view text) {
    // These are words and never tokens.
    if (text == "<function=" || text == "functools" || text == "<think>" || text == "</think>") return std::nullopt;
    // Of these a part is one.
    if (text.ends_with("DSML｜function_calls>")) return std::nullopt;
    const auto at = std::ranges::find(signs, text) - signs.begin();
    if (static_cast<std::size_t>(at) == signs.size()) signs.emplace_back(text);
    return static_cast<std::int32_t>(256 + at);
  }

  Result<grammar::Grammar> make(const char* text = kTools) {
    const auto tools = read_any_json(text).value_or(nullptr);
    return make_grammar({formats, request, bound_tools(request, tools), output::ToolTypes(tools)});
  }

  bool wants_grammar() const {
    const auto tools = bound_tools(request, *read_any_json(kTools));
    return zinc_rt::wants_grammar({formats, request, tools, {}});
  }

  // The tokens of a text: signs where one stands, else bytes.
  std::vector<std::int32_t> ids(std::string_view text) const {
    std::vector<std::int32_t> out;
    while (!text.empty()) {
      const auto sign = std::ranges::find_if(signs, [&](const std::string& s) { return text.starts_with(s); });
      const bool is_sign = sign != signs.end();
      out.push_back(is_sign ? static_cast<std::int32_t>(256 + (sign - signs.begin()))
                            : static_cast<std::uint8_t>(text[0]));
      text.remove_prefix(is_sign ? sign->size() : 1);
    }
    return out;
  }
  std::string text_of(std::int32_t id) const {
    return id < 256 ? std::string(1, static_cast<char>(id)) : signs[static_cast<std::size_t>(id) - 256];
  }

  bool accepts(const grammar::Grammar& grammar, std::string_view text) const {
    grammar::Matcher matcher(grammar, vocabulary);
    for (const auto id : ids(text))
      if (!matcher.accept(id).value()) return false;
    return matcher.is_complete();
  }

  // The calls of an answer: name and arguments. `rest`: its text.
  std::vector<std::pair<std::string, std::string>> read(const std::vector<std::int32_t>& answer,
                                                        std::string& rest) const {
    output::Parser parser(formats,
                          {.with_calls = true, .tools = std::make_shared<output::ToolTypes>(*read_any_json(kTools))});
    std::vector<std::pair<std::string, std::string>> calls;
    std::size_t n_ended = 0;
    const auto take = [&](const std::vector<OutputPiece>& pieces) {
      for (const auto& piece : pieces) {
        if (piece.kind == PieceKind::kCallBegin) calls.emplace_back(piece.text, "");
        if (piece.kind == PieceKind::kCallArguments) calls[piece.call].second += piece.text;
        if (piece.kind == PieceKind::kCallEnd) ++n_ended;
        if (piece.kind == PieceKind::kText) rest += piece.text;
      }
    };
    for (const auto id : answer) {
      const auto text = text_of(id);
      take(id < 256 ? parser.push(text) : parser.push(id, text, text.size(), true));
    }
    take(parser.finish());
    EXPECT_EQ(n_ended, calls.size());
    return calls;
  }

  const output::CallFormat* format;
  std::vector<std::string> signs;
  output::Formats formats;
  Request request;
  std::shared_ptr<const grammar::Vocabulary> vocabulary;
  std::int32_t end = 0;
};

// Where reasoning ends within a guess, what is guessed behind it is bound too.
TEST(OutputGrammar, BindsWhatIsGuessedBehindReasoning) {
  Bench bench("hermes", false);
  bench.request.tool_choice = ToolChoice::kAuto;
  bench.request.output_format = {OutputFormat::Kind::kJsonObject, "", {}};
  const output::ToolTypes types;
  const auto grammar = make_grammar({bench.formats, bench.request, {}, types, true});
  ASSERT_TRUE(grammar) << grammar.error().message;
  AnswerMask mask({*grammar}, bench.vocabulary);
  const std::string reasoning = "A list, say.</think>";  // the prompt has the opening mark
  const auto guess = mask.guess(bench.ids(reasoning + "```json"));
  EXPECT_TRUE(std::ranges::equal(guess, bench.ids(reasoning)));
  const auto is_allowed = [&](std::size_t n_guessed, char byte) {
    const auto words = mask.get(n_guessed);
    EXPECT_TRUE(words);
    return words && ((*words)[static_cast<unsigned char>(byte) / 32] >> (byte % 32) & 1) != 0;
  };
  EXPECT_TRUE(is_allowed(reasoning.size() - 9, '`'));  // within the reasoning
  EXPECT_FALSE(is_allowed(reasoning.size(), '`'));
  EXPECT_TRUE(is_allowed(reasoning.size(), '{'));
}

// One random answer of a grammar. It likes what may be taken for something else, and comes to an end.
std::vector<std::int32_t> random_answer(const Bench& bench, const grammar::Grammar& grammar, std::mt19937& random) {
  static const std::vector<std::string> kTricks = {"null",
                                                   "None",
                                                   "5",
                                                   "-1.5e3",
                                                   " true ",
                                                   "{\"a\": 1}",
                                                   "[1]",
                                                   "</parameter>",
                                                   "\n",
                                                   "\n\n",
                                                   "<|\"|>",
                                                   "<escape>",
                                                   "<parameter=days>\n",
                                                   "</｜DSML｜parameter>",
                                                   "\" string=\"true\">",
                                                   "</function>",
                                                   "</tool_call>",
                                                   "```",
                                                   "{",
                                                   "}",
                                                   ",",
                                                   ":",
                                                   "\"",
                                                   "\\",
                                                   "é",
                                                   "😀",
                                                   "<",
                                                   "</par"};
  const std::size_t soft_limit = 200 + random() % 200, hard_limit = 6000;
  const auto syntax = bench.format->openings[0].syntax;
  const bool has_tags =
      syntax == output::Syntax::kTags || syntax == output::Syntax::kPairs || syntax == output::Syntax::kInvoke;
  const std::string closing = has_tags                                    ? output::parameter_form(*bench.format).close
                              : output::has_json_arguments(*bench.format) ? ""
                                                                          : std::string(bench.format->mark);
  grammar::Matcher matcher(grammar, bench.vocabulary);
  std::vector<std::int32_t> out;
  std::string text;
  std::vector<std::uint32_t> mask(bench.vocabulary->n_mask_words());
  const auto take = [&](std::int32_t id) {
    EXPECT_TRUE(matcher.accept(id).value());
    out.push_back(id);
    text += bench.text_of(id);
  };
  while (out.size() < hard_limit) {
    EXPECT_TRUE(matcher.fill(mask).has_value());
    const auto may = [&](std::int32_t id) { return (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0; };
    const bool hurries = out.size() > soft_limit;
    if (may(bench.end) && (hurries || random() % 2 == 0)) return out;
    if (!hurries && random() % 4 == 0) {
      const auto& trick = kTricks[random() % kTricks.size()];
      for (const char byte : trick)
        if (!matcher.fill(mask) || !may(static_cast<std::uint8_t>(byte)))
          break;
        else
          take(static_cast<std::uint8_t>(byte));
      continue;
    }
    std::vector<std::int32_t> allowed;
    for (std::int32_t id = 0; id < bench.end; ++id)
      if (may(id) && id != 0x7F) allowed.push_back(id);  // U+007F need not be escaped, and the oracle wants it to be
    if (allowed.empty() && may(bench.end)) return out;
    if (allowed.empty()) break;
    std::int32_t next = allowed[random() % allowed.size()];
    if (allowed.back() >= 256 && (hurries || random() % 3 == 0)) next = allowed.back();
    if (hurries && bench.format->name == "dsml" && text.ends_with('<') && may('/')) {
      next = '/';  // which closes, where a token would open another one
    } else if (hurries && next < 256) {
      std::size_t n = std::min(closing.size(), text.size());
      while (n > 0 && (n == closing.size() || !text.ends_with(closing.substr(0, n)))) --n;
      // A list that closes with another sign than "]" closes before a comma begins its next item.
      const auto list_close = bench.format->is_list ? bench.format->list_close.substr(0, 1) : std::string_view();
      std::string wanted =
          (n < closing.size() ? closing.substr(n, 1) : "") + "\"}]" + std::string(list_close) + "),=/<:>1a";
      for (const char byte : wanted)
        if (may(static_cast<std::uint8_t>(byte))) {
          next = static_cast<std::uint8_t>(byte);
          break;
        }
    }
    take(next);
  }
  ADD_FAILURE() << "no end: " << text.substr(0, 2000);
  return out;
}

std::vector<const char*> written_formats() {
  std::vector<const char*> out;
  for (const auto& row : output::call_formats())
    if (!row.body.empty()) out.push_back(row.name.data());
  return out;
}

class Forced : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(OutputGrammar, Forced, testing::ValuesIn(written_formats()),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(Forced, WhateverFitsIsReadAsCallsThatFit) {
  std::map<std::string, grammar::Grammar> schemas;
  for (const auto& tool : nlohmann::ordered_json::parse(kTools)) {
    const auto& function = tool["function"];
    const auto schema = function.value("parameters", nlohmann::ordered_json{{"type", "object"}});
    schemas.emplace(function["name"], grammar::compile({grammar::SourceKind::kJsonSchema, schema.dump(), {}}).value());
  }
  std::mt19937 random(11);
  std::set<std::string> names;
  for (const bool with_tokens : {false, true}) {
    Bench bench(GetParam(), with_tokens);
    // A header's marks are tokens in each vocabulary that has them.
    if (!with_tokens && bench.format->openings[0].syntax == output::Syntax::kHeader) continue;
    const auto grammar = bench.make();
    ASSERT_TRUE(grammar) << grammar.error().message;
    for (int i = 0; i < 200 && !HasFailure(); ++i) {
      const auto answer = random_answer(bench, *grammar, random);
      std::string all, rest;
      for (const auto id : answer) all += bench.text_of(id);
      auto calls = bench.read(answer, rest);
      EXPECT_EQ(rest.find_first_not_of(" \n"), std::string::npos) << all;
      EXPECT_FALSE(calls.empty()) << all;
      for (auto& [name, arguments] : calls) {
        names.insert(name);
        // U+007F need not be escaped, and the oracle wants it to be.
        for (auto at = arguments.find('\x7F'); at != std::string::npos; at = arguments.find('\x7F'))
          arguments.replace(at, 1, "\\u007F");
        ASSERT_TRUE(schemas.contains(name)) << all;
        grammar::Matcher json(schemas.at(name), bench.vocabulary);
        ASSERT_TRUE(json.accept_text(arguments).value() && json.is_complete()) << all << "\n"
                                                                               << name << " " << arguments;
      }
    }
  }
  EXPECT_EQ(names.size(), 3u);
}

TEST_P(Forced, ANamedToolIsTheOnlyOneAndIsCalledOnce) {
  Bench bench(GetParam(), true);
  bench.request.tool_choice = ToolChoice::kNamed;
  bench.request.named_tool = "get_weather";
  const auto grammar = bench.make();
  ASSERT_TRUE(grammar) << grammar.error().message;
  std::mt19937 random(3);
  for (int i = 0; i < 10; ++i) {
    std::string rest;
    const auto calls = bench.read(random_answer(bench, *grammar, random), rest);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].first, "get_weather");
  }
  bench.request.named_tool = "fly";
  EXPECT_THAT(bench.make().error().message, HasSubstr("\"fly\", which is none of the tools"));
}

struct Written {
  const char *format, *text;
};

constexpr const char* kWrittenInDsml =
    "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" "
    "string=\"true\">Le \"Locle\"</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" "
    "string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>\n"
    "</｜DSML｜function_calls>";

// As the models' own templates write two calls.
constexpr Written kWritten[] = {
    {"tags",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nLe \"Locle\"\n\n</parameter>\n<parameter=days>\n5\n"
     "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>"},
    {"seed",
     "<seed:tool_call>\n<function=get_weather>\n<parameter=city>\nBern\n</parameter>\n<parameter=days>\n5\n"
     "</parameter>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=now>\n</function>\n</seed:tool_call>"},
    {"gemma",
     "<|tool_call>call:get_weather{city:<|\"|>Le "
     "\"Locle\"}<|\"|>,days:5}<tool_call|><|tool_call>call:now{}<tool_call|>"},
    {"functiongemma",
     "<start_function_call>call:get_weather{city:<escape>Bern<escape>,days:5}<end_function_call><start_function_call>"
     "call:now{}<end_function_call>"},
    {"deepseek",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Bern\", \"days\": "
     "5}<｜tool▁call▁end｜>"
     "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
    {"deepseek_r1",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Bern\", "
     "\"days\": "
     "5}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>"
     "<｜tool▁calls▁end｜>"},
    {"dsml", kWrittenInDsml},
    {"glm45",
     "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Le \"Locle\"</arg_value>\n<arg_key>days</arg_key>\n"
     "<arg_value>5</arg_value>\n</tool_call>\n<tool_call>now\n</tool_call>"},
    {"glm47",
     "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Le \"Locle\"</arg_value><arg_key>days</arg_key>"
     "<arg_value>5</arg_value></tool_call><tool_call>now</tool_call>"},
    {"glm4", "get_weather\n{\"city\": \"Bern\", \"days\": 5}\nnow\n{}"},
    {"nemotron",
     "<TOOLCALL>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 5}}, {\"name\": \"now\", "
     "\"arguments\": {}}]</TOOLCALL>"},
    {"hunyuan",
     "<tool_calls>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 5}}, {\"name\": \"now\", "
     "\"arguments\": {}}]</tool_calls>"},
    {"lfm2", "<|tool_call_start|>[get_weather(city=\"Le \\\"Locle\\\"\", days=5), now()]<|tool_call_end|>"},
    {"hermes",
     "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 5}}\n</tool_call>\n"
     "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
};

// As agents send them with several connectors: dozens of tools whose schemas have long texts, lists, patterns in lists,
// and looks ahead as zod writes an e-mail address. All share one budget of compiling.
std::string tools_of_connectors(int n, bool are_strict) {
  constexpr const char* kEmail =
      R"(^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$)";
  std::string tools;
  for (int i = 0; i < n; ++i)
    tools += fmt::format(
        R"({}{{"type":"function","function":{{"name":"connector_{}","strict":{},"description":"{}","parameters":{{
          "type":"object","properties":{{
            "to":{{"type":"array","items":{{"type":"string","pattern":"{}"}},"minItems":1,"maxItems":100}},
            "ids":{{"type":"array","items":{{"type":"string","pattern":"^(\\d+|imap:[A-Za-z0-9_-]+)$"}},"maxItems":100}},
            "text":{{"type":"string","minLength":1,"maxLength":10000}},
            "title":{{"type":"string","pattern":"\\S"}},
            "options":{{"type":"object","propertyNames":{{"pattern":"^x-"}},"additionalProperties":{{}}}},
            "kind{}":{{"anyOf":[{{"type":"number"}},{{"type":"null"}},{{"enum":["a","b","c"]}}]}}}},
          "required":["to","text"],"additionalProperties":false}}}}}})",
        i == 0 ? "[" : ",", i, are_strict, std::string(1000, 'd'), kEmail, i);
  return tools + "]";
}

// What a grammar of calls is made of is in its key, and nothing else of the tools.
TEST(OutputGrammar, KeysTellToolsApart) {
  const Bench bench("hermes", false);
  const auto key = [&](const char* function, const char* besides = "") {
    const auto text = fmt::format(R"([{{"type":"function","function":{}}}{}])", function, besides);
    const auto tools = bound_tools(bench.request, *read_any_json(text));
    return grammar_key({bench.formats, bench.request, tools, {}});
  };
  const auto plain = key(R"({"name":"f","parameters":{"type":"object"}})");
  EXPECT_EQ(key(R"({ "description":"d", "name":"f", "parameters":{"type":"object"} })"), plain);
  for (const char* other : {R"({"name":"g","parameters":{"type":"object"}})", R"({"name":"f","parameters":{}})",
                            R"({"name":"f","strict":true,"parameters":{"type":"object"}})"})
    EXPECT_NE(key(other), plain) << other;
  EXPECT_NE(key(R"({"name":"f","parameters":{"type":"object"}})", R"(,{"type":"function","function":{"name":"g"}})"),
            plain);
}

TEST(OutputGrammar, ToolsOfManyConnectorsAreBoundTogether) {
  for (const bool are_strict : {true, false}) {
    Bench bench("hermes", true);
    const auto tools = tools_of_connectors(120, are_strict);
    const auto grammar = bench.make(tools.c_str());
    ASSERT_TRUE(grammar) << grammar.error().message;
    // The last one is bound as well as the first.
    for (const int i : {0, 119}) {
      const auto call = [&](std::string_view to) {
        return fmt::format(
            "<tool_call>\n{{\"name\": \"connector_{}\", \"arguments\": {{\"to\": [\"{}\"], \"text\": "
            "\"t\"}}}}\n</tool_call>",
            i, to);
      };
      EXPECT_TRUE(bench.accepts(*grammar, call("ann.b@example.org"))) << i;
      EXPECT_FALSE(bench.accepts(*grammar, call("ann..b@example.org"))) << i;
    }
  }
}

TEST(OutputGrammar, WritesAsTheModelsDo) {
  for (const auto& [name, text] : kWritten)
    for (const bool with_tokens : {false, true}) {
      Bench bench(name, with_tokens);
      const auto grammar = bench.make();
      ASSERT_TRUE(grammar) << grammar.error().message;
      EXPECT_TRUE(bench.accepts(*grammar, text)) << name;
      bench.request.max_tool_calls = 1;
      EXPECT_FALSE(bench.accepts(bench.make().value(), text)) << name;
    }
}

TEST(OutputGrammar, BindsValuesThatStandWithoutQuotes) {
  Bench bench("tags", true);
  const auto grammar = bench.make().value();
  const auto call = [&](std::string_view name, std::string_view parameters) {
    return bench.accepts(grammar,
                         fmt::format("<tool_call>\n<function={}>\n{}</function>\n</tool_call>", name, parameters));
  };
  const auto all = [&](std::string_view name, std::string_view value) {
    constexpr std::string_view kFirst = "<parameter=either>\n1\n</parameter>\n",
                               kInner = "<parameter=inner>\n{\"a\":1}\n</parameter>\n";
    const auto one = fmt::format("<parameter={}>\n{}\n</parameter>\n", name, value);
    if (name == "either") return call("all", one + std::string(kInner));
    if (name == "note") return call("all", one + std::string(kFirst) + std::string(kInner));
    return call("all", std::string(kFirst) + (name == "inner" ? one : std::string(kInner) + one));
  };
  EXPECT_TRUE(all("note", "x") && all("note", "null") && all("note", "None") && all("note", "5") && all("note", ""));
  EXPECT_FALSE(all("note", "NONE") || all("note", " null") || all("note", "a</parameter>"));
  EXPECT_TRUE(all("either", "9") && all("either", "abc") && all("either", "a1"));
  EXPECT_FALSE(all("either", "10") || all("either", "abcd"));  // 10 would be read as a number
  EXPECT_TRUE(all("inner", "{\"a\": 1, \"b\": [\"y\"]}"));
  EXPECT_FALSE(all("inner", "{\"b\": null}") || all("inner", "{\"a\":1,\"c\":1}"));
  EXPECT_TRUE(all("other", "1.5"));  // of additionalProperties: a text, whatever it looks like
  EXPECT_FALSE(all("other", "longer") || all("a<b", "x"));
  EXPECT_FALSE(call("get_weather", "<parameter=city>\nBern\n</parameter>\n"));  // days is missing
  EXPECT_FALSE(call("fly", ""));
}

TEST(OutputGrammar, BindsKeywords) {
  Bench bench("lfm2", true);
  const auto grammar = bench.make().value();
  const auto all = [&](std::string_view arguments) {
    return bench.accepts(grammar, fmt::format("<|tool_call_start|>[all({})]<|tool_call_end|>", arguments));
  };
  EXPECT_TRUE(all("either=9, inner={\"a\": 1}") && all("note=None, either=\"a1\", deep=True, inner={\"a\":1}"));
  EXPECT_TRUE(all("either=1, inner={\"a\": 1, \"b\": None}, any={\"k\": \"v\"}, other=\"x\""));
  EXPECT_FALSE(all("either=10, inner={\"a\": 1}") || all("inner={\"a\": 1}"));
  EXPECT_FALSE(all("note=null, either=1, inner={\"a\": 1}") || all("either=1, deep=true, inner={\"a\": 1}"));
  EXPECT_FALSE(all("either=1,inner={\"a\": 1}") || all("either=1, inner={\"a\": 1}, a b=\"x\""));
}

TEST(OutputGrammar, StrictToolsLeaveTextFree) {
  struct Strict {
    const char *format, *good, *bad;
  };
  constexpr const char* kGoodTags =
      "<parameter=city>\nBern\n</parameter>\n<parameter=days>\n5\n</parameter>\n</function>";
  const std::string tagged =
      std::string("I look. <tool_call>\n<function=get_weather>\n") + kGoodTags + "\n</tool_call>\nDone.";
  const std::string bare = std::string("I look. <function=get_weather>\n") + kGoodTags + "\n</tool_call>";
  const std::string dsml = std::string("I look. ") + kWrittenInDsml + " Done.";
  const Strict cases[] = {
      {"tags", tagged.c_str(), "I look. <tool_call>\n<function=get_weather>\n</function>\n</tool_call>"},
      {"tags", bare.c_str(), "I look. <function=get_weather>\n</function>"},
      {"gemma", "I look.<|tool_call>call:get_weather{city:<|\"|>Bern<|\"|>,days:5}<tool_call|>.",
       "I look.<|tool_call>call:get_weather{city:<|\"|>Bern<|\"|>}<tool_call|>."},
      {"deepseek", kWritten[3].text,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {"lfm2", "I look.<|tool_call_start|>[get_weather(city=\"Bern\", days=5)]<|tool_call_end|>.",
       "I look.<|tool_call_start|>[get_weather(city=\"Bern\")]<|tool_call_end|>."},
      {"glm47",
       "I "
       "look.<tool_call>get_weather<arg_key>city</arg_key><arg_value>Bern</arg_value><arg_key>days</arg_key><arg_value>"
       "5</arg_value></tool_call>.",
       "I look.<tool_call>get_weather</tool_call>."},
      {"dsml", dsml.c_str(),
       "I look. <｜DSML｜function_calls>\n<｜DSML｜invoke "
       "name=\"get_weather\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"},
  };
  for (const auto& [name, good, bad] : cases)
    for (const bool with_tokens : {false, true}) {
      Bench bench(name, with_tokens);
      bench.request.tool_choice = ToolChoice::kAuto;
      ASSERT_TRUE(bench.wants_grammar());
      const auto grammar = bench.make();
      ASSERT_TRUE(grammar) << grammar.error().message;
      EXPECT_TRUE(bench.accepts(*grammar, "No call at all, 1 < 2.")) << name;
      const bool closes_as_token = with_tokens && good == bare;  // which free text has not
      EXPECT_EQ(bench.accepts(*grammar, good), !closes_as_token) << name << " " << good;
      EXPECT_FALSE(bench.accepts(*grammar, bad)) << name << " " << bad;
    }
}

TEST(OutputGrammar, NamesThatCannotBeWrittenAreRefused) {
  const auto error = [](const char* format, const std::string& tool) {
    Bench bench(format, true);
    const auto made = bench.make((R"([{"type":"function","function":)" + tool + "}]").c_str());
    return made ? std::string() : made.error().message;
  };
  EXPECT_THAT(error("tags", R"({"name":"a>b"})"), HasSubstr("name of tool \"a>b\" cannot be written"));
  EXPECT_THAT(error("gemma", R"({"name":"a\nb"})"), HasSubstr("cannot be written"));
  EXPECT_THAT(error("deepseek", R"({"name":"function"})"), HasSubstr("cannot be written"));
  EXPECT_THAT(error("lfm2", R"({"name":"a(b"})"), HasSubstr("cannot be written"));
  EXPECT_THAT(error("glm47", R"({"name":"a<b"})"), HasSubstr("cannot be written"));
  EXPECT_EQ(error("hermes", R"({"name":"a>b"})"), "");
  const std::string odd = R"("parameters":{"type":"object","properties":{"a:b":{"type":"integer"}}})";
  EXPECT_THAT(error("gemma", R"({"name":"f","strict":true,)" + odd + "}"),
              HasSubstr("the name \"a:b\" cannot be written"));
  EXPECT_EQ(error("gemma", R"({"name":"f",)" + odd + "}"), "");  // not strict: any object
  EXPECT_EQ(error("tags", R"({"name":"f","strict":true,)" + odd + "}"), "");
  EXPECT_THAT(error("tags", R"({"name":"f","strict":true,"parameters":{"type":"string"}})"),
              HasSubstr("allows no object"));
}

TEST(OutputGrammar, BindsValuesByWhatTheirTagSays) {
  for (const bool with_tokens : {false, true}) {
    Bench bench("dsml", with_tokens);
    const auto grammar = bench.make().value();
    const auto weather = [&](std::string_view city, std::string_view days) {
      constexpr std::string_view kEnd = "</｜DSML｜parameter>\n";
      return bench.accepts(
          grammar, fmt::format("<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter "
                               "name=\"city\" string={}{}<｜DSML｜parameter name=\"days\" string={}{}"
                               "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
                               city, kEnd, days, kEnd));
    };
    EXPECT_TRUE(weather("\"true\">5", "\"false\">5") && weather("\"true\">", "\"false\">14"));
    EXPECT_FALSE(weather("\"false\">5", "\"false\">5") || weather("\"true\">5", "\"true\">5"));
    EXPECT_FALSE(weather("\"true\">longer than twelve", "\"false\">5") || weather("\"true\">a", "\"false\">15"));
    EXPECT_FALSE(weather("\"false\">\"a\"", "\"false\">5"));
  }
}

}  // namespace
}  // namespace zinc_rt

// Every format: what its calls come out as, whole and in pieces, with markers as text and as tokens.
#include "output/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/strict_json.h"
#include "show_pieces.h"

namespace zinc_rt::output {
namespace {

constexpr const char* kTools = R"([
  {"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{
    "city":{"type":"string"},"days":{"type":"integer"},"ratio":{"type":"number"},"deep":{"type":"boolean"},
    "note":{"type":["string","null"]},"tags":{"type":"array"},"zip":{"type":"string"},
    "either":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}}},
  {"type":"function","function":{"name":"run","parameters":{"type":"object","properties":{"code":{"type":"string"}}}}},
  {"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}])";

struct Bench {
  Bench(const char* format, bool with_tokens, Parser::Options options = {.with_calls = true},
        const AnswerFrame* frame = nullptr) {
    const auto find = [this, with_tokens](std::string_view text) -> std::optional<std::int32_t> {
      if (!with_tokens || text == "<function=" || text == "functools") return std::nullopt;
      tokens.emplace_back(text);
      return static_cast<std::int32_t>(tokens.size() - 1);
    };
    formats = Formats(find_call_format(format), &reasoning_formats()[0], find, false, frame);
    options.tools = std::make_shared<ToolTypes>(*read_any_json(kTools));
    parser = std::make_unique<Parser>(formats, std::move(options));
  }
  void add(std::vector<OutputPiece> pieces) { std::ranges::move(pieces, std::back_inserter(all)); }
  // Pushes a text in pieces of at most `most` bytes; tokens of the vocabulary are pushed as such.
  std::string run(std::string_view text, std::size_t most, std::mt19937* random = nullptr) {
    while (!text.empty()) {
      const auto token = std::ranges::find_if(tokens, [&](const std::string& t) { return text.starts_with(t); });
      if (token != tokens.end()) {
        // Markers are special tokens; what closes a call or stands within it is one as any other.
        const auto id = static_cast<std::int32_t>(token - tokens.begin());
        const bool is_marker = parser->is_marker(id);
        add(parser->push(id, *token, is_marker ? token->size() : 0, is_marker));
        text.remove_prefix(token->size());
        continue;
      }
      auto n = std::min(text.size(), random == nullptr ? most : 1 + (*random)() % most);
      for (const auto& t : tokens) n = std::min(n, text.find(t));
      add(parser->push(text.substr(0, n)));
      text.remove_prefix(n);
    }
    add(parser->finish());
    return show(all);
  }
  std::vector<std::string> tokens;
  Formats formats;
  std::unique_ptr<Parser> parser;
  std::vector<OutputPiece> all;
};

struct Case {
  const char* name;
  const char* format;
  const char* text;
  const char* wanted;
};

const Case kCases[] = {
    {"hermes_one", "hermes",
     "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>",
     "call 0 get_weather\nargs 0 {\"city\": \"Bern\"}\nend 0"},
    {"hermes_two_and_text", "hermes",
     "<think>\nhm\n</think>\n\nI look.\n<tool_call>\n{\"name\": \"now\", \"arguments\": "
     "{}}\n</tool_call>\n<tool_call>\n"
     "{\"arguments\": {\"code\": \"</tool_call> } \\\" {\"}, \"name\": \"run\"}\n</tool_call>\nDone.",
     "think \nhm\n\ntext I look.\ncall 0 now\nargs 0 {}\nend 0\ncall 1 run\nargs 1 {\"code\": \"</tool_call> } \\\" "
     "{\"}\nend 1\ntext \nDone."},
    {"hermes_no_arguments", "hermes", "<tool_call>{\"name\": \"now\"}</tool_call>", "call 0 now\nargs 0 {}\nend 0"},
    {"hermes_arguments_as_text", "hermes",
     "<tool_call>{\"name\": \"run\", \"arguments\": \"{\\\"code\\\": \\\"1\\\"}\"}</tool_call>",
     "call 0 run\nargs 0 {\"code\": \"1\"}\nend 0"},
    {"hermes_unknown_name", "hermes", "<tool_call>{\"name\": \"fly\", \"arguments\": {\"to\": 1}}</tool_call>",
     "call 0 fly\nargs 0 {\"to\": 1}\nend 0"},
    {"hermes_no_call", "hermes", "<tool_call>\nnot JSON</tool_call> and more",
     "text <tool_call>\nnot JSON</tool_call> and more"},
    {"hermes_other_object", "hermes", "<tool_call>{\"colour\": 1}</tool_call>",
     "text <tool_call>{\"colour\": 1}</tool_call>"},
    {"hermes_false_start", "hermes", "a <tool_x> b <tool_cal", "text a <tool_x> b <tool_cal"},
    {"hermes_cut", "hermes", "<tool_call>\n{\"name\": \"run\", \"arguments\": {\"code\": \"pri",
     "call 0 run\nargs 0 {\"code\": \"pri"},
    {"hermes_text_only", "hermes", "Plain text, with spaces.  \n", "text Plain text, with spaces.  \n"},
    {"tags_types", "tags",
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nNew\nYork\n</parameter>\n<parameter=days>\n5.0\n</"
     "parameter>\n"
     "<parameter=deep>\nTrue\n</parameter>\n<parameter=note>\nNone\n</parameter>\n<parameter=zip>\n02134\n</"
     "parameter>\n"
     "<parameter=tags>\n[\"a\", "
     "1]\n</parameter>\n<parameter=ratio>\n\n</parameter>\n<parameter=either>\nx1\n</parameter>\n"
     "</function>\n</tool_call>",
     "call 0 get_weather\nargs 0 {\"city\": \"New\\nYork\", \"days\": 5, \"deep\": true, \"note\": null, \"zip\": "
     "\"02134\", \"tags\": [\"a\", 1], \"either\": \"x1\"}\nend 0"},
    {"tags_code", "tags",
     "<tool_call>\n<function=run>\n<parameter=code>\n\n  if a:\n    print(\"</parameter>\", "
     "'</tool_call>')\n\n\n</parameter>\n"
     "</function>\n</tool_call>",
     "call 0 run\nargs 0 {\"code\": \"\\n  if a:\\n    print(\\\"</parameter>\\\", '</tool_call>')\\n\\n\"}\nend 0"},
    {"tags_two", "tags",
     "Look:\n\n<tool_call>\n<function=now>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</"
     "tool_call>",
     "text Look:\ncall 0 now\nargs 0 {}\nend 0\ncall 1 now\nargs 1 {}\nend 1"},
    {"tags_without_wrapper", "tags", "<function=run>\n<parameter=code>\n1\n</parameter>\n</function>\n</tool_call>",
     "call 0 run\nargs 0 {\"code\": \"1\"}\nend 0"},
    {"tags_cut", "tags", "<tool_call>\n<function=run>\n<parameter=code>\nprint(",
     "call 0 run\nargs 0 {\"code\": \"print("},
    {"tags_no_call", "tags", "<tool_call>\nhello", "text <tool_call>\nhello"},
    {"seed", "seed",
     "I "
     "look.<seed:tool_call>\n<function=get_weather>\n<parameter=city>Bern</parameter>\n<parameter=days>5</parameter>\n"
     "</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=now>\n</function>\n</seed:tool_call>",
     "text I look.\ncall 0 get_weather\nargs 0 {\"city\": \"Bern\", \"days\": 5}\nend 0\ncall 1 now\nargs 1 {}\nend 1"},
    {"llama_whole", "llama", "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Bern\"}}",
     "call 0 get_weather\nargs 0 {\"city\": \"Bern\"}\nend 0"},
    {"llama_two", "llama",
     "{\"name\": \"now\", \"parameters\": {}}; {\"name\": \"run\", \"parameters\": {\"code\": \"2\"}}",
     "call 0 now\nargs 0 {}\nend 0\ncall 1 run\nargs 1 {\"code\": \"2\"}\nend 1"},
    {"llama_tag", "llama", "<|python_tag|>{\"name\": \"now\", \"parameters\": {}}", "call 0 now\nargs 0 {}\nend 0"},
    {"llama_other_json", "llama", "{\"name\": \"Bern\", \"size\": 3}", "text {\"name\": \"Bern\", \"size\": 3}"},
    {"llama_text", "llama", "A set is {\"name\": \"now\"}.", "text A set is {\"name\": \"now\"}."},
    {"mistral_list", "mistral",
     "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}, \"id\": \"abcdefghi\"}, {\"name\": \"run\", \"arguments\": "
     "{\"code\": \"]\"}}]",
     "call 0 now\nargs 0 {}\nend 0\ncall 1 run\nargs 1 {\"code\": \"]\"}\nend 1"},
    {"mistral_named", "mistral_args",
     "Sure.[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]run[CALL_ID]abcdefghi[ARGS]{\"code\": \"[TOOL_CALLS]\"}",
     "text Sure.\ncall 0 now\nargs 0 {}\nend 0\ncall 1 run\nargs 1 {\"code\": \"[TOOL_CALLS]\"}\nend 1"},
    {"gemma", "gemma",
     "<|tool_call>call:get_weather{city:<|\"|>Le \"Locle\", {x}<|\"|>,days:3,o:{a:true,b:[1,<|\"|>c<|\"|>,null]}}"
     "<tool_call|><|tool_call>call:now{}<tool_call|>",
     "call 0 get_weather\nargs 0 {\"city\": \"Le \\\"Locle\\\", {x}\", \"days\": 3, \"o\": {\"a\": true, \"b\": [1, "
     "\"c\", null]}}\nend 0\ncall 1 now\nargs 1 {}\nend 1"},
    {"functiongemma", "functiongemma", "<start_function_call>call:run{code:<escape>a}b<escape>}<end_function_call>",
     "call 0 run\nargs 0 {\"code\": \"a}b\"}\nend 0"},
    {"granite", "granite", "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]", "call 0 now\nargs 0 {}\nend 0"},
    {"phi", "phi", "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]<|/tool_call|>",
     "call 0 now\nargs 0 {}\nend 0"},
    {"cohere", "cohere",
     "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"now\", \"parameters\": {}},\n    "
     "{\"tool_call_id\": \"1\", \"tool_name\": \"run\", \"parameters\": {\"code\": \"]\"}}\n]<|END_ACTION|>",
     "call 0 now\nargs 0 {}\nend 0\ncall 1 run\nargs 1 {\"code\": \"]\"}\nend 1"},
    {"nemotron", "nemotron",
     "Yes.\n<TOOLCALL>[{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"run\", \"arguments\": {\"code\": "
     "\"]</TOOLCALL>\"}}]</TOOLCALL>\nDone.",
     "text Yes.\ncall 0 now\nargs 0 {}\nend 0\ncall 1 run\nargs 1 {\"code\": \"]</TOOLCALL>\"}\nend 1\ntext \nDone."},
    {"hunyuan", "hunyuan",
     "Yes.\n<tool_calls>[{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"run\", \"arguments\": {\"code\": "
     "\"]</tool_calls>\"}}]</tool_calls>\nDone.",
     "text Yes.\ncall 0 now\nargs 0 {}\nend 0\ncall 1 run\nargs 1 {\"code\": \"]</tool_calls>\"}\nend 1\ntext \nDone."},
    {"glm45", "glm45",
     "I look.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>New\nYork</arg_value>\n"
     "<arg_key>days</arg_key>\n<arg_value>5</arg_value>\n<arg_key>tags</arg_key>\n<arg_value>[\"a\"]</arg_value>\n"
     "<arg_key>zip</arg_key>\n<arg_value>02134</arg_value>\n</tool_call>\n<tool_call>now\n</tool_call>\nDone.",
     "text I look.\ncall 0 get_weather\nargs 0 {\"city\": \"New\\nYork\", \"days\": 5, \"tags\": [\"a\"], \"zip\": "
     "\"02134\"}\nend 0\ncall 1 now\nargs 1 {}\nend 1\ntext \nDone."},
    {"glm47", "glm47",
     "<think>hm</think><tool_call>run<arg_key>code</arg_key><arg_value>\n</arg_value> <tool_call>\n</arg_value>"
     "</tool_call><tool_call>now</tool_call>",
     "think hm\ncall 0 run\nargs 0 {\"code\": \"\\n</arg_value> <tool_call>\\n\"}\nend 0\ncall 1 now\nargs 1 "
     "{}\nend 1"},
    {"glm47_cut", "glm47", "<tool_call>run<arg_key>code</arg_key><arg_value>pri",
     "call 0 run\nargs 0 {\"code\": \"pri"},
    {"glm47_no_call", "glm47", "<tool_call>not a call</tool_call>", "text <tool_call>not a call</tool_call>"},
    {"glm47_json", "glm47", "<tool_call>{\"name\": \"now\"}</tool_call>",
     "text <tool_call>{\"name\": \"now\"}</tool_call>"},
    {"glm4", "glm4", "get_weather\n{\"city\": \"Bern\",\n \"days\": 5}",
     "call 0 get_weather\nargs 0 {\"city\": \"Bern\",\n \"days\": 5}\nend 0"},
    {"glm4_two", "glm4", "\nnow \n{}\nrun\n{\"code\": \"}\"}\nDone.",
     "call 0 now\nargs 0 {}\nend 0\ncall 1 run\nargs 1 {\"code\": \"}\"}\nend 1\ntext \nDone."},
    {"glm4_behind_reasoning", "glm4", "<think>hm</think>\nnow\n{}", "think hm\ncall 0 now\nargs 0 {}\nend 0"},
    {"glm4_unknown_name", "glm4", "fly\n{\"to\": 1}", "text fly\n{\"to\": 1}"},
    {"glm4_text", "glm4", "run\nis a word of this text, as now is.\nnow\n{}",
     "text run\nis a word of this text, as now is.\nnow\n{}"},
    {"lfm2", "lfm2",
     "I look.<|tool_call_start|>[get_weather(city=\"Le \\\"Locle\\\"\", days=3, deep=True, note=None, tags=['a', (1, "
     "-2.5e3)], o={'k': {\"l\": []}, 2: False}), now()]<|tool_call_end|>Done.",
     "text I look.\ncall 0 get_weather\nargs 0 {\"city\": \"Le \\\"Locle\\\"\", \"days\": 3, \"deep\": true, \"note\": "
     "null, \"tags\": [\"a\", [1, -2.5e3]], \"o\": {\"k\": {\"l\": []}, \"2\": false}}\nend 0\ncall 1 now\nargs 1 "
     "{}\nend "
     "1\ntext Done."},
    {"lfm2_texts", "lfm2",
     "<|tool_call_start|>[run(code='a\\'b\\n\\t\\x41\\u00e9\\ud83d\\ude00\\101\\d\\/\"', zip = \"\", "
     "city=\"\"\"x\n\"y\" z\"\"\", note='a' \"b\",)]<|tool_call_end|>",
     "call 0 run\nargs 0 {\"code\": \"a'b\\n\\tAé😀A\\\\d/\\\"\", \"zip\": \"\", \"city\": \"x\\n\\\"y\\\" z\", "
     "\"note\": "
     "\"ab\"}\nend 0"},
    {"lfm2_words", "lfm2",
     "<|tool_call_start|>[get_weather(days=1_000, ratio=.5, deep=true, either=+7, tags=[5., 0x1F, None], zip=f(\"a, "
     ")\", "
     "2) + 1)]<|tool_call_end|>",
     "call 0 get_weather\nargs 0 {\"days\": 1000, \"ratio\": 0.5, \"deep\": true, \"either\": 7, \"tags\": [5.0, "
     "\"0x1F\", null], \"zip\": \"f(\\\"a, )\\\", 2) + 1\"}\nend 0"},
    {"lfm2_without_list", "lfm2", "<|tool_call_start|>now()\nrun(code='1')<|tool_call_end|>",
     "call 0 now\nargs 0 {}\nend 0\ncall 1 run\nargs 1 {\"code\": \"1\"}\nend 1"},
    {"lfm2_no_keyword", "lfm2", "<|tool_call_start|>[run(\"1\")]<|tool_call_end|>",
     "text <|tool_call_start|>[run(\"1\")]<|tool_call_end|>"},
    {"lfm2_cut", "lfm2", "<|tool_call_start|>[run(code=\"pri", "call 0 run\nargs 0 {\"code\": \"pri"},
    {"lfm2_no_call", "lfm2", "<|tool_call_start|>[1, 2]<|tool_call_end|>",
     "text <|tool_call_start|>[1, 2]<|tool_call_end|>"},
    {"deepseek_r1", "deepseek",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>run\n```json\n{\"code\": "
     "\"```\"}\n```<｜tool▁call▁end｜>\n"
     "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "call 0 run\nargs 0 {\"code\": \"```\"}\nend 0\ncall 1 now\nargs 1 {}\nend 1"},
    {"deepseek_v31", "deepseek",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "call 0 now\nargs 0 {}\nend 0"},
    {"dsml", "dsml",
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" "
     "string=\"true\">5</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">5</｜DSML｜parameter>\n"
     "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
     "call 0 get_weather\nargs 0 {\"city\": \"5\", \"days\": 5}\nend 0\ncall 1 now\nargs 1 {}\nend 1"},
};

class ParserCases : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Output, ParserCases, testing::ValuesIn(kCases), [](const auto& p) { return p.param.name; });

TEST_P(ParserCases, Whole) {
  for (const bool with_tokens : {false, true})
    EXPECT_EQ(Bench(GetParam().format, with_tokens).run(GetParam().text, 1 << 20), GetParam().wanted) << with_tokens;
}

TEST_P(ParserCases, ByteByByte) {
  for (const bool with_tokens : {false, true})
    EXPECT_EQ(Bench(GetParam().format, with_tokens).run(GetParam().text, 1), GetParam().wanted) << with_tokens;
}

TEST_P(ParserCases, ThousandSplits) {
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t most = 1 + random() % 12;
    ASSERT_EQ(Bench(GetParam().format, i % 2 == 1).run(GetParam().text, most, &random), GetParam().wanted) << i;
  }
}

// Wherever the text ends, what no call took is there as it was written, but for markers that mean nothing by themselves.
TEST_P(ParserCases, AnyEndLosesNothing) {
  const std::string_view text = GetParam().text;
  for (std::size_t n = 1; n < text.size(); ++n) {
    const auto shown = Bench(GetParam().format, false).run(text.substr(0, n), 3);
    if (!shown.contains("call 0 ") && !shown.starts_with("think ") && !text.starts_with("<think>")) {
      std::string wanted(text.substr(0, n));
      for (const auto dropped : find_call_format(GetParam().format)->dropped)
        if (const auto at = wanted.find(dropped); at != std::string::npos) wanted.erase(at, dropped.size());
      EXPECT_EQ(shown, wanted.empty() ? wanted : "text " + wanted);
    }
  }
}

TEST_P(ParserCases, ArgumentsAreJson) {
  Bench setup(GetParam().format, false);
  setup.run(GetParam().text, 1 << 20);
  std::map<std::uint32_t, std::string> arguments;
  std::set<std::uint32_t> ended;
  for (const auto& piece : setup.all) {
    if (piece.kind == PieceKind::kCallArguments) arguments[piece.call] += piece.text;
    if (piece.kind == PieceKind::kCallEnd) ended.insert(piece.call);
  }
  for (const auto call : ended) EXPECT_TRUE(nlohmann::json::parse(arguments[call]).is_object()) << arguments[call];
}

TEST(ToolTypes, NumbersKeepTheirTextWhateverTheirSize) {
  const ToolTypes types(*read_any_json(
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{
    "i":{"type":"integer"},"n":{"type":"number","maximum":1E400},"one":{"enum":[18446744073709551616,1.0]}}}}}])"));
  EXPECT_EQ(types.types_of("f", "one"), ToolTypes::kInteger | ToolTypes::kNumber);
  for (const auto& [parameter, value, wanted] : {std::tuple("i", "18446744073709551616", "18446744073709551616"),
                                                 {"i", "5.0", "5"},
                                                 {"i", "-0", "-0"},
                                                 {"i", "2.5", "\"2.5\""},
                                                 {"n", "0.10", "0.10"},
                                                 {"n", "1e5", "1e5"},
                                                 {"n", "1E400", "1E400"},
                                                 {"n", "123456789012345678901", "123456789012345678901"}})
    EXPECT_EQ(types.to_json("f", parameter, value), wanted) << parameter;
}

TEST(ToolTypes, AreWhatAllOfASchemaSays) {
  const ToolTypes types(*read_any_json(R"([{"type":"function","function":{"name":"f","parameters":{
    "$defs":{"a/b":{"type":"string"},"list":{"type":"array"},"loop":{"$ref":"#/$defs/loop"}},
    "properties":{
      "ref":{"$ref":"#/$defs/a~1b"},"either":{"anyOf":[{"$ref":"#/$defs/list"},{"type":"null"}]},
      "both":{"type":["string","number"],"allOf":[{"type":["integer","boolean"]}]},
      "enum":{"type":["string","integer"],"enum":["1",null]},"open":{"anyOf":[{"type":"string"},{}]},
      "gone":{"$ref":"#/$defs/none"},"loop":{"$ref":"#/$defs/loop"},"odd":{"type":"str"},
      "nullable":{"type":"string","nullable":true}},
    "additionalProperties":{"type":"boolean"}}}}])"));
  const std::pair<const char*, int> wanted[] = {{"ref", ToolTypes::kText},
                                                {"either", ToolTypes::kArray | ToolTypes::kNull},
                                                {"both", ToolTypes::kInteger},
                                                {"enum", ToolTypes::kText},
                                                {"open", 0},
                                                {"gone", 0},
                                                {"loop", 0},
                                                {"odd", 0},
                                                {"nullable", ToolTypes::kText | ToolTypes::kNull},
                                                {"other", ToolTypes::kBoolean}};
  for (const auto& [name, bits] : wanted) EXPECT_EQ(types.types_of("f", name), bits) << name;
  EXPECT_EQ(types.types_of("f", std::nullopt), ToolTypes::kBoolean);
  EXPECT_EQ(types.types_of("g", "ref"), 0);
}

TEST(Parser, WithoutToolsCallsAreText) {
  Bench setup("hermes", true, {.with_calls = false});
  const auto* text = "<tool_call>\n{\"name\": \"now\"}\n</tool_call>";
  EXPECT_EQ(setup.run(text, 5), "text \n{\"name\": \"now\"}\n</tool_call>");  // the special token is left out
  Bench shown("hermes", true, {.with_calls = false, .skips_special = false});
  EXPECT_EQ(shown.run(text, 5), std::string("text ") + text);
}

// Hunyuan writes <answer> around an answer, ERNIE 4.5 Thinking <response>, as text or as tokens.
TEST(Parser, MarksAroundAnAnswerAreNoPartOfIt) {
  const std::pair<const char*, const char*> cases[] = {
      {"<think>\nhm\n</think>\n\n\n<response>\n4\n\n5\n</response>\n", "think \nhm\n\ntext 4\n\n5"},
      {"<think>\n\n</think>\n<response>4</response>", "think \n\n\ntext 4"},
      {"<response>\n4", "text 4"},
      {"<response>\n</response>\n", ""},
      // What stands within the answer, or has no beginning, is text.
      {"<response>a </response> b <response>\nc\n</response>\n", "text a </response> b <response>\nc"},
      {"a <response>\nb\n</response>", "text a <response>\nb\n</response>"},
      {"</response> a", "text </response> a"},
      {"<response>a\n</respon", "text a\n</respon"},
      {"<response>a</response>\n</response>", "text a"},
  };
  for (const bool with_calls : {false, true})
    for (const bool with_tokens : {false, true})
      for (const std::size_t most : {1, 2, 3, 7, 1000})
        for (const auto& [text, wanted] : cases) {
          // Tokens that mean nothing at their place are kept here, as text is.
          Bench setup("hermes", with_tokens, {.with_calls = with_calls, .skips_special = false}, &answer_frames()[1]);
          EXPECT_EQ(setup.run(text, most), wanted) << text << " " << with_calls << with_tokens << most;
        }
}

TEST(Parser, CallsStandWithinAnAnswerOrBehindIt) {
  constexpr const char* kCalled = "call 0 now\nargs 0 {}\nend 0";
  for (const bool with_tokens : {false, true})
    for (const std::size_t most : {1, 5, 1000}) {
      Bench within("hunyuan", with_tokens, {.with_calls = true}, &answer_frames()[0]);
      EXPECT_EQ(
          within.run("<answer>\n<tool_calls>[{\"name\": \"now\", \"arguments\": {}}]</tool_calls>\n</answer>\n", most),
          kCalled);
      Bench behind("hermes", with_tokens, {.with_calls = true}, &answer_frames()[1]);
      EXPECT_EQ(behind.run("<response>\nI look.\n</response>\n\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n"
                           "</tool_call>\n",
                           most),
                std::string("text I look.\n") + kCalled);
    }
}

// A mark that is a special token of its own is no marker, and the opening that has it would be lost without it.
TEST(Parser, ASpecialTokenWithinAnOpeningIsRead) {
  constexpr std::string_view kMark = "｜DSML｜";
  constexpr std::int32_t kId = 7;
  const auto find = [&](std::string_view text) { return text == kMark ? std::optional(kId) : std::nullopt; };
  const Formats formats(find_call_format("dsml"), &reasoning_formats()[0], find);
  Parser parser(formats, {.with_calls = true, .tools = std::make_shared<ToolTypes>(*read_any_json(kTools))});
  std::vector<OutputPiece> all;
  const auto add = [&](std::vector<OutputPiece> pieces) { std::ranges::move(pieces, std::back_inserter(all)); };
  std::string_view text =
      "Yes.<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>";
  for (auto at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark)) {
    add(parser.push(0, text.substr(0, at), 0, false));
    add(parser.push(kId, kMark, kMark.size(), true));
    text.remove_prefix(at + kMark.size());
  }
  add(parser.push(0, text, 0, false));
  add(parser.finish());
  EXPECT_EQ(show(all), "text Yes.\ncall 0 now\nargs 0 {}\nend 0");
}

TEST(Parser, AMarkerInOpenReasoningEndsItAsATokenAndNotAsText) {
  const auto* text = "hm <tool_call>{\"name\": \"now\"}</tool_call>";
  EXPECT_EQ(Bench("hermes", true, {.with_calls = true, .in_reasoning = true}).run(text, 4),
            "think hm \ncall 0 now\nargs 0 {}\nend 0");
  EXPECT_EQ(Bench("hermes", false, {.with_calls = true, .in_reasoning = true}).run(text, 4),
            std::string("think ") + text);
}

TEST(Parser, ReasoningClosesTextAndMarkerInOnePiece) {
  Bench setup("hermes", false, {.with_calls = true, .in_reasoning = true});
  EXPECT_EQ(setup.run("a</think>\n\nb <tool_call>{\"name\": \"now\"}</tool_call>", 1 << 20),
            "think a\ntext b\ncall 0 now\nargs 0 {}\nend 0");
}

TEST(Parser, ReasoningIsSplitTheSameWayInAnyPieces) {
  struct Split {
    const char *text, *wanted;
    bool begins_inside;
  };
  const Split cases[] = {{"<think>a b</think>\n\nc", "think a b\ntext c", false},
                         {" \n<think>a</think>", "think a", false},
                         {"a</think> b", "think a\ntext b", true},
                         {"no tags < here </think>", "text no tags < here </think>", false},
                         {"<think>never ends </thi", "think never ends </thi", false},
                         {"<thin", "text <thin", false},
                         {"  ", "text   ", false},
                         {"", "", false},
                         {"</think>x", "text x", true}};
  for (const auto& c : cases)
    for (const std::size_t most : {1u, 2u, 100u}) {
      Bench bench("hermes", false, {.with_calls = false, .in_reasoning = c.begins_inside});
      EXPECT_EQ(bench.run(c.text, most), c.wanted) << most;
    }
}

TEST(Parser, ReasoningOpensBeforeAllElse) {
  EXPECT_EQ(Bench("hermes", false).run("  <think>a</think> b <think>c", 2), "think a\ntext b <think>c");
  EXPECT_EQ(Bench("hermes", false).run("x <think>a</think>", 2), "text x <think>a</think>");
}

}  // namespace
}  // namespace zinc_rt::output

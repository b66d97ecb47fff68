// What probing finds of models' own templates, and what history becomes in them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json_number.h"
#include "base/strict_json.h"
#include "engine/chat_history.h"
#include "jinja/chat_template.h"
#include "output/format.h"
#include "tests_cpp/base/fixtures.h"

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;

Result<std::string> render(const ChatTemplate& chat, const std::string& messages, const std::string& tools) {
  Json context{{"messages", Json::parse(messages)}, {"add_generation_prompt", true}};
  context["tools"] = tools.empty() ? Json() : Json::parse(tools);
  context["bos_token"] = "<s>";
  context["eos_token"] = "</s>";
  return chat.render(std::move(context), {});
}

std::string traits_of(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  const auto chat = ChatTemplate::parse(text.str());
  if (!chat) return chat.error().message;
  const auto t = output::probe_template(
      [&](const std::string& messages, const std::string& tools) { return render(*chat, messages, tools); });
  return fmt::format("{} {}{}{}{}", t.calls == nullptr ? "none" : t.calls->name, t.reasoning->name,
                     t.shows_tools ? "" : ", shows no tools", t.writes_calls ? "" : ", drops calls",
                     t.takes_objects ? "" : ", wants text");
}

TEST(TemplateProbe, FindsTheFormatOfEachModel) {
  ZRT_NEED_SHARED_FIXTURES();
  const std::map<std::string, std::string> wanted = {
      {"mistralai-Mistral-Nemo-Instruct-2407", "mistral think"},
      {"meta-llama-Llama-3.1-8B-Instruct", "llama think"},
      {"HuggingFaceTB-SmolLM3-3B", "none think, shows no tools, drops calls"},
      {"google-gemma-4-31B-it", "gemma gemma"},
      {"Qwen3.5-4B", "tags think"},
      {"Qwen-Qwen2.5-7B-Instruct", "hermes think"},
      {"Qwen-Qwen3-0.6B", "hermes think"},
      {"microsoft-Phi-3.5-mini-instruct", "none think, shows no tools, drops calls"},
  };
  for (const auto& [name, traits] : wanted)
    EXPECT_EQ(traits_of(shared_fixtures() / "templates" / (name + ".jinja")), traits) << name;
}

TEST(TemplateProbe, OfTemplatesOfTheProject) {
  const std::filesystem::path dir = ZRT_SOURCE_DIR "/tests_cpp/jinja/data/templates";
  EXPECT_EQ(traits_of(dir / "alternating.jinja"), "none think, shows no tools, drops calls");
  EXPECT_EQ(traits_of(dir / "signatures.jinja"), "none think");
}

output::TemplateTraits traits(const char* format, bool shows, bool writes, bool objects = true, bool texts = false) {
  return {output::find_call_format(format), &output::reasoning_formats()[0], shows, writes, objects, texts};
}

constexpr const char* kHistory = R"([{"role":"user","content":"q"},
  {"role":"assistant","content":"So.","tool_calls":[
    {"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}},
    {"id":"call_2","type":"function","function":{"name":"g","arguments":"no JSON"}},
    {"id":"call_3","type":"function","function":{"name":"h","arguments":""}}]},
  {"role":"tool","tool_call_id":"call_1","content":"r"}])";

TEST(ChatHistory, ArgumentsBecomeWhatTheTemplateTakes) {
  auto objects = Json::parse(kHistory), texts = objects;
  fit_history(objects, nullptr, traits("hermes", true, true), {});
  EXPECT_EQ(objects[1]["tool_calls"][0]["function"]["arguments"].dump(), R"({"a":1})");
  EXPECT_EQ(objects[1]["tool_calls"][1]["function"]["arguments"].dump(), R"({"text":"no JSON"})");
  EXPECT_EQ(objects[1]["tool_calls"][2]["function"]["arguments"].dump(), "{}");
  fit_history(texts, nullptr, traits("hermes", true, true, false), {});
  EXPECT_EQ(texts[1]["tool_calls"][0]["function"]["arguments"], R"({"a": 1})");
  EXPECT_EQ(texts[1]["tool_calls"][1]["function"]["arguments"], R"({"text": "no JSON"})");
}

TEST(ChatHistory, TheTextOfArgumentsStaysWhereTheTemplatePrintsIt) {
  for (const char* text :
       {R"({"b":1e5,"a": [ 0.10 ]})", "{}", " {\n  \"x\": 18446744073709551616\n}", R"({"a":1,"a":2})"}) {
    Json history = Json::parse(kHistory);
    history[1]["tool_calls"][0]["function"]["arguments"] = text;
    auto dropped = history, both = history;
    fit_history(both, nullptr, traits("hermes", true, true, true, true), {});
    EXPECT_EQ(both[1]["tool_calls"][0]["function"]["arguments"], text);
    EXPECT_TRUE(both[1]["tool_calls"][1]["function"]["arguments"].is_object());
    fit_history(history, nullptr, traits("hermes", true, true, false, true), {});
    EXPECT_EQ(history[1]["tool_calls"][0]["function"]["arguments"], text);
    fit_history(dropped, nullptr, traits("hermes", true, false), {});
    EXPECT_THAT(dropped[1]["content"].get<std::string>(), testing::HasSubstr(text));
  }
}

TEST(ChatHistory, ObjectsKeepTheirNumbersAndTheOrderOfTheirKeys) {
  auto objects = *read_any_json(
      R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"b":0.10,"a":18446744073709551616}}}]}])");
  auto texts = objects;
  fit_history(objects, nullptr, traits("hermes", true, true), {});
  EXPECT_EQ(dump_json(objects[0]["tool_calls"][0]["function"]["arguments"]), R"({"b":0.10,"a":18446744073709551616})");
  fit_history(texts, nullptr, traits("hermes", true, true, false), {});
  EXPECT_EQ(texts[0]["tool_calls"][0]["function"]["arguments"], R"({"b": 0.10, "a": 18446744073709551616})");
}

TEST(TemplateProbe, TellsWhetherTextsOfArgumentsArePrinted) {
  const auto prints = [](const std::string& call) {
    const auto parsed =
        ChatTemplate::parse("{{ tools }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}" +
                            call + "{% endfor %}{% endfor %}");
    const auto found = output::probe_template([&](const std::string& messages, const std::string& tools) {
      Json context{{"messages", Json::parse(messages)}, {"tools", Json::parse(tools, nullptr, false)}};
      if (tools.empty()) context.erase("tools");
      return parsed->render(context);
    });
    return std::pair(found.prints_texts, found.takes_objects);
  };
  EXPECT_EQ(prints("{{ c.function.arguments }}"), std::pair(true, false));  // of an object Python's repr
  EXPECT_EQ(prints("{{ c.function.arguments | tojson }}"), std::pair(false, true));
  EXPECT_EQ(prints("{% if c.function.arguments is string %}{{ c.function.arguments }}{% else %}"
                   "{{ c.function.arguments | tojson }}{% endif %}"),
            std::pair(true, true));
  EXPECT_EQ(prints("{{ 'x' ~ c.function.arguments.strip() }}"), std::pair(true, false));
  EXPECT_EQ(prints("{% for k, v in c.function.arguments | items %}{{ k }}={{ v }}{% endfor %}"),
            std::pair(false, true));
}

// What is found of a template that writes messages with `text` and calls with `call`.
output::TemplateTraits traits_with(const std::string& text, const std::string& call, const std::string& tools = "") {
  const auto parsed = ChatTemplate::parse("{{ tools or '' }}" + tools + "{% for m in messages %}" + text +
                                          "{% if m.tool_calls %}" + call + "{% endif %}{% endfor %}");
  return output::probe_template([&](const std::string& messages, const std::string& with_tools) {
    Json context{{"messages", Json::parse(messages)}};
    if (!with_tools.empty()) context["tools"] = Json::parse(with_tools);
    return parsed->render(context);
  });
}

TEST(TemplateProbe, TellsWhetherAMessageHasOneCallAlone) {
  const std::string one = "{{ m.tool_calls[0].function.arguments | tojson }}";
  EXPECT_TRUE(traits_with("{{ m.content }}", one).has_one_call);
  EXPECT_TRUE(
      traits_with("{{ m.content }}", "{% if m.tool_calls | length != 1 %}{{ raise_exception('one') }}{% endif %}" + one)
          .has_one_call);
  EXPECT_FALSE(
      traits_with("{{ m.content }}", "{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}")
          .has_one_call);
  EXPECT_FALSE(traits_with("{{ m.content }}", "").has_one_call);
}

TEST(TemplateProbe, TellsWhichMarksStandAroundAnswers) {
  const auto frame_of = [](const std::string& answer, const std::string& call = "") {
    const auto* frame =
        traits_with("{% if m.role == 'assistant' %}" + answer + "{% else %}{{ m.content }}{% endif %}", call).frame;
    return frame == nullptr ? "none" : frame->open;
  };
  EXPECT_EQ(frame_of("{{ m.content }}"), "none");
  EXPECT_EQ(frame_of("<response>\n{{ m.content }}\n</response>\n"), "<response>");
  EXPECT_EQ(frame_of("{% set c = m.content %}{% if '<answer>' in c %}{{ c.split('<answer>')[1].split('</answer>')[0] }}"
                     "{% else %}{{ c }}{% endif %}"),
            "<answer>");
  EXPECT_EQ(frame_of("{{ m.content }}", R"(<tool_calls>[{% for c in m.tool_calls %}{{ '{"name": "' ~ c.function.name)"
                                        R"( ~ '", "arguments": ' }}{{ c.function.arguments | tojson }}}{% endfor %}])"
                                        "</tool_calls>"),
            "<answer>");
}

// The form of GLM-4-0414's template.
constexpr const char* kWithMetadata =
    "{% if m.role == 'observation' %}<|observation|>{{ m.content }}"
    "{% elif m.role != 'tool' %}<|{{ m.role }}|>{{ m.metadata or '' }}\n{{ m.content }}{% endif %}";

TEST(TemplateProbe, TellsWhetherMetadataMakesACall) {
  const std::string shown = "{% if tools %}在调用上述函数时，请使用 Json 格式表示调用的参数。{% endif %}";
  const auto found = traits_with(kWithMetadata, "", shown);
  EXPECT_TRUE(found.has_metadata && !found.writes_calls);
  EXPECT_EQ(found.calls, output::find_call_format("glm4"));
  EXPECT_FALSE(traits_with("{{ m.content }}", "", shown).has_metadata);
}

TEST(ChatHistory, CallsBecomeMessagesOfTheirOwnWhereATemplateWritesOne) {
  auto one = traits("harmony", true, true);
  one.has_one_call = true;
  const auto call = [](const char* id) { return fmt::format(R"({{"id":"{}","function":{{"name":"{}"}}}})", id, id); };
  const auto text = fmt::format(
      R"([{{"role":"user","content":"q"}},
          {{"role":"assistant","content":"So.","reasoning_content":"hm","tool_calls":[{},{},{},{}]}},
          {{"role":"tool","tool_call_id":"c","content":"of c"}},{{"role":"tool","tool_call_id":"a","content":"of a"}},
          {{"role":"tool","content":"of b"}},{{"role":"tool","tool_call_id":"z","content":"of none"}},
          {{"role":"user","content":"and?"}}])",
      call("a"), call("b"), call("c"), call("d"));
  auto history = Json::parse(text);
  ASSERT_TRUE(fit_history(history, nullptr, one, {}));
  std::string shown;
  for (const auto& m : history) {
    shown += m["role"].get<std::string>() + " " + m["content"].get<std::string>();
    for (const auto& c : m.value("tool_calls", Json::array())) shown += " " + c["id"].get<std::string>();
    shown += m.contains("reasoning_content") ? " thought\n" : "\n";
  }
  EXPECT_EQ(shown,
            "user q\nassistant So. a thought\ntool of a\nassistant  b\ntool of b\nassistant  c\ntool of c\n"
            "assistant  d\ntool of none\nuser and?\n");
  auto whole = Json::parse(text);
  ASSERT_TRUE(fit_history(whole, nullptr, traits("hermes", true, true), {}));
  EXPECT_EQ(whole.size(), 7u);
}

TEST(ChatHistory, CallsBecomeMetadata) {
  auto glm4 = traits("glm4", true, false);
  glm4.has_metadata = true;
  auto history = Json::parse(kHistory);
  ASSERT_TRUE(fit_history(history, nullptr, glm4, {}));
  EXPECT_EQ(history, Json::parse(R"([{"role":"user","content":"q"},{"role":"assistant","content":"So."},
    {"role":"assistant","metadata":"f","content":"{\"a\": 1}"},{"role":"observation","tool_call_id":"call_1","content":"r"},
    {"role":"assistant","metadata":"g","content":"{\"text\": \"no JSON\"}"},
    {"role":"assistant","metadata":"h","content":"{}"}])"));
}

// The arguments are written in each format's own syntax.
TEST(ChatHistory, CallsThatATemplateDropsAreTextInEachFormat) {
  const std::pair<const char*, const char*> wanted[] = {
      {"lfm2", "<|tool_call_start|>[f(t=\"a\\n\", n=0.10, o={\"l\": [True, None]})]<|tool_call_end|>"},
      {"glm45",
       "<tool_call>f\n<arg_key>t</arg_key>\n<arg_value>a\n</arg_value>\n<arg_key>n</arg_key>\n<arg_value>0.10"
       "</arg_value>\n<arg_key>o</arg_key>\n<arg_value>{\"l\":[true,null]}</arg_value>\n</tool_call>"},
      {"glm47",
       "<tool_call>f<arg_key>t</arg_key><arg_value>a\n</arg_value><arg_key>n</arg_key><arg_value>0.10</arg_value>"
       "<arg_key>o</arg_key><arg_value>{\"l\":[true,null]}</arg_value></tool_call>"},
      {"tags",
       "<tool_call>\n<function=f>\n<parameter=t>\na\n\n</parameter>\n<parameter=n>\n0.10\n</parameter>\n"
       "<parameter=o>\n{\"l\":[true,null]}\n</parameter>\n</function>\n</tool_call>"},
      {"gemma", "<|tool_call>call:f{t:<|\"|>a\n<|\"|>,n:0.10,o:{l:[true,null]}}<tool_call|>"},
      {"dsml",
       "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"t\" string=\"true\">a\n"
       "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" string=\"false\">0.10</｜DSML｜parameter>\n"
       "<｜DSML｜parameter name=\"o\" string=\"false\">{\"l\":[true,null]}</｜DSML｜parameter>\n</｜DSML｜invoke>\n"
       "</｜DSML｜function_calls>"},
      {"nemotron",
       "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {\"t\": \"a\\n\", \"n\": 0.10, \"o\": {\"l\": [true, "
       "null]}}}]</TOOLCALL>"},
      {"hunyuan",
       "<tool_calls>[{\"name\": \"f\", \"arguments\": {\"t\": \"a\\n\", \"n\": 0.10, \"o\": {\"l\": [true, "
       "null]}}}]</tool_calls>"},
      {"glm4", "f\n{\"t\": \"a\\n\", \"n\": 0.10, \"o\": {\"l\": [true, null]}}"}};
  for (const auto& [name, text] : wanted) {
    auto history = *read_any_json(
        R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"t":"a\n","n":0.10,"o":{"l":[true,null]}}}}]}])");
    ASSERT_TRUE(fit_history(history, nullptr, traits(name, true, false), {}));
    EXPECT_EQ(history[0]["content"], text) << name;
  }
}

TEST(TemplateProbe, AsksNoMoreOfATemplateThatPassesALimitAtOnce) {
  const auto n_tries = [](StatusCode first, StatusCode later) {
    int n = 0;
    output::probe_template([&](const std::string&, const std::string&) -> Result<std::string> {
      return fail(++n == 1 ? first : later, "no text");
    });
    return n;
  };
  EXPECT_EQ(n_tries(StatusCode::kExhausted, StatusCode::kExhausted), 1);
  EXPECT_GT(n_tries(StatusCode::kInvalidArgument, StatusCode::kExhausted), 10);
}

TEST(ChatHistory, IdsBecomeThoseThatMistralDemands) {
  auto history = Json::parse(kHistory);
  fit_history(history, nullptr, traits("mistral", true, true), {});
  const auto id = history[1]["tool_calls"][0]["id"].get<std::string>();
  EXPECT_EQ(id.size(), 9u);
  EXPECT_EQ(history[2]["tool_call_id"], id);
  EXPECT_NE(history[1]["tool_calls"][1]["id"], id);
}

TEST(ChatHistory, CallsThatATemplateDropsAreText) {
  auto history = Json::parse(kHistory);
  fit_history(history, nullptr, traits("hermes", true, false), {});
  EXPECT_FALSE(history[1].contains("tool_calls"));
  EXPECT_EQ(history[1]["content"],
            "So.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\n<tool_call>\n{\"name\": "
            "\"g\", \"arguments\": {\"text\": \"no JSON\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"h\", "
            "\"arguments\": {}}\n</tool_call>");
}

TEST(ChatHistory, OwnToolsAreShownInTheSystemMessage) {
  auto history = Json::parse(kHistory);
  const auto tools = Json::parse(R"([{"type":"function","function":{"name":"f"}}])");
  fit_history(history, &tools, traits("none", false, false), kOwnTools);
  EXPECT_EQ(history[0]["role"], "system");
  EXPECT_THAT(history[0]["content"].get<std::string>(),
              testing::HasSubstr(R"({"type":"function","function":{"name":"f"}})"));
  EXPECT_EQ(history[3]["role"], "user");
  EXPECT_EQ(history[3]["content"], "<tool_response>\nr\n</tool_response>");
  // A model that shows tools itself keeps its own way.
  auto shown = Json::parse(kHistory);
  fit_history(shown, &tools, traits("hermes", true, true), kOwnTools);
  EXPECT_EQ(shown[0]["role"], "user");
}

TEST(ChatHistory, WhatHasNotTheFormOfTheApiStays) {
  for (const char* text : {"[]", "[1]", R"([{"tool_calls":1}])", R"([{"tool_calls":[1,{"function":2}]}])",
                           R"([{"role":5,"content":[]}])"}) {
    auto history = Json::parse(text);
    fit_history(history, nullptr, traits("mistral", true, false), {});
    EXPECT_EQ(history, Json::parse(text)) << text;
  }
}

}  // namespace
}  // namespace zinc_rt

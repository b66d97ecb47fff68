// In which form templates take the content of messages, and that no text is lost on its way into one.
#include "output/content_form.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/chat_history.h"
#include "jinja/chat_template.h"

namespace zinc_rt {
namespace {

using Ordered = nlohmann::ordered_json;
using output::ContentForm;
using testing::HasSubstr;

// A template, and the form that it takes for system, user, assistant and tool: t(ext), p(arts), 1 (part), b(oth).
struct Row {
  const char* name;
  std::string source;
  const char* forms;
  const char* shown = "suat";  // the roles that it writes, by their first letters
};

// Writes each message by `content`, in which `m` is the message.
std::string each(std::string_view content) {
  return fmt::format("{{% for m in messages %}}<{{{{ m.role }}}}>{}{{% endfor %}}", content);
}

constexpr const char* kSelected =
    "{% for p in m['content'] | selectattr('type', 'equalto', 'text') %}{{ p['text'] }}{% endfor %}";
constexpr const char* kLines =
    "{% if m['content'][0]['type'] == 'image' %}:{% else %}: {% endif %}"
    "{% for p in m['content'] %}{% if p['type'] == 'text' %}{{ p['text'] }}{% endif %}{% endfor %}";
constexpr const char* kEither =
    "{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}";

std::vector<Row> rows() {
  return {
      {"text", each("{{ m.content }}"), "tttt"},
      {"text, joined", each("{{ m['content'] + '!' }}"), "tttt"},
      {"text, trimmed", each("{{ m.content | trim }}"), "tttt"},
      {"text, others dropped", each("{% if m.content is string %}{{ m.content }}{% endif %}"), "tttt"},
      {"text, lists as JSON",
       each("{% if m.content is string %}{{ m.content }}{% else %}{{ m.content | tojson }}{% endif %}"), "tttt"},
      {"selected parts", each(kSelected), "pppp"},
      {"parts, whose first is asked for its type", each(kLines), "pppp"},
      {"parts, mapped", each("{{ m.content | map(attribute='text') | join(' ') }}"), "pppp"},
      {"first part", each("{{ m.content[0].text }}"), "1111"},
      {"both", each(kEither), "bbbb"},
      {"text, or else the first part",
       each("{% if m.content is string %}{{ m.content }}{% else %}{{ m.content[0]['text'] }}{% endif %}"), "tttt"},
      {"system as text, the rest as either",
       each(std::string("{% if m.role == 'system' %}{{ m.content | trim }}{% else %}") + kEither + "{% endif %}"),
       "tbbb"},
      {"tool results as text, the rest as parts",
       each(std::string("{% if m.role == 'tool' %}{{ m.content + '.' }}{% else %}") + kSelected + "{% endif %}"),
       "pppt"},
      {"first part of the system's, parts",
       each(std::string("{% if m.role == 'system' %}{{ m.content[0]['text'] }}{% else %}") + kLines + "{% endif %}"),
       "1ppp"},
      {"no system, no tools",
       each(std::string("{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('no') }}{% endif %}") +
            kSelected),
       "pppp", "ua"},
      {"arguments as text alone",
       each(std::string("{% for c in m.tool_calls %}{{ '(' + c.function.arguments + ')' }}{% endfor %}") + kSelected),
       "pppp"},
      {"nothing of the messages", "hello", "tttt", ""},
      {"one that fails", "{{ raise_exception('no') }}", "tttt", ""},
  };
}

struct Tried {
  ChatTemplate chat;
  output::TemplateTraits traits;
};

Tried tried(const std::string& source) {
  auto chat = ChatTemplate::parse(source);
  EXPECT_TRUE(chat) << source;
  const auto render = [&](const std::string& messages, const std::string& tools) -> Result<std::string> {
    Ordered context{{"messages", Ordered::parse(messages)},
                    {"tools", tools.empty() ? Ordered() : Ordered::parse(tools)}};
    return chat->render(std::move(context), {});
  };
  auto traits = output::probe_template(render);
  return {std::move(*chat), traits};
}

std::string forms_of(const Tried& one) {
  std::string out;
  for (const ContentForm form : one.traits.content) out += "tp1b"[static_cast<int>(form)];
  return out;
}

TEST(ContentForm, IsWhatTheTemplateTakesByRole) {
  for (const Row& row : rows()) EXPECT_EQ(forms_of(tried(row.source)), row.forms) << row.name;
}

// Each role's content as a text, as one part and as two: all of it is in the prompt, and nothing of a list's notation.
TEST(ContentForm, NoTextIsLost) {
  const Ordered parts = Ordered::parse(R"([{"type":"text","text":"alpha"},{"type":"text","text":"omega"}])");
  const std::pair<Ordered, std::vector<std::string>> contents[] = {
      {"alpha", {"alpha"}}, {Ordered::array({parts[0]}), {"alpha"}}, {parts, {"alpha", "omega"}}};
  for (const Row& row : rows()) {
    const Tried one = tried(row.source);
    for (const auto role : output::kRoleNames) {
      if (!std::string_view(row.shown).contains(role[0])) continue;
      for (const auto& [content, wanted] : contents) {
        Ordered messages = Ordered::array({Ordered{{"role", role}, {"content", content}}});
        ASSERT_TRUE(fit_history(messages, nullptr, one.traits, {}));
        const auto text = one.chat.render(Ordered{{"messages", messages}}, {});
        ASSERT_TRUE(text) << row.name << ": " << text.error().message;
        for (const auto& piece : wanted) EXPECT_THAT(*text, HasSubstr(piece)) << row.name << ", " << role;
        EXPECT_FALSE(text->contains("'type'") || text->contains("\"type\""))
            << row.name << ", " << role << ": " << *text;
      }
    }
  }
}

// A call without text has an empty content, or none; a template that asks for the first part must not fail on it.
TEST(ContentForm, ACallWithoutTextIsAnEmptyPart) {
  const Tried one = tried(each(kLines));
  for (const char* content : {R"("content":"",)", R"("content":null,)", R"("content":[],)", ""}) {
    auto messages = Ordered::parse(fmt::format(
        R"([{{"role":"assistant",{}"tool_calls":[{{"function":{{"name":"f","arguments":{{}}}}}}]}}])", content));
    ASSERT_TRUE(fit_history(messages, nullptr, one.traits, {}));
    EXPECT_TRUE(one.chat.render(Ordered{{"messages", messages}}, {})) << content;
  }
}

// What a template does with tools is learned of one that takes parts alone, too.
TEST(ContentForm, ToolsOfATemplateThatTakesPartsAreFound) {
  const Tried one =
      tried("{% if tools %}{{ tools | tojson }}{% endif %}" +
            each(std::string(kLines) +
                 "{% for c in m.tool_calls %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"));
  EXPECT_TRUE(one.traits.shows_tools);
  EXPECT_TRUE(one.traits.writes_calls);
  ASSERT_NE(one.traits.calls, nullptr);
  EXPECT_EQ(one.traits.calls->name, "hermes");
}

TEST(ContentForm, PartsThatAreNoTextAreRefusedByPlace) {
  for (const char* part : {R"({"type":"image_url","image_url":{"url":"x"}})", R"({"type":"text"})",
                           R"({"type":"text","text":5})", R"("text")", "1"}) {
    auto messages = Ordered::parse(fmt::format(
        R"([{{"role":"user","content":"a"}},{{"role":"user","content":[{{"type":"text","text":"b"}},{}]}}])", part));
    const auto fitted = fit_history(messages, nullptr, {}, {});
    ASSERT_FALSE(fitted) << part;
    EXPECT_THAT(fitted.error().message, HasSubstr("messages[1].content[1]")) << part;
  }
}

// Calls that are written into a message's text, and the tools in the system message, keep what stood there as parts.
TEST(ContentForm, TextThatTheEngineAddsStandsBehindParts) {
  auto messages = Ordered::parse(R"([{"role":"system","content":[{"type":"text","text":"rules"}]},
    {"role":"assistant","content":[{"type":"text","text":"said"}],
     "tool_calls":[{"type":"function","function":{"name":"f","arguments":"{}"}}]},
    {"role":"tool","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}])");
  const auto tools = Ordered::parse(R"([{"type":"function","function":{"name":"f"}}])");
  const Tried one = tried(each(kSelected));
  ASSERT_FALSE(one.traits.shows_tools);
  ASSERT_TRUE(fit_history(messages, &tools, one.traits, kOwnTools));
  const auto text = one.chat.render(Ordered{{"messages", messages}}, {});
  ASSERT_TRUE(text) << text.error().message;
  for (const char* piece : {"rules\n\n# Tools", "said\n<tool_call>", "<tool_response>\none\ntwo\n</tool_response>"})
    EXPECT_THAT(*text, HasSubstr(piece));
}

TEST(ContentForm, TheEndOfAContent) {
  auto text = Ordered("a"), parts = Ordered::parse(R"([{"type":"text","text":"b"},{"type":"text","text":"c"}])");
  *output::end_of_content(text) += "!";
  *output::end_of_content(parts) += "!";
  EXPECT_EQ(text, "a!");
  EXPECT_EQ(output::text_of_content(parts), "b\nc!");
  for (const char* none : {"[]", "null", "{}", "[1]"}) {
    auto content = Ordered::parse(none);
    EXPECT_EQ(output::end_of_content(content), nullptr) << none;
    EXPECT_EQ(output::text_of_content(content), "") << none;
  }
}

}  // namespace
}  // namespace zinc_rt

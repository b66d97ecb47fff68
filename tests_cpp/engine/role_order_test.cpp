// Which order of roles templates accept, and that no message is lost on its way into one.
#include "output/role_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string_view>

#include "engine/chat_history.h"
#include "jinja/chat_template.h"

namespace zinc_rt {
namespace {

using OrderJson = nlohmann::ordered_json;

constexpr std::string_view kCalls =
    "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}";

// Writes each message that `rule` lets through. The rule may raise.
std::string writing(std::string_view rule) {
  return fmt::format(
      "{{{{ tools or '' }}}}{{% set ns = namespace(index=0) %}}{{% for m in messages %}}{}<{{{{ m.role }}}} "
      "{{{{ m.content }}}}{}>{{% endfor %}}",
      rule, kCalls);
}
constexpr std::string_view kAnyOrder = "";
// As Qwen3.5 has it.
constexpr std::string_view kSystemFirst =
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('not the first') }}{% endif %}";
// As SmolLM3 and gpt-oss have it.
constexpr std::string_view kLaterSystemDropped =
    "{% if m.role == 'system' and not loop.first %}{% continue %}{% endif %}";
// As Gemma 2 has it.
constexpr std::string_view kNoSystem =
    "{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}";
// As Mistral's models have it: calls and results do not count.
constexpr std::string_view kAlternating =
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('not the first') }}{% endif %}"
    "{% if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}"
    "{% if (m.role == 'user') != (ns.index % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}"
    "{% if not m.content %}{{ raise_exception('empty') }}{% endif %}"
    "{% set ns.index = ns.index + 1 %}{% endif %}";

// Renders the messages, each "role text", as a template with this rule gets them.
std::string rendered(std::string_view rule, std::initializer_list<OrderJson> list, bool has_own_tools = false) {
  const auto chat = ChatTemplate::parse(
      has_own_tools ? writing(rule).substr(std::string_view("{{ tools or '' }}").size()) : writing(rule));
  if (!chat) return chat.error().message;
  const auto traits = output::probe_template([&](const std::string& messages, const std::string& tools) {
    OrderJson context{{"messages", OrderJson::parse(messages)}};
    if (!tools.empty()) context["tools"] = OrderJson::parse(tools);
    return chat->render(context);
  });
  OrderJson messages = OrderJson::array();
  for (const auto& one : list) messages.push_back(one);
  const OrderJson tools = OrderJson::array();
  if (const auto fitted = fit_history(messages, &tools, traits, has_own_tools ? kOwnTools : ""); !fitted)
    return fitted.error().message;
  const auto text = chat->render({{"messages", std::move(messages)}});
  return text ? *text : text.error().message;
}

OrderJson says(const char* role, const char* text) {
  return {{"role", role}, {"content", text}};
}
OrderJson calls(const char* text) {
  OrderJson out = says("assistant", text);
  out["tool_calls"] = OrderJson::array({{{"id", "a"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}}});
  return out;
}

TEST(RoleOrder, ALaterSystemMessageBecomesTheUsersAtItsPlace) {
  const auto of = [](std::string_view rule) {
    return rendered(rule, {says("system", "A"), says("system", "B"), says("user", "C"), says("assistant", "D"),
                           says("system", "E"), says("user", "F")});
  };
  EXPECT_EQ(of(kAnyOrder), "<system A><system B><user C><assistant D><system E><user F>");
  const std::string wanted = "<system A\n\nB><user C><assistant D><user E><user F>";
  EXPECT_EQ(of(kSystemFirst), wanted);
  EXPECT_EQ(of(kLaterSystemDropped), wanted);
  EXPECT_EQ(of(kAlternating), "<system A\n\nB><user C><assistant D><user E\n\nF>");
  EXPECT_EQ(of(kNoSystem), "<user A\n\nB\n\nC><assistant D><user E\n\nF>");
}

TEST(RoleOrder, MessagesOfOneRoleBecomeOneWhereRolesAlternate) {
  OrderJson thinking = says("assistant", "C");
  thinking["reasoning_content"] = "hm";
  const OrderJson parts{{"role", "user"},
                        {"content", {{{"type", "text"}, {"text", "E"}}, {{"type", "text"}, {"text", "F"}}}}};
  const auto of = [&](std::string_view rule) {
    return rendered(rule, {says("user", "A"), says("user", "B"), thinking, calls("D"), says("tool", "r"),
                           says("assistant", "r!"), parts, says("user", "")});
  };
  EXPECT_EQ(of(kAlternating), "<user A\n\nB><assistant C\n\nD[f {}]><tool r><assistant r!><user E\nF>");
  EXPECT_EQ(of(kAnyOrder), "<user A><user B><assistant C><assistant D[f {}]><tool r><assistant r!><user E\nF><user >");
}

TEST(RoleOrder, ReasoningIsJoinedAsTextsAre) {
  OrderJson first = says("assistant", "A"), second = calls("B");
  first["reasoning_content"] = "one";
  second["reasoning_content"] = "two";
  OrderJson messages = OrderJson::array({first, says("tool", "r"), second, first});
  output::fit_role_order(messages, {.takes_assistant_runs = false});
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[2]["reasoning_content"], "two\n\none");
  EXPECT_EQ(messages[2]["content"], "B\n\nA");
  EXPECT_EQ(messages[2]["tool_calls"].size(), 1u);
}

TEST(RoleOrder, AnAnswerStandsBetweenAResultAndAUser) {
  const auto of = [](std::string_view rule) {
    return rendered(rule, {says("user", "A"), calls(""), says("tool", "r"), says("user", "B"), says("system", "C")});
  };
  EXPECT_EQ(of(kAlternating), "<user A><assistant [f {}]><tool r><assistant OK.><user B\n\nC>");
  EXPECT_EQ(of(kSystemFirst), "<user A><assistant [f {}]><tool r><user B><user C>");
}

TEST(RoleOrder, ResultsOfOwnToolsAreMessagesOfTheUser) {
  const auto text = rendered(kNoSystem, {says("user", "A"), calls(""), says("tool", "r"), says("user", "B")}, true);
  EXPECT_EQ(text,
            "<user A><assistant <tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>><user <tool_response>\n"
            "r\n</tool_response>\n\nB>");
}

TEST(RoleOrder, ATemplateThatRefusesAllSaysItsOwnError) {
  EXPECT_NE(rendered("{{ raise_exception('never') }}", {says("system", "A"), says("user", "B")}).find("never"),
            std::string::npos);
}

}  // namespace
}  // namespace zinc_rt

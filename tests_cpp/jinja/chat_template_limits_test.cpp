// Hostile templates end with an error that says which limit, soon and without much memory.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "jinja/chat_template.h"

namespace zinc_rt {
namespace {

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

struct Hostile {
  const char* name;
  std::string source;
};

std::vector<Hostile> hostile_templates() {
  return {
      {"text times a billion", "{{ 'a' * 10**9 }}"},
      {"list times a billion", "{{ ([1] * 10**9)|length }}"},
      {"text doubled",
       "{% set ns = namespace(s='aa') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"},
      {"list doubled",
       "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"},
      {"lists of one list",
       "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}"},
      {"lists of one list as JSON",
       "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s|tojson "
       "}}"},
      {"lists of one list compared",
       "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = "
       "[ns.b, "
       "ns.b] %}{% endfor %}{{ ns.a == ns.b }}"},
      {"deep list",
       "{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s }}"},
      {"deep iterators",
       "{% set ns = namespace(s=[1]) %}{% for i in range(100000) %}{% set ns.s = ns.s|map('string') %}{% endfor %}{{ "
       "ns.s|list }}"},
      {"nested loops",
       "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% endfor %}{% endfor %}{% "
       "endfor %}"},
      {"large output", "{% for a in range(100000) %}{{ 'x' * 1000 }}{% endfor %}"},
      {"large macro output",
       "{% macro m() %}{% for a in range(100000) %}{{ 'x' * 1000 }}{% endfor %}{% endmacro %}{{ m()|length }}"},
      {"endless recursion", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"},
      {"endless mutual recursion",
       "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}"},
      {"endless recursive loop", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"},
      {"exponential recursion",
       "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(100) }}"},
      {"endless caller",
       "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{% call m() %}{% endcall %}"},
      {"namespace in itself", "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}"},
      {"wide format", "{{ '%999999999d' % 1 }}"},
      {"wide by argument", "{{ '%.*d' % (10**12, 1) }}"},
      {"wide by argument, left", "{{ '%*d' % (-10**12, 1) }}"},
      {"wide str.format", "{{ '{:>999999999}'.format(1) }}"},
      {"wide center", "{{ 'x'|center(10**12) }}{{ 'x'.ljust(10**12) }}"},
      {"wide indent", "{{ 'x\ny'|indent(10**10) }}"},
      {"wide JSON indent", "{{ [1]|tojson(indent=10**10) }}"},
      {"large batch fill", "{{ [1]|batch(10**10, 0)|list }}"},
      {"many slices", "{{ [1]|slice(10**10)|list }}"},
      {"growing replace",
       "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(50) %}{% set ns.s = ns.s|replace('a', 'aaaa') %}{% "
       "endfor %}"},
      {"growing join", "{% set x = 'a' * 1000000 %}{{ range(100000)|join(x) }}"},
      {"hard search",
       "{% set x = 'a' * 4000000 %}{% set y = 'a' * 2000000 ~ 'b' %}{% for i in range(10000) %}{{ y in x }}{% endfor "
       "%}"},
      {"long comparisons",
       "{% set a = 'a' * 10000000 %}{% set b = 'a' * 10000000 %}{% for i in range(100000) %}{% if a != b %}{% endif "
       "%}{% endfor %}"},
      {"many lines", "{% set x = '\n' * 10000000 %}{% for i in range(1000) %}{{ x.splitlines()|length }}{% endfor %}"},
      {"one word wrapped to letters",
       "{% set x = 'a' * 8000000 %}{% for i in range(1000) %}{% set y = x|wordwrap(1) %}{% endfor %}"},
      {"a macro that is given itself", "{% macro m(f) %}{{ f(f) }}{% endmacro %}{{ m(m) }}"},
      {"namespace and list in each other, compared",
       "{% set ns = namespace() %}{% set ns.l = [ns] %}{{ ns.l == [ns.l] }}{{ ns.l }}"},
      {"range of a billion", "{% for i in range(10**9) %}{% endfor %}"},
      {"another template", "{% extends 'base' %}"},
      {"a block that is itself", "{% block a %}{{ self.a() }}{% endblock %}"},
      {"replacements in a row", "{% set x = 'a' * 1000 %}{{ x" + repeated("|replace('a', 'aa')", 60) + " }}"},
      {"nested filter blocks", repeated("{% filter upper %}", 5000) + repeated("{% endfilter %}", 5000)},
      {"sorting long texts",
       "{% set x = ['a' * 1000000] * 1000 %}{% for i in range(1000) %}{{ x|sort|length }}{% endfor %}"},
      {"many macros",
       "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% macro m() %}{{ i }}{% endmacro %}{% set ns.l = "
       "[ns.l, m] %}{% endfor %}{{ ns.l }}"},
      {"parentheses", "{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}"},
      {"lists in lists", "{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}"},
      {"not not not", "{{ " + repeated("not ", 100000) + "1 }}"},
      {"minus minus", "{{ " + repeated("-", 100000) + "1 }}"},
      {"chained attributes", "{{ a" + repeated(".a", 100000) + " }}"},
      {"chained filters", "{{ a" + repeated("|upper", 100000) + " }}"},
      {"chained calls", "{{ a" + repeated("()", 100000) + " }}"},
      {"chained conditions", "{{ 1" + repeated(" if 1", 100000) + " }}"},
      {"nested conditions", "{{ " + repeated("1 if 0 else ", 100000) + "1 }}"},
      {"nested ifs", repeated("{% if 1 %}", 5000) + repeated("{% endif %}", 5000)},
      {"nested loops in the text", repeated("{% for a in b %}", 5000) + repeated("{% endfor %}", 5000)},
      {"nested targets", "{% for " + repeated("(", 5000) + "a" + repeated(")", 5000) + " in b %}{% endfor %}"},
  };
}

TEST(ChatTemplateLimits, HostileTemplatesEndSoon) {
  RenderLimits limits;
  limits.max_time_ms = 300;
  for (const Hostile& hostile : hostile_templates()) {
    SCOPED_TRACE(hostile.name);
    auto start = std::chrono::steady_clock::now();
    Result<ChatTemplate> parsed = ChatTemplate::parse(hostile.source);
    Result<std::string> out =
        parsed ? parsed->render(nlohmann::ordered_json::object(), limits) : std::unexpected(parsed.error());
    double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    EXPECT_FALSE(out) << "it rendered " << out->size() << " bytes";
#ifdef ZRT_SANITIZED
    EXPECT_LT(ms, 20000);
#else
    EXPECT_LT(ms, 3000);
#endif
    if (!out) {
      EXPECT_EQ(out.error().message.rfind("[chat_template] line ", 0), 0u) << out.error().message;
    }
  }
}

TEST(ChatTemplateLimits, EachLimitIsNamed) {
  auto error_of = [](const std::string& source, const RenderLimits& limits) {
    auto parsed = ChatTemplate::parse(source);
    auto out = parsed->render(nlohmann::ordered_json::object(), limits);
    if (out) return std::string("no error");
    EXPECT_EQ(out.error().code, StatusCode::kExhausted);
    return out.error().message;
  };
  const std::string loop = "{% for i in range(100000) %}{{ i }}{% endfor %}";
  EXPECT_NE(error_of(loop, {.max_output_bytes = 100}).find("larger than 100 bytes"), std::string::npos);
  EXPECT_NE(error_of(loop, {.max_steps = 1000}).find("more than 1000 steps"), std::string::npos);
  EXPECT_NE(error_of("{{ ('a' * 5000)|upper }}", {.max_value_bytes = 4000}).find("4000"), std::string::npos);
  EXPECT_NE(
      error_of("{% for a in range(90000) %}" + loop + "{% endfor %}", {.max_output_bytes = 1u << 30, .max_time_ms = 20})
          .find("more than 20 ms"),
      std::string::npos);
  EXPECT_NE(error_of("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(50) }}", {.max_depth = 20})
                .find("20 allowed"),
            std::string::npos);
}

TEST(ChatTemplateLimits, OrdinaryDepthsRender) {
  auto parsed = ChatTemplate::parse("{% macro m(n) %}{% if n %}<{{ m(n - 1) }}>{% endif %}{% endmacro %}{{ m(40) }}");
  auto out = parsed->render(nlohmann::ordered_json::object());
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->size(), 80u);
  std::string nested = repeated("(", 60) + "1" + repeated(")", 60) + repeated(" + 1", 2000);
  auto sum = ChatTemplate::parse("{{ " + nested + " }}");
  ASSERT_TRUE(sum) << sum.error().message;
  EXPECT_EQ(*sum->render(nlohmann::ordered_json::object()), "2001");
}

TEST(ChatTemplateLimits, ACancelledRenderEnds) {
  const auto made = ChatTemplate::parse("{% for i in range(100000) %}{{ messages|length }}{% endfor %}");
  ASSERT_TRUE(made);
  std::stop_source source;
  source.request_stop();
  RenderLimits limits;
  limits.cancel = source.get_token();
  const auto out = made->render({{"messages", nlohmann::json::array()}}, limits);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, StatusCode::kCancelled);
}

// Steps, not seconds: what a message costs does not grow with the number of messages beside it.
TEST(ChatTemplateLimits, ManyMessagesCostTheSameEach) {
  const auto made = ChatTemplate::parse(
      "{% for m in messages %}{% if loop.first or messages[loop.index0 - 1].role != m.role %}{{ m.role }}{% endif %}"
      "{{ '<' + m['content'] | trim + '>' }}{% if loop.last %}!{% endif %}{% endfor %}");
  ASSERT_TRUE(made);
  for (const std::size_t n : {1'000u, 200'000u}) {
    auto messages = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < n; ++i) messages.push_back({{"role", "user"}, {"content", "x"}});
    RenderLimits limits;
    limits.max_steps = 60 * n;
    limits.max_time_ms = 60'000;
    const auto out = made->render({{"messages", std::move(messages)}}, limits);
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ(out->size(), 3 * n + 5);
  }
}

}  // namespace
}  // namespace zinc_rt

// Whole chat templates over conversations against Python's jinja2 (data/template_cases.jsonl, by
// tests_py/make_template_cases.py), and the interface's own promises.
#include "jinja/chat_template.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests_cpp/base/fixtures.h"

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;

const std::string kData = ZRT_SOURCE_DIR "/tests_cpp/jinja/data/";
const std::string kFixtures = shared_fixtures().string() + "/templates/";

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : std::string();
}

Result<std::string> render(const std::string& source, const Json& context = Json::object(),
                           const RenderLimits& limits = {}) {
  Result<ChatTemplate> parsed = ChatTemplate::parse(source);
  if (!parsed) return std::unexpected(parsed.error());
  return parsed->render(context, limits);
}

std::string render_ok(const std::string& source, const Json& context = Json::object()) {
  Result<std::string> out = render(source, context);
  return out ? *out : "error: " + out.error().message;
}

// All conversations of one kind of template; `own` ones are in the repository, others among the workplace's fixtures.
void check_templates(bool own) {
  std::ifstream file(kData + "template_cases.jsonl");
  ASSERT_TRUE(file) << "data/template_cases.jsonl is missing";
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const Json head = Json::parse(line);
  int n = 0;
  while (std::getline(file, line)) {
    const Json one = Json::parse(line);
    if (one.at("own").get<bool>() != own) continue;
    const auto name = one.at("template").get<std::string>();
    std::string source = read((own ? kData + "templates/" : kFixtures) + name);
    if (source.empty() && !own) ZRT_SKIP_WITHOUT_SHARED_FIXTURES();
    Result<ChatTemplate> parsed = ChatTemplate::parse(source);
    ASSERT_TRUE(parsed) << name << ": " << parsed.error().message;
    for (const auto& [conversation, expected] : one.at("outputs").items()) {
      SCOPED_TRACE(name + ", conversation " + conversation);
      Json context = head.at("base");
      context.update(head.at("conversations").at(conversation));
      Result<std::string> out = parsed->render(context);
      ++n;
      if (expected.is_object()) {
        EXPECT_FALSE(out) << "Python: " << expected.at("error") << "\nrendered: " << out.value_or("");
      } else if (!out) {
        ADD_FAILURE() << out.error().message;
      } else {
        EXPECT_EQ(*out, expected.get<std::string>());
      }
    }
  }
  EXPECT_GT(n, 150);
}

TEST(ChatTemplate, OwnTemplates) {
  check_templates(true);
}

TEST(ChatTemplate, FixtureTemplates) {
  check_templates(false);
}

TEST(ChatTemplate, EmptyTemplateRendersNothing) {
  EXPECT_EQ(render_ok(""), "");
  EXPECT_EQ(render_ok("\n"), "");
}

TEST(ChatTemplate, RaiseExceptionIsTheCallersFault) {
  Result<std::string> out = render("a\n{{ raise_exception('roles must alternate') }}");
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, StatusCode::kInvalidArgument);
  EXPECT_EQ(out.error().message, "[chat_template] line 2: roles must alternate");
}

TEST(ChatTemplate, SyntaxErrorNamesItsLine) {
  Result<ChatTemplate> parsed = ChatTemplate::parse("a\nb\n{% if x %}\n{{ y z }}");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, StatusCode::kInvalidArgument);
  EXPECT_EQ(parsed.error().message.rfind("[chat_template] line 4:", 0), 0u) << parsed.error().message;
}

TEST(ChatTemplate, RuntimeErrorNamesItsLine) {
  Result<std::string> out = render("{% macro m(x) %}\n{{ x.y.z }}\n{% endmacro %}\n\n{{ m({}) }}");
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message, "[chat_template] line 2: 'dict object' has no attribute 'y'");
}

TEST(ChatTemplate, LoadingOtherTemplatesIsRefusedByName) {
  for (const char* tag : {"include 'a'", "import 'a' as b", "from 'a' import b", "extends 'a'"}) {
    Result<ChatTemplate> parsed = ChatTemplate::parse(std::string("{% ") + tag + " %}");
    ASSERT_FALSE(parsed) << tag;
    EXPECT_NE(parsed.error().message.find("cannot load other templates"), std::string::npos) << parsed.error().message;
  }
}

TEST(ChatTemplate, ForbiddenMethodsExplainThemselves) {
  Result<std::string> out = render("{{ [].append(1) }}");
  ASSERT_FALSE(out);
  EXPECT_NE(out.error().message.find("'append' of 'list' object is unsafe"), std::string::npos) << out.error().message;
}

TEST(ChatTemplate, BrokenInputsAreErrors) {
  EXPECT_FALSE(ChatTemplate::parse("a\xff"));
  EXPECT_FALSE(render("x", Json::array()));
  Json deep = Json::array();
  for (int i = 0; i < 3000; ++i) deep = Json::array({std::move(deep)});
  Result<std::string> out = render("{{ d }}", Json{{"d", std::move(deep)}});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, StatusCode::kExhausted);
}

TEST(ChatTemplate, BytesThatAreNoUtf8PassUnchanged) {
  Json context{{"s", "a\xff\xc3z"}};
  EXPECT_EQ(render_ok("{{ s }}|{{ s|length }}|{{ s[1:3] }}|{{ s|upper }}|{{ s|tojson }}", context),
            "a\xff\xc3z|4|\xff\xc3|A\xff\xc3Z|\"a\xff\xc3z\"");
}

TEST(ChatTemplate, StrftimeNowUsesTheGivenTime) {
  setenv("TZ", "UTC", 1);
  tzset();
  RenderLimits limits;
  limits.now = std::chrono::system_clock::time_point(std::chrono::microseconds(1721995445000123));
  auto out =
      render("{{ strftime_now('%d %b %Y|%Y-%m-%d %H:%M:%S.%f|%A %B %j %p %%|%Z%z|%-d|%') }}", {{"a", 1}}, limits);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(*out, "26 Jul 2024|2024-07-26 12:04:05.000123|Friday July 208 PM %||26|%");
  EXPECT_EQ(render_ok("{{ strftime_now('%Y')|length }}"), "4");
}

TEST(ChatTemplate, ManyThreadsRenderOneTemplate) {
  auto parsed = ChatTemplate::parse(
      "{% macro m(x) %}<{{ x }}é>{% endmacro %}{% for i in range(n) %}{{ m('k' ~ i) }}{{ 'ab'[i % 2] }}{% endfor %}");
  ASSERT_TRUE(parsed);
  std::vector<std::thread> threads;
  std::vector<std::string> outputs(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) outputs[static_cast<std::size_t>(t)] = *parsed->render({{"n", 20}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& out : outputs) EXPECT_EQ(out, outputs[0]);
  EXPECT_EQ(outputs[0].substr(0, 8), "<k0é>a<");
}

TEST(ChatTemplate, Qwen3RendersInUnderHalfAMillisecond) {
  std::string source = read(kFixtures + "Qwen-Qwen3-0.6B.jinja");
  if (source.empty()) ZRT_SKIP_WITHOUT_SHARED_FIXTURES();
#ifdef ZRT_SANITIZED
  GTEST_SKIP() << "sanitized build";
#endif
  auto parsed = ChatTemplate::parse(source);
  ASSERT_TRUE(parsed);
  Json context = {{"messages",
                   {{{"role", "system"}, {"content", "You are helpful."}},
                    {{"role", "user"}, {"content", "Hello there"}},
                    {{"role", "assistant"}, {"content", "<think>\nx\n</think>\n\nHi"}}}},
                  {"add_generation_prompt", true}};
  double best_us = 1e9;
  for (int i = 0; i < 50; ++i) {
    auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(parsed->render(context));
    best_us =
        std::min(best_us, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  RecordProperty("render_us", std::to_string(best_us));
  EXPECT_LT(best_us, 500);
}

}  // namespace
}  // namespace zinc_rt

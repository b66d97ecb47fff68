// Single templates against what Python's jinja2 made of them (data/jinja_cases.jsonl, by tests_py/make_jinja_cases.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "jinja/chat_template.h"

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;

TEST(JinjaCases, RenderAsPython) {
  std::ifstream file(ZRT_SOURCE_DIR "/tests_cpp/jinja/data/jinja_cases.jsonl");
  ASSERT_TRUE(file) << "data/jinja_cases.jsonl is missing";
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const Json shared = Json::parse(line).at("context");
  int n_rendered = 0;
  int n_refused = 0;
  while (std::getline(file, line)) {
    Json one = Json::parse(line);
    SCOPED_TRACE(one.at("template").dump());
    Json context = shared;
    if (one.contains("context")) context.update(one.at("context"));
    Result<ChatTemplate> parsed = ChatTemplate::parse(one.at("template").get<std::string>());
    Result<std::string> out = parsed ? parsed->render(context) : std::unexpected(parsed.error());
    if (one.value("error", false)) {
      ++n_refused;
      EXPECT_FALSE(out) << "Python: " << one.value("message", "") << "\nrendered: " << out.value_or("");
      if (!out) {
        EXPECT_EQ(out.error().code, StatusCode::kInvalidArgument) << out.error().message;
        EXPECT_EQ(out.error().message.rfind("[chat_template] line ", 0), 0u) << out.error().message;
      }
      continue;
    }
    ++n_rendered;
    if (!out) {
      ADD_FAILURE() << out.error().message;
    } else {
      EXPECT_EQ(*out, one.at("expected").get<std::string>());
    }
  }
  EXPECT_GT(n_rendered, 350);
  EXPECT_GT(n_refused, 240);
}

}  // namespace
}  // namespace zinc_rt

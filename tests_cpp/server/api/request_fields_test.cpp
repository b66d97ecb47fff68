// The table of request fields, the readers of bodies and docs/server.md have the same fields.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "server/api/body_reader.h"

namespace zinc_rt::server {
namespace {

using F = RequestField;

struct Reader {
  F::TakenBy taker;
  ApiResult<GenerationCall> (*parse)(const Json&, const Request&, Ignored);
  const char* body;  // that has no more than what must be there
};

constexpr Reader kReaders[] = {
    {F::kChat, parse_chat, R"({"messages":[{"role":"user","content":"q"}]})"},
    {F::kCompletion, parse_completion, R"({"prompt":"a"})"},
    {F::kGenerate, parse_generate, R"({"token_ids":[1]})"},
    {F::kMessages, parse_messages, R"({"max_tokens":1,"messages":[{"role":"user","content":"q"}]})"},
    {F::kResponses, parse_responses, R"({"input":"q"})"},
    {F::kOllamaChat, parse_ollama_chat, R"({"messages":[{"role":"user","content":"q"}]})"},
    {F::kOllamaGenerate, parse_ollama_generate, R"({"prompt":"q"})"},
    {F::kOllamaOptions, parse_ollama_generate, R"({"prompt":"q","options":{}})"},
};

// The object that the taker's fields are of.
Json& fields_of(F::TakenBy taker, Json& body) {
  return taker == F::kOllamaOptions ? body["options"] : body;
}

TEST(RequestFields, EachReaderReadsThoseOfTheTable) {
  for (const auto& [taker, parse, text] : kReaders) {
    const auto call = parse(*parse_json(text), {}, nullptr);
    EXPECT_TRUE(call) << call.error().message;
    for (const F& field : request_fields()) {
      if ((field.taken_by & taker) == 0) continue;
      Json body = *parse_json(text);
      fields_of(taker, body)[field.name] = -2.5;
      const auto read = parse(body, {}, nullptr);
      if (read) continue;  // a number of any kind is allowed, or what is given is not looked at
      EXPECT_EQ(read.error().status, 400) << read.error().message;
      EXPECT_FALSE(read.error().message.contains("knows no such field")) << read.error().message;
    }
  }
}

TEST(RequestFields, NumbersOutsideOfTheirBoundsAreRefusedByTheirName) {
  std::size_t n_checked = 0;
  for (const auto& [taker, parse, text] : kReaders)
    for (const F& field : request_fields()) {
      const bool is_number = std::holds_alternative<float Request::*>(field.member) ||
                             std::holds_alternative<std::uint32_t Request::*>(field.member) ||
                             std::holds_alternative<std::optional<std::uint32_t> Request::*>(field.member);
      if ((field.taken_by & taker) == 0 || !is_number) continue;
      const auto& [least, most] = field.api_bounds();
      ASSERT_LT(least, most) << field.name;
      for (const double beyond : {least - 1, most + 1}) {
        Json body = *parse_json(text);
        fields_of(taker, body)[field.name] = beyond;
        const auto read = parse(body, {}, nullptr);
        ASSERT_FALSE(read) << field.name << " " << beyond;
        EXPECT_TRUE(read.error().param.ends_with(field.name)) << read.error().param;
        EXPECT_TRUE(read.error().message.contains(fmt::format("{} to {} wanted", least, most))) << read.error().message;
        ++n_checked;
      }
    }
  EXPECT_GT(n_checked, 50u);
}

// A field that is added to a reader alone, or to the table alone.
TEST(RequestFields, AFieldInOnePlaceFailsEveryRequest) {
  const Json body = Json::object();
  const auto read = [&](const std::vector<const char*>& names, std::string_view without) {
    BodyReader r(body, nullptr, F::kOllamaOptions);
    for (const F& field : request_fields())
      if ((field.taken_by & F::kOllamaOptions) != 0 && field.name != without) r.fields().get(field.name);
    for (const char* name : names) r.fields().get(name);
    r.refuse("refused", "it is not served");
    r.pass_over({"passed"});
    return r.finish();
  };
  EXPECT_TRUE(read({}, ""));
  const auto further = read({"further"}, ""), missing = read({}, "top_k");
  ASSERT_FALSE(further);
  EXPECT_EQ(further.error().status, 500);
  EXPECT_EQ(further.error().message, "[request] further of options: the reader has it, the table of fields has not");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "[request] top_k of options: the table of fields has it, the reader has not");
}

TEST(RequestFields, ThePageOfTheServerHasTheTable) {
  std::string wanted;
  for (const F& field : request_fields())
    if (const auto served = field.taken_by & (F::kPython - 1); served != 0)
      wanted +=
          fmt::format("| `{}` | {} | {} | {} |\n", field.name, taker_names(served), wanted_value(field), field.help);
  std::ifstream in(ZRT_SOURCE_DIR "/docs/server.md");
  std::string found;
  bool is_inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) is_inside = line == "## Fields";
    if (is_inside && line.starts_with("| `")) found += line + "\n";
  }
  EXPECT_TRUE(found == wanted) << "the table of docs/server.md, Fields, should be\n" << wanted;
}

}  // namespace
}  // namespace zinc_rt::server

// The answers that a page gets of its own engine. tests_py/test_browser_engine.py compares them with the server's.
#include "browser/local_server.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests_cpp/base/fixtures.h"

namespace zinc_rt::browser {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;
using Kind = AnswerPiece::Kind;

struct Answer {
  int status = 0;
  std::string content_type, body;
  bool has_ended = false;
};

std::unique_ptr<LocalServer> open(Json options = Json::object()) {
  options.update(
      Json{{"path", (own_models() / "tiny_llama-f32.gguf").string()}, {"tier", "t_cpu"}, {"max_context", 128}});
  auto opened = LocalServer::open(options.dump());
  EXPECT_TRUE(opened) << opened.error().message;
  return opened ? std::move(*opened) : nullptr;
}

// Adds the parts of the answer that are there.
void take(LocalServer& server, std::uint32_t number, Answer& answer) {
  for (;;) {
    const auto piece = server.next(number);
    if (piece.kind == Kind::kHead) {
      EXPECT_EQ(answer.status, 0);
      const auto head = Json::parse(piece.text);
      answer.status = head["status"];
      answer.content_type = head["content_type"];
    } else if (piece.kind == Kind::kBody) {
      EXPECT_NE(answer.status, 0) << "a body before its head";
      answer.body += piece.text;
    } else {
      answer.has_ended = piece.kind == Kind::kEnd;
      return;
    }
  }
}

// Pumps until nothing is left to do.
void run(LocalServer& server) {
  for (Pumped pumped; pumped.ran || pumped.wait_ms < std::numeric_limits<double>::infinity();) pumped = server.pump();
}

Answer ask(LocalServer& server, const std::string& method, const std::string& path, const std::string& body) {
  const auto number = server.submit(method, path, body);
  Answer answer;
  for (bool has_grown = true; has_grown && !answer.has_ended;) {
    const auto n_before = answer.body.size();
    run(server);
    take(server, number, answer);
    has_grown = answer.body.size() > n_before;
  }
  EXPECT_TRUE(answer.has_ended) << path << " " << body;
  return answer;
}

Answer post(LocalServer& server, const std::string& path, const Json& body) {
  return ask(server, "POST", path, body.dump());
}

const Json kPrompt{{"prompt", "once upon"}, {"max_tokens", 5}, {"ignore_eos", true}, {"temperature", 0}};

Json with(Json body, const Json& more) {
  body.update(more);
  return body;
}

TEST(LocalServer, WholeAndStreamedAnswersHaveTheSameText) {
  const auto server = open();
  ASSERT_NE(server, nullptr);
  const auto whole = post(*server, "/v1/completions", kPrompt);
  EXPECT_EQ(whole.status, 200) << whole.body;
  EXPECT_EQ(whole.content_type, "application/json");
  const auto json = Json::parse(whole.body);
  EXPECT_EQ(json["usage"]["completion_tokens"], 5);
  EXPECT_EQ(json["model"], "tiny_llama-f32");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_THAT(json["id"].get<std::string>(), StartsWith("cmpl-"));

  const auto streamed = post(*server, "/v1/completions", with(kPrompt, {{"stream", true}}));
  EXPECT_EQ(streamed.status, 200);
  EXPECT_EQ(streamed.content_type, "text/event-stream");
  EXPECT_THAT(streamed.body, EndsWith("data: [DONE]\n\n"));
  std::string text;
  std::stringstream lines(streamed.body);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("data: {")) text += Json::parse(line.substr(6))["choices"][0]["text"];
  EXPECT_EQ(json["choices"][0]["text"], text);
}

TEST(LocalServer, EachPromptHasItsChoices) {
  const auto server = open({{"max_slots", 2}});
  const auto answer =
      post(*server, "/v1/completions",
           with(kPrompt, {{"prompt", {"once", "upon a"}}, {"n", 2}, {"temperature", 1}, {"seed", 3}, {"echo", true}}));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto choices = Json::parse(answer.body)["choices"];
  ASSERT_EQ(choices.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(choices[i]["index"], i);
    EXPECT_THAT(choices[i]["text"].get<std::string>(), StartsWith(i < 2 ? "once" : "upon a"));
  }
}

TEST(LocalServer, RequestsRunSideBySide) {
  const auto server = open({{"max_slots", 2}});
  const auto body = with(kPrompt, {{"stream", true}}).dump();
  const std::uint32_t numbers[] = {server->submit("POST", "/v1/completions", body),
                                   server->submit("POST", "/v1/completions", body)};
  EXPECT_NE(numbers[0], numbers[1]);
  Answer answers[2];
  // Both have text before either has ended.
  for (int step = 0; step < 3; ++step) EXPECT_TRUE(server->pump().ran);
  for (int i = 0; i < 2; ++i) {
    take(*server, numbers[i], answers[i]);
    EXPECT_FALSE(answers[i].has_ended);
    EXPECT_THAT(answers[i].body, HasSubstr("data: {"));
  }
  run(*server);
  for (int i = 0; i < 2; ++i) {
    take(*server, numbers[i], answers[i]);
    EXPECT_TRUE(answers[i].has_ended);
    EXPECT_THAT(answers[i].body, EndsWith("data: [DONE]\n\n"));
    EXPECT_EQ(server->next(numbers[i]).kind, Kind::kEnd);  // the number is free
  }
}

TEST(LocalServer, ACancelledRequestLeavesItsSlot) {
  const auto server = open();  // one slot
  const auto number = server->submit("POST", "/v1/completions", with(kPrompt, {{"max_tokens", 100}}).dump());
  EXPECT_TRUE(server->pump().ran);
  server->cancel(number);
  server->cancel(number);
  server->cancel(77);
  EXPECT_EQ(server->next(number).kind, Kind::kEnd);
  EXPECT_EQ(post(*server, "/v1/completions", kPrompt).status, 200);
  const auto stats = Json::parse(server->info())["stats"];
  EXPECT_EQ(stats["running"], 0);
  EXPECT_EQ(stats["slots_free"], 1);
}

TEST(LocalServer, AReaderThatWaitsLosesNothing) {
  const auto server = open({{"max_slots", 4}});
  const auto body = with(kPrompt, {{"max_tokens", 100}, {"stream", true}, {"logprobs", 20}, {"n", 30}});
  const auto number = server->submit("POST", "/v1/completions", body.dump());
  run(*server);  // to the end
  Answer answer;
  take(*server, number, answer);
  EXPECT_TRUE(answer.has_ended);
  EXPECT_GT(answer.body.size(), 2u << 20);
  EXPECT_THAT(answer.body, EndsWith("data: [DONE]\n\n"));
  EXPECT_THAT(answer.body, Not(HasSubstr("client_too_slow")));
}

TEST(LocalServer, RefusalsHaveTheFormOfTheirApi) {
  const auto server = open();
  const auto refused = [&](const std::string& path, const Json& body, int status, const std::string& message) {
    const auto answer = post(*server, path, body);
    EXPECT_EQ(answer.status, status) << path << " " << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(message));
    return Json::parse(answer.body);
  };
  EXPECT_EQ(refused("/v1/completions", with(kPrompt, {{"colour", 1}}), 400, "colour")["error"]["param"], "colour");
  EXPECT_EQ(refused("/v1/completions", with(kPrompt, {{"model", "other"}}), 404, "tiny_llama-f32")["error"]["code"],
            "model_not_found");
  EXPECT_EQ(
      refused("/v1/completions", with(kPrompt, {{"prompt", std::string(4000, 'a')}}), 400, "128")["error"]["code"],
      "context_length_exceeded");
  EXPECT_EQ(refused("/v1/messages", Json{{"messages", 3}, {"max_tokens", 5}}, 400, "messages")["type"], "error");
  EXPECT_TRUE(refused("/api/generate", Json{{"prompt", 3}}, 400, "prompt")["error"].is_string());
  const Json input{{"input", "a"}};
  refused("/v1/responses", with(input, {{"store", true}}), 400, "no answers are kept");
  refused("/v1/responses", with(input, {{"previous_response_id", "resp_1"}}), 400, "no answers are kept");
  refused("/api/chat", Json{{"messages", Json::array()}, {"keep_alive", 0}}, 400, "keep_alive");
  refused("/v1/embeddings", Json{{"input", "a"}}, 404, "/v1/embeddings");
  for (const char* body : {"", "[1]", "{", "\xff"})
    EXPECT_EQ(ask(*server, "POST", "/v1/completions", body).status, 400);
  EXPECT_EQ(ask(*server, "DELETE", "/v1/models", "").status, 404);
}

TEST(LocalServer, AGrammarHoldsNothingUp) {
  const auto server = open();
  const Json format{
      {"type", "json_schema"},
      {"json_schema", {{"schema", {{"type", "object"}, {"properties", {{"n", {{"type", "integer"}}}}}}}}}};
  const Json body{{"prompt", "once"}, {"response_format", format}, {"max_tokens", 100}};
  const auto answer = post(*server, "/v1/completions", body);
  EXPECT_EQ(answer.status, 200) << answer.body;
}

TEST(LocalServer, ADeadlineIsKeptWithoutFurtherCalls) {
  const auto server = open();  // one slot, whose request's reader reads nothing
  const auto slow =
      server->submit("POST", "/v1/completions",
                     with(kPrompt, {{"max_tokens", 100}, {"stream", true}, {"logprobs", 20}, {"n", 1}}).dump());
  const auto number = server->submit("POST", "/v1/completions", with(kPrompt, {{"deadline_ms", 1}}).dump());
  Answer answer;
  for (int i = 0; i < 10000 && !answer.has_ended; ++i) {
    server->pump();
    take(*server, number, answer);
  }
  EXPECT_TRUE(answer.has_ended);
  server->cancel(slow);
}

TEST(LocalServer, PathsAreThoseOfUrls) {
  const auto server = open({{"id", "my model"}});
  EXPECT_EQ(ask(*server, "GET", "/v1/models/my%20model?verbose=1", "").status, 200);
  EXPECT_EQ(ask(*server, "POST", "/v1/completions?beta=true", kPrompt.dump()).status, 200);
  EXPECT_EQ(ask(*server, "POST", "/v1/completions%", kPrompt.dump()).status, 400);
  EXPECT_EQ(ask(*server, "POST", "/openai/deployments/{model}/completions", kPrompt.dump()).status, 404);
}

TEST(LocalServer, TellsOfItsModel) {
  const auto server = open({{"id", "small"}});
  const auto list = Json::parse(ask(*server, "GET", "/v1/models", "").body);
  ASSERT_EQ(list["data"].size(), 1u);
  EXPECT_EQ(list["data"][0]["id"], "small");
  EXPECT_EQ(list["data"][0]["max_model_len"], 128);
  EXPECT_EQ(Json::parse(ask(*server, "GET", "/v1/models/small", "").body), list["data"][0]);
  EXPECT_EQ(ask(*server, "GET", "/health", "").status, 200);
  EXPECT_EQ(Json::parse(post(*server, "/api/generate", Json::object()).body)["done_reason"], "load");
  const auto info = Json::parse(server->info());
  EXPECT_EQ(info["model"]["tier"], "t_cpu");
  EXPECT_EQ(info["stats"]["slots"], 1);
}

TEST(LocalServer, AModelThatCannotBeOpenedSaysWhy) {
  const auto why = [](const Json& body) {
    const auto opened = LocalServer::open(body.dump());
    EXPECT_FALSE(opened);
    return opened ? std::string() : opened.error().message;
  };
  EXPECT_THAT(why({{"path", "/no/such.gguf"}}), HasSubstr("/no/such.gguf"));
  EXPECT_THAT(why(Json::object()), HasSubstr("path"));
  EXPECT_THAT(why(3), HasSubstr("object"));
  EXPECT_THAT(why({{"path", "/a.gguf"}, {"max_slots", 0}}), HasSubstr("max_slots"));
  EXPECT_THAT(why({{"path", "/a.gguf"}, {"colour", 0}}), HasSubstr("colour"));
}

}  // namespace
}  // namespace zinc_rt::browser

// What clients send: heads of messages, JSON, and the bodies of requests.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>

#include "base/conversation.h"
#include "server/api/generation_call.h"
#include "server/http/http_head.h"

namespace zinc_rt::server {
namespace {

constexpr std::size_t kMax = 1024;

TEST(HttpHead, IsWholeAtItsEmptyLineAndNotBefore) {
  const std::string head = "POST /v1/x?y=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX-A:\t b \r\n\r\n";
  for (std::size_t n = 0; n < head.size(); ++n)
    EXPECT_EQ(scan_head(std::string_view(head).substr(0, n), kMax).state, HeadScan::kMore) << n;
  const auto whole = scan_head(head + "abc", kMax);
  EXPECT_EQ(whole.state, HeadScan::kWhole);
  EXPECT_EQ(whole.size, head.size());
  EXPECT_EQ(scan_head("\r\n" + head, kMax).size, head.size() + 2);
}

TEST(HttpHead, WhatIsBadStaysBadAndIsSaidAtOnce) {
  for (const std::string bad :
       {"\x16\x03\x01", "GET / HTTP/1.1\n", "GET /\x01", "GET  HTTP/1.1\r\n", "GET / HTTP/3.0\r\n",
        "GET / HTTP/1.1\r\n a: b\r\n", "GET / HTTP/1.1\r\nContent-Length: 1\r\ncontent-length: 1\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: identity\r\n", "GET / HTTP/1.1\r\na b: c\r\n"}) {
    const auto scan = scan_head(bad, kMax);
    EXPECT_EQ(scan.state, HeadScan::kBad) << bad;
    EXPECT_EQ(scan.status, 400);
    EXPECT_FALSE(scan.complaint.empty());
    EXPECT_EQ(scan_head(bad + "Host: x\r\n\r\n", kMax).state, HeadScan::kBad) << bad;
  }
  const auto full = scan_head("GET /" + std::string(kMax, 'a'), kMax);
  EXPECT_EQ(full.state, HeadScan::kBad);
  EXPECT_EQ(full.status, 431);
  EXPECT_NE(full.complaint.find("1024"), std::string::npos);
}

TEST(ApiErrors, AreWhatTheClientCanDoAboutThem) {
  const auto status = [](StatusCode code, ErrorSource source, double retry_after_s = 0) {
    return to_api_error({code, "x", retry_after_s}, source).status;
  };
  constexpr auto kRequest = ErrorSource::kRequest, kFile = ErrorSource::kModelFile;
  EXPECT_EQ(status(StatusCode::kInvalidArgument, kRequest), 400);
  EXPECT_EQ(status(StatusCode::kNotFound, kRequest), 404);
  EXPECT_EQ(status(StatusCode::kExhausted, kRequest), 400);
  EXPECT_EQ(status(StatusCode::kExhausted, kRequest, 2), 503);
  EXPECT_EQ(status(StatusCode::kUnavailable, kRequest), 503);
  EXPECT_EQ(status(StatusCode::kCorrupt, kRequest), 500);
  EXPECT_EQ(status(StatusCode::kCorrupt, kFile), 422);
  EXPECT_EQ(status(StatusCode::kUnavailable, kFile), 422);
  EXPECT_EQ(status(StatusCode::kExhausted, kFile), 409);
  EXPECT_EQ(status(StatusCode::kExhausted, kFile, 1), 503);
  EXPECT_EQ(status(StatusCode::kInternal, kFile), 500);
  const auto has = [](const ApiError& error, const std::string& name) {
    return std::ranges::any_of(error_response(error).headers, [&](const auto& h) { return h.first == name; });
  };
  for (int code : {400, 404, 409, 429, 500, 501, 503}) {
    ApiError error;
    error.status = code;
    error.retry_after_s = 1;
    EXPECT_EQ(has(error, "Retry-After"), code == 429 || code == 503) << code;
    EXPECT_EQ(has(error, "x-should-retry"), code == 409 || code == 501) << code;
  }
}

TEST(HttpHead, PercentEscapesAreDecodedOrRefused) {
  std::string out;
  EXPECT_TRUE(percent_decode("/a%2Fb%C3%A9", out));
  EXPECT_EQ(out, "/a/b\xC3\xA9");
  for (const char* bad : {"%", "%4", "%zz", "%00", "%ff", "%c3%28", "%ed%a0%80"})
    EXPECT_FALSE(percent_decode(bad, out)) << bad;
}

TEST(Json, KeepsTheOrderOfKeysAndTellsWhatIsWrong) {
  const auto good = parse_json(R"({"b":[1,{"c":null}],"a":-2.5e3,"d":{"a":"x"}})");
  ASSERT_TRUE(good);
  EXPECT_EQ(as_text(*good), R"({"b":[1,{"c":null}],"a":-2.5e3,"d":{"a":"x"}})");
  const auto complaint = [](std::string_view text) {
    const auto result = parse_json(text);
    return result ? "taken" : result.error().message;
  };
  EXPECT_NE(complaint(R"({"a":1,"b":{"a":1,"a":2}})").find("\"a\" is given twice"), std::string::npos);
  EXPECT_NE(complaint(std::string(65, '[')).find("64"), std::string::npos);
  EXPECT_EQ(complaint(std::string(64, '[') + std::string(64, ']')), "taken");
  EXPECT_NE(complaint("{\"a\": nope}").find("byte "), std::string::npos);
  for (const char* bad : {"", "1e99999", "\"\xff\"", "\"\\ud800\"", "{} {}", "NaN", "[1,]"})
    EXPECT_NE(complaint(bad), "taken") << bad;
}

GenerationCall chat(std::string_view more) {
  const auto body = parse_json(R"({"messages":[{"role":"user","content":"hi"}])" + std::string(more) + "}");
  if (!body) throw std::runtime_error(body.error().message);
  const auto call = parse_chat(*body, {});
  if (!call) throw std::runtime_error(call.error().message);
  return *call;
}

TEST(ChatBody, EveryFieldArrivesInTheRequest) {
  const auto call =
      chat(R"(,"model":"m","temperature":0.5,"top_p":0.9,"top_k":7,"min_p":0.1,"typical_p":0.8,"seed":-1,"n":3,
    "stop":["a","b"],"stop_token_ids":[4],"max_completion_tokens":9,"min_tokens":2,"logit_bias":{"12":-3.5},"logprobs":true,
    "top_logprobs":4,"presence_penalty":1,"frequency_penalty":-1,"repetition_penalty":1.1,"ignore_eos":true,"stream":true,
    "stream_options":{"include_usage":true},"service_tier":"flex","cache_salt":"s","deadline_ms":50,"reasoning_effort":"none",
    "chat_template_kwargs":{"x":1},"tools":[{"type":"function","function":{"name":"f"}}],"return_token_ids":true,"return_logits_hash":true,
    "timings":true,
    "include_stop_str_in_output":true,"skip_special_tokens":false,"user":"u","metadata":{"a":"b"})");
  const Request& q = call.requests.at(0);
  EXPECT_EQ(q.model, "m");
  EXPECT_FLOAT_EQ(q.temperature, 0.5f);
  EXPECT_FLOAT_EQ(q.top_p, 0.9f);
  EXPECT_EQ(q.top_k, 7u);
  EXPECT_FLOAT_EQ(q.min_p, 0.1f);
  EXPECT_FLOAT_EQ(q.typical_p, 0.8f);
  EXPECT_EQ(q.seed, static_cast<std::uint64_t>(-1));
  EXPECT_EQ(q.n, 3u);
  EXPECT_EQ(q.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(q.stop_token_ids, std::vector<std::int32_t>{4});
  EXPECT_EQ(q.max_tokens, 9u);
  EXPECT_EQ(q.min_tokens, 2u);
  EXPECT_EQ(q.logit_bias, (std::map<std::int32_t, float>{{12, -3.5f}}));
  EXPECT_EQ(q.logprobs, 4u);
  EXPECT_FLOAT_EQ(q.presence_penalty, 1);
  EXPECT_FLOAT_EQ(q.frequency_penalty, -1);
  EXPECT_FLOAT_EQ(q.repetition_penalty, 1.1f);
  EXPECT_TRUE(q.ignore_eos && q.return_logits_hash);
  EXPECT_TRUE(call.stream && call.include_usage && call.wants_logprobs && call.return_token_ids && call.wants_timings);
  EXPECT_EQ(q.qos, "batch");
  EXPECT_EQ(q.cache_salt, "s");
  EXPECT_EQ(q.deadline_ms, 50);
  EXPECT_EQ(as_text(q.conversation->variables), R"({"x":1,"enable_thinking":false,"reasoning_effort":"none"})");
  EXPECT_EQ(as_text(q.conversation->tools), R"([{"type":"function","function":{"name":"f"}}])");
  EXPECT_EQ(chat(R"(,"prompt_logprobs":2)").requests.at(0).prompt_logprobs, 2u);  // not streamed
  EXPECT_TRUE(q.include_stop_str_in_output);
  EXPECT_FALSE(q.skip_special_tokens);
}

TEST(ChatBody, LengthThatIsNotGivenIsAllThatFits) {
  EXPECT_EQ(chat("").requests[0].max_tokens, Request::kAllThatFit);
  EXPECT_EQ(chat(R"(,"max_tokens":null)").requests[0].max_tokens, Request::kAllThatFit);
}

TEST(ChatBody, ReasoningOfOpenRouterIsTheTemplatesAndTheAnswers) {
  const auto high = chat(R"(,"reasoning":{"effort":"high","enabled":true,"exclude":true})");
  EXPECT_EQ(as_text(high.requests.at(0).conversation->variables),
            R"({"reasoning_effort":"high","enable_thinking":true})");
  EXPECT_EQ(high.include_reasoning, false);
  const auto none = chat(R"(,"reasoning":{"effort":"none","max_tokens":null})");
  EXPECT_EQ(as_text(none.requests.at(0).conversation->variables),
            R"({"enable_thinking":false,"reasoning_effort":"none"})");
  EXPECT_EQ(none.include_reasoning, true);
}

TEST(ChatBody, PartsOfTextStayPartsAndDevelopersAreTheSystem) {
  const auto body = parse_json(
      R"([{"role":"developer","content":[{"type":"text","text":"a","cache_control":{}},{"type":"text","text":"b"}]},{"role":"user","content":"c"}])");
  const auto messages = read_messages(*body);
  ASSERT_TRUE(messages);
  EXPECT_EQ(messages->dump(), R"([{"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
                              R"({"role":"user","content":"c"}])");
  const auto picture =
      parse_json(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///x"}}]}])");
  const auto refused = read_messages(*picture);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().param, "messages[0].content[0].type");
}

TEST(ChatBody, ArgumentsOfCallsStayAsTheyCame) {
  const auto body = parse_json(
      R"([{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"b\": 1, \"a\": [2]}"}},)"
      R"({"function":{"name":"g","arguments":"no JSON"}},{"function":{"name":"h"}}]}])");
  const auto messages = read_messages(*body);
  ASSERT_TRUE(messages);
  EXPECT_EQ(
      messages->dump(),
      R"([{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{\"b\": 1, \"a\": [2]}"}},)"
      R"({"function":{"name":"g","arguments":"no JSON"}},{"function":{"name":"h"}}]}])");
}

TEST(ChatBody, OnlyAllowedToolsAreShown) {
  const std::string tools =
      R"([{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}])";
  const auto asked = [&](const std::string& choice) {
    return parse_chat(*parse_json(R"({"messages":[{"role":"user","content":"q"}],"tools":)" + tools +
                                  R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":)" + choice + "}}"),
                      {});
  };
  const auto one = asked(R"({"mode":"auto","tools":[{"type":"function","function":{"name":"g"}}]})");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(as_text(one->requests[0].conversation->tools), R"([{"type":"function","function":{"name":"g"}}])");
  EXPECT_EQ(one->requests[0].tool_choice, ToolChoice::kAuto);
  EXPECT_EQ(asked(R"({"mode":"required","tools":[{"function":{"name":"f"}}]})")->requests[0].tool_choice,
            ToolChoice::kRequired);
  for (const char* bad : {"{}", R"({"mode":"auto"})", R"({"mode":"auto","tools":[]})", "null",
                          R"({"mode":"none","tools":[{"function":{"name":"f"}}]})",
                          R"({"mode":"auto","tools":[{"function":{"name":"h"}}]})", R"({"mode":"auto","tools":[5]})"}) {
    const auto refused = asked(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().param, "tool_choice") << bad;
  }
  for (const char* none : {R"("x")", "[5]", R"([{"type":"function"}])", R"({"function":{"name":"f"}})"}) {
    const auto refused = parse_chat(
        *parse_json(fmt::format(
            R"({{"messages":[{{"role":"user","content":"q"}}],"tools":{},"tool_choice":{{)"
            R"("type":"allowed_tools","allowed_tools":{{"mode":"auto","tools":[{{"function":{{"name":"f"}}}}]}}}}}})",
            none)),
        {});
    ASSERT_FALSE(refused) << none;
    EXPECT_TRUE(refused.error().param.starts_with("tools")) << none << " " << refused.error().param;
  }
  const auto flat = parse_responses(
      *parse_json(R"({"input":"q","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}],
        "tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]}})"),
      {});
  ASSERT_TRUE(flat) << flat.error().message;
  EXPECT_FALSE(as_text(flat->requests[0].conversation->tools).contains("\"f\""));
}

TEST(CompletionBody, PromptsAreTextsIdsOrListsOfThose) {
  const auto parse = [](std::string_view text) { return parse_completion(*parse_json(text), {}); };
  EXPECT_EQ(parse(R"({"prompt":"a"})")->requests.size(), 1u);
  EXPECT_EQ(parse(R"({"prompt":[1,2]})")->requests.at(0).token_ids, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(parse(R"({"prompt":["a","b"]})")->requests.size(), 2u);
  EXPECT_EQ(parse(R"({"prompt":[[1],[2,3]]})")->requests.size(), 2u);
  EXPECT_EQ(parse(R"({"prompt":"a"})")->requests[0].max_tokens, 16u);
  for (const char* bad : {R"({})", R"({"prompt":[]})", R"({"prompt":[1,"a"]})", R"({"prompt":["a",1]})",
                          R"({"prompt":[[]]})", R"({"prompt":[-1]})", R"({"prompt":5})", R"({"prompt":[1.5]})"}) {
    const auto result = parse(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().param, "prompt") << bad;
  }
  EXPECT_TRUE(parse(R"({"prompt":["a",1]})").error().message.starts_with("[request] prompt[1]: 1 is given"));
  EXPECT_TRUE(parse(R"({"prompt":"a","stop":["b",""]})").error().message.starts_with("[request] stop[1]: "));
}

TEST(ResponsesBody, SealedReasoningIsText) {
  const auto parse = [](std::string_view sealed) {
    return parse_responses(
        *parse_json(fmt::format(R"({{"input":[{{"type":"reasoning","encrypted_content":"{}"}}]}})", sealed)), {});
  };
  EXPECT_EQ(as_text(parse("aG0=")->requests[0].conversation->messages),
            R"([{"role":"assistant","content":"","reasoning_content":"hm"}])");
  for (const char* bad : {"no base64", "jg=="}) {  // the second is a byte that is no UTF-8
    const auto result = parse(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().param, "input[0].encrypted_content") << bad;
  }
}

// What an item, a part or a call has that nobody reads is refused where it stands, or named there.
TEST(ResponsesBody, UnknownFieldsInsideOfItemsAreRefusedByTheirPlace) {
  const std::pair<const char*, const char*> kUnknown[] = {
      {R"({"role":"user","content":"a","foo":1})", "input[1].foo"},
      {R"({"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","foo":{}}]})",
       "input[1].content[0].foo"},
      {R"({"role":"assistant","content":[{"type":"refusal","refusal":"a","text":"b"}]})", "input[1].content[0].text"},
      {R"({"type":"function_call","call_id":"c","name":"f","arguments":"{}","foo":1})", "input[1].foo"},
      {R"({"type":"function_call_output","call_id":"c","output":"a","foo":1})", "input[1].foo"},
      {R"({"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a","foo":1}]})",
       "input[1].output[0].foo"},
      {R"({"type":"reasoning","summary":[],"foo":1})", "input[1].foo"},
      {R"({"type":"reasoning","summary":[{"type":"summary_text","text":"a","foo":1}]})", "input[1].summary[0].foo"},
  };
  for (const auto& [item, param] : kUnknown) {
    const auto body = parse_json(fmt::format(R"({{"input":[{{"role":"user","content":"x"}},{}]}})", item));
    ASSERT_TRUE(body) << item;
    const auto refused = parse_responses(*body, {});
    ASSERT_FALSE(refused) << item;
    EXPECT_EQ(refused.error().status, 400);
    EXPECT_EQ(refused.error().param, param) << item;
    std::vector<std::string> ignored;
    EXPECT_TRUE(parse_responses(*body, {}, &ignored)) << item;
    EXPECT_EQ(ignored, std::vector<std::string>{param}) << item;
  }
  // What answers have, clients send back.
  for (const char* item :
       {R"({"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"final_answer",)"
        R"("content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"a"}]})",
        R"({"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"a"}],)"
        R"("encrypted_content":null,"status":null})",
        R"({"id":"fc_1","type":"function_call","status":"completed","call_id":"c","name":"f","arguments":"{}"})"}) {
    const auto good = parse_responses(*parse_json(fmt::format(R"({{"input":[{}]}})", item)), {});
    EXPECT_TRUE(good) << good.error().message;
  }
}

TEST(Metadata, HasOpenAisBoundsWhereverItIsTaken) {
  const auto with = [](const std::string& rest, const Json& metadata) {
    auto body = *parse_json(rest);
    body["metadata"] = metadata;
    return body;
  };
  const auto param_of = [](const auto& result) { return result ? std::string() : result.error().param; };
  Json many = Json::object();
  for (int i = 0; i < 16; ++i) many[fmt::format("{}", i)] = "";
  Json too_many = many;
  too_many["16"] = "";
  std::string wide;  // 512 characters of two bytes
  for (int i = 0; i < 512; ++i) wide += "\xc3\xa4";
  const std::pair<Json, bool> kGiven[] = {
      {many, true},
      {too_many, false},
      {{{std::string(64, 'k'), wide}}, true},
      {{{std::string(65, 'k'), "v"}}, false},
      {{{"k", wide + "a"}}, false},
      {{{"k", 1}}, false},
      {{{"k", Json::object()}}, false},
      {Json::array(), false},
      {"text", false},
      {nullptr, true},
  };
  for (const auto& [metadata, is_good] : kGiven) {
    const std::string wanted = is_good ? "" : "metadata";
    EXPECT_EQ(param_of(parse_responses(with(R"({"input":"a"})", metadata), {})), wanted) << show(metadata);
    EXPECT_EQ(param_of(parse_chat(with(R"({"messages":[{"role":"user","content":"a"}]})", metadata), {})), wanted);
    EXPECT_EQ(param_of(parse_messages(
                  with(R"({"messages":[{"role":"user","content":"a"}],"max_tokens":5,"model":"m"})", metadata), {})),
              wanted);
  }
}

#ifdef __GLIBC__
// What is counted for a text is no less than what the parsed value takes of the heap, whatever it is made of.
TEST(JsonIn, BytesAsParsedAreNoLessThanTheyAre) {
  const auto many = [](const std::string& one, const char* open, const char* close) {
    std::string text = open + one;
    for (int i = 0; i < 20000; ++i) text += "," + one;
    return text + close;
  };
  std::string members = R"({"a":0)";
  for (int i = 0; i < 20000; ++i) members += fmt::format(R"(,"{}":[])", i);
  for (const auto& text :
       {many("[]", "[", "]"), many("{}", "[", "]"), many("1", "[", "]"), many("[[[]]]", "[", "]"),
        many(R"({"a":{"b":[]}})", "[", "]"), many(R"("")", "[", "]"), many(R"("0123456789abcdef")", "[", "]"),
        many(R"({"role":"user","content":"x"})", "[", "]"), members + "}", '"' + std::string(1000000, 'x') + '"'}) {
    const auto before = ::mallinfo2();
    const auto value = parse_json(text);
    const auto after = ::mallinfo2();
    ASSERT_TRUE(value) << value.error().message;
    EXPECT_LE(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd + bytes_as_parsed(text))
        << text.substr(0, 40);
  }
  EXPECT_EQ(bytes_as_parsed(R"("[{:,\"[")"), 3 * 9 + bytes_as_parsed(R"("")") - 3 * 2);  // a string alone
}
#endif

TEST(OpenAiRequest, FloatsThatAreWholeAreIntegers) {
  const auto parse = [](std::string_view text) { return parse_completion(*parse_json(text), Request{}); };
  const auto good = parse(R"({"prompt":[1.0,2],"max_tokens":2.0,"n":1e0,"seed":-0.0,"stop_token_ids":[3.0]})");
  ASSERT_TRUE(good) << good.error().message;
  const Request& q = good->requests[0];
  EXPECT_EQ(q.max_tokens, 2u);
  EXPECT_EQ(q.seed, 0u);
  EXPECT_EQ(*q.token_ids, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(q.stop_token_ids, std::vector<std::int32_t>{3});
  for (const char* bad : {"2.5", "1e300", "-1e300", "9.3e18", "1e19", "18446744073709551615", "-1.0", "true"}) {
    const auto result = parse(fmt::format(R"({{"prompt":"a","max_tokens":{}}})", bad));
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().param, "max_tokens") << bad;
  }
  EXPECT_FALSE(parse(R"({"prompt":[1.5]})"));
  EXPECT_FALSE(parse(R"({"prompt":[1e300]})"));
}

}  // namespace
}  // namespace zinc_rt::server

#include "client/openai_client.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"
#include "client/event_stream.h"

namespace zinc_rt::client {
namespace {

constexpr std::size_t kMaxErrorBytes = 64u << 10;

Headers headers_for(const ApiServer& server) {
  Headers headers{{"Content-Type", "application/json"}, {"Accept", "text/event-stream, application/json"}};
  if (!server.key.empty()) headers.emplace_back("Authorization", "Bearer " + server.key);
  return headers;
}

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

std::uint32_t count_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_unsigned() ? it->get<std::uint32_t>() : 0;
}

// Returns the message of an error answer. It is read from OpenAI's error object or a similar object of other servers.
// If the body has no such object, returns the beginning of the body.
std::string error_words(const std::string& body) {
  const auto json = Json::parse(body, nullptr, false);
  if (json.is_object()) {
    if (const auto it = json.find("error"); it != json.end()) {
      if (it->is_string()) return it->get<std::string>();
      if (it->is_object() && !text_of(*it, "message").empty()) return text_of(*it, "message");
    }
    for (const char* key : {"message", "detail"})
      if (const auto words = text_of(json, key); !words.empty()) return words;
  }
  return body.substr(0, 300);
}

// Returns a message for an answer whose status is not 200 and whose body has no error object. Proxies and redirects
// often send no text, or HTML.
std::string refusal_words(int status, const Headers& headers, const std::string& body) {
  auto out = fmt::format("status {}", status);
  if (const auto usual = words_of_status(status); !usual.empty()) out += fmt::format(" {}", usual);
  for (const auto& [name, value] : headers)
    if (name == "location") out += fmt::format(", to {}", value);
  if (const auto words = error_words(body); !words.empty()) out += ": " + words;
  return out;
}

// Answer holds the state of one streamed answer.
struct Answer {
  ApiEvents events;
  ApiEnd end;
  EventStream stream;
  bool is_stream = false, is_done = false;
  Headers headers;
  std::string body;  // the body of an answer that is not a stream of events

  void take_head(int status, const Headers& got) {
    end.status = status;
    headers = got;
    for (const auto& [name, value] : headers) {
      if (name == "content-type") is_stream = status == 200 && value.starts_with("text/event-stream");
      if (name == "retry-after") end.retry_after_s = std::max(0.0, std::atof(value.c_str()));
    }
  }

  bool take_body(std::string_view piece) {
    if (is_stream) return stream.push(piece, [&](std::string_view data) { return take_event(data); });
    if (body.size() < kMaxErrorBytes) body += piece;
    return true;
  }

  bool take_event(std::string_view data) {
    if (data == "[DONE]") {
      is_done = true;
      return true;
    }
    const auto json = Json::parse(data, nullptr, false);
    if (!json.is_object()) {
      end.error = "an event of the answer is no JSON object";
      return false;
    }
    if (json.contains("error")) {
      end.error = error_words(std::string(data));
      return true;
    }
    if (const auto it = json.find("usage"); it != json.end() && it->is_object()) take_usage(*it);
    const auto choices = json.find("choices");
    if (choices == json.end() || !choices->is_array()) return true;
    ApiPiece piece;
    for (const Json& choice : *choices) {
      if (!choice.is_object()) continue;
      if (auto reason = text_of(choice, "finish_reason"); !reason.empty()) end.finish_reason = std::move(reason);
      const auto delta = choice.find("delta");
      const Json& from = delta != choice.end() && delta->is_object() ? *delta : choice;
      piece.text += text_of(from, "content") + text_of(from, "text");
      piece.reasoning += text_of(from, "reasoning_content");
    }
    if (piece.text.empty() && piece.reasoning.empty()) return true;
    return !events.on_piece || events.on_piece(piece);
  }

  void take_usage(const Json& usage) {
    ApiUsage u{count_of(usage, "prompt_tokens"), count_of(usage, "completion_tokens"), 0};
    if (const auto it = usage.find("prompt_tokens_details"); it != usage.end() && it->is_object())
      u.cached_tokens = count_of(*it, "cached_tokens");
    end.usage = u;
  }

  void finish(const HttpEnd& http) {
    end.kind = http.kind;
    if (!http.error.empty())
      end.error = http.error;
    else if (http.kind == HttpEnd::kWhole && end.status != 200)
      end.error = refusal_words(end.status, headers, body);
    else if (http.kind == HttpEnd::kWhole && !is_stream)
      end.error = "the answer is no stream of events";
    else if (http.kind == HttpEnd::kWhole && end.error.empty() && !is_done && end.finish_reason.empty())
      end.error = "the stream ended before the answer did";
    events.on_end(end);
  }
};

}  // namespace

Result<ApiServer> api_server(std::string_view url, std::string key) {
  for (const char c : key)
    if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f)
      return fail(StatusCode::kInvalidArgument, "[url] the API key has a space or a character that no header may have");
  ZRT_TRY(auto parsed, parse_url(url));
  if (parsed.path.ends_with("/v1")) parsed.path.resize(parsed.path.size() - 3);
  return ApiServer{std::move(parsed), std::move(key)};
}

std::shared_ptr<HttpHandle> stream(HttpClient& client, const ApiServer& server, Json body, double timeout_s,
                                   ApiEvents events) {
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  HttpCall call;
  call.method = "POST";
  call.target = server.url.path + (body.contains("messages") ? "/v1/chat/completions" : "/v1/completions");
  call.headers = headers_for(server);
  call.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  call.timeout_s = timeout_s;
  const auto answer = std::make_shared<Answer>();
  answer->events = std::move(events);
  HttpEvents http;
  http.on_head = [answer](int status, const Headers& headers) { answer->take_head(status, headers); };
  http.on_body = [answer](std::string_view piece) { return answer->take_body(piece); };
  http.on_end = [answer](const HttpEnd& end) { answer->finish(end); };
  return client.start(std::move(call), std::move(http));
}

Result<std::string> first_model(HttpClient& client, const ApiServer& server) {
  HttpCall call;
  call.target = server.url.path + "/v1/models";
  call.headers = headers_for(server);
  call.timeout_s = 10;
  ZRT_TRY(const auto answer, fetch(client, std::move(call)));
  if (answer.status != 200)
    return fail(StatusCode::kUnavailable, "{}", refusal_words(answer.status, answer.headers, answer.body));
  const auto json = Json::parse(answer.body, nullptr, false);
  if (json.is_object() && json.contains("data") && json["data"].is_array())
    for (const Json& model : json["data"])
      if (model.is_object() && !text_of(model, "id").empty()) return text_of(model, "id");
  return fail(StatusCode::kUnavailable, "[url] {} names no model", server.url.authority());
}

}  // namespace zinc_rt::client

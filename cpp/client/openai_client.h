// A client of OpenAI's API, for any server that speaks it: streamed answers, and errors in the server's own words.
// Thread rule: as http_client.h; events come on the HttpClient's thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "client/http_client.h"

namespace zinc_rt::client {

using Json = nlohmann::ordered_json;

struct ApiServer {
  Url url;          // the part before /v1
  std::string key;  // empty: none
};
// Takes http://host:port with or without /v1 after it.
Result<ApiServer> api_server(std::string_view url, std::string key);

struct ApiUsage {
  std::uint32_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
};

// The part of an answer that one event adds.
struct ApiPiece {
  std::string text, reasoning;
};

struct ApiEnd {
  HttpEnd::Kind kind = HttpEnd::kWhole;  // how the HTTP message ended
  int status = 0;                        // 0: no answer came
  std::string error;                     // empty: all of the answer came
  double retry_after_s = 0;
  std::string finish_reason;
  std::optional<ApiUsage> usage;
};

struct ApiEvents {
  std::function<bool(const ApiPiece& piece)> on_piece;  // for any choice; return false to hang up
  std::function<void(const ApiEnd& end)> on_end;        // last, once
};

// A request for chat/completions if `body` has messages, for completions if it has a prompt. Adds `stream` and
// `stream_options`.
std::shared_ptr<HttpHandle> stream(HttpClient& client, const ApiServer& server, Json body, double timeout_s,
                                   ApiEvents events);

// The first model that the server lists. Errors: kUnavailable, in the server's words.
Result<std::string> first_model(HttpClient& client, const ApiServer& server);

}  // namespace zinc_rt::client

// Implements a client for any server with OpenAI's API, which benchmarks use. It streams answers and reports errors
// with the server's own message.
// Thread rule: that of http_client.h; callbacks run on the HttpClient's thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "client/http_client.h"

namespace zinc_rt::client {

using Json = nlohmann::ordered_json;

struct ApiServer {
  Url url;          // address of the server, without /v1
  std::string key;  // API key; empty if the server needs none
};
// Parses the address of a server: http://host:port, with or without /v1 after it.
Result<ApiServer> api_server(std::string_view url, std::string key);

struct ApiUsage {
  std::uint32_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
};

// Holds the text that one event of a stream adds to the answer.
struct ApiPiece {
  std::string text, reasoning;
};

struct ApiEnd {
  HttpEnd::Kind kind = HttpEnd::kWhole;  // how the HTTP message ended
  int status = 0;                        // HTTP status; 0 if no answer arrived
  std::string error;                     // describes what went wrong; empty if the whole answer arrived
  double retry_after_s = 0;
  std::string finish_reason;
  std::optional<ApiUsage> usage;
};

struct ApiEvents {
  // Called for each piece of any choice. It returns false to close the connection.
  std::function<bool(const ApiPiece& piece)> on_piece;
  std::function<void(const ApiEnd& end)> on_end;  // called exactly once, after all other callbacks
};

// Starts a request to chat/completions if `body` has messages, or to completions if it has a prompt. Adds the fields
// `stream` and `stream_options` to the body.
std::shared_ptr<HttpHandle> stream(HttpClient& client, const ApiServer& server, Json body, double timeout_s,
                                   ApiEvents events);

// Returns the name of the first model that the server lists. Errors: kUnavailable with the server's message.
Result<std::string> first_model(HttpClient& client, const ApiServer& server);

}  // namespace zinc_rt::client

// GenerationCall is the content of a request to a generating endpoint. The functions below read it from the body, one
// file per API: read_<api>.cpp. Each field of a body is either used or refused with an error that names it.
// Thread rule: pure functions on plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/api/json_in.h"
#include "zinc_rt/request.h"

namespace zinc_rt::server {

enum class Api : std::uint8_t { kChat, kText, kTokens, kMessages, kResponses, kOllamaChat, kOllamaText };

struct GenerationCall {
  Api api = Api::kChat;
  std::vector<Request> requests;  // one request per prompt; choice c of prompt i has the index i * n + c in the answer
  bool stream = false, include_usage = false;
  bool resumable = false;       // the stream continues for a while if its client disconnects
  bool echo = false;            // the answer's text begins with the prompt
  bool wants_logprobs = false;  // the client wants logprobs of generated tokens; with `echo` also of prompt tokens
  std::optional<std::uint32_t> n_top;  // how many likely tokens the answer lists; absent: as many as Request::logprobs
  // If set, the answer has a separate field with the prompt's logprobs and this many likely tokens.
  std::optional<std::uint32_t> prompt_logprobs;
  bool return_token_ids = false;
  bool wants_timings = false;
  bool include_reasoning = true;
  std::string format_field;     // the field that sets the output format; empty: none
  bool names_the_tool = false;  // the client named the tool that the model must call
  // The answer also contains the reasoning in an opaque form, which clients send back in the next request.
  bool seals_reasoning = false;
  std::string service_tier;  // the client's value; empty: not given
  bool only_loads = false;   // the request only loads the model and generates nothing
  // The client sent keep_alive 0, so the model may be unloaded after the answer, or with only_loads at once.
  bool gives_model_back = false;
  std::uint32_t wanted_context = 0;  // the context length that the client wants; 0: not given
  std::string stored_input;          // the input items, a JSON list, if the answer will be stored
  std::string shown_again;           // request fields that the answer repeats, a JSON object; empty: none
};

// Read a body. An absent field has its value in `defaults`. An unknown field is an error if `ignored` is null; else its
// name is appended to `ignored`.
using Ignored = std::vector<std::string>*;
ApiResult<GenerationCall> parse_chat(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_completion(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_generate(const Json& body, const Request& defaults, Ignored ignored = nullptr);

// Readers of Anthropic's API, OpenAI's Responses, and Ollama's API.
ApiResult<GenerationCall> parse_messages(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_responses(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_ollama_chat(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_ollama_generate(const Json& body, const Request& defaults, Ignored ignored = nullptr);

// Converts a chat's messages to the form that templates take: text parts are joined by line feeds, and role developer
// becomes system. Errors: 400 that names the message and the field.
ApiResult<Json> read_messages(const Json& messages, Ignored ignored = nullptr);
// Reads the content of a message, which is a text or a list of text parts. `role` is the message's role; `at` is its
// place in the body, for errors.
ApiResult<Json> read_content(const Json& content, const std::string& role, const std::string& at);
// Checks that `tools` is a list of functions. Errors: 400.
ApiResult<void> check_tools(const Json& tools);

}  // namespace zinc_rt::server

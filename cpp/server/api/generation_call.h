// The content of a request to a generating endpoint, and the readers of its body, one file per API: read_<api>.cpp. A
// reader uses every field or refuses it by name.
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
  std::vector<Request> requests;  // one for each prompt; choice c of prompt i has the index i * n + c
  bool stream = false, include_usage = false;
  bool resumable = false;              // the stream goes on without its client for a while
  bool echo = false;                   // the prompt is part of the text
  bool wants_logprobs = false;         // of generated tokens, and with `echo` of the prompt's
  std::optional<std::uint32_t> n_top;  // how many likely tokens are shown; absent: as many as the requests ask for
  std::optional<std::uint32_t> prompt_logprobs;  // the prompt's are shown in a field of their own, with so many likely
                                                 // tokens
  bool return_token_ids = false;
  bool wants_timings = false;
  bool include_reasoning = true;
  std::string format_field;          // which field says what the answer must look like; empty: none
  bool names_the_tool = false;       // the call that is made was named by the client
  bool seals_reasoning = false;      // it is shown in a form that the client sends back as well
  std::string service_tier;          // as the client asked for it; empty: it did not
  bool only_loads = false;           // there is nothing to generate: the model is to be loaded
  bool gives_model_back = false;     // the model is not wanted any more; with only_loads it is to be unloaded
  std::uint32_t wanted_context = 0;  // 0: not said
  std::string stored_input;          // of an answer that is to be kept: what was said before it, a JSON list
  std::string shown_again;           // fields of the request that the answer has too, a JSON object; empty: none
};

// Absent sampling fields keep the values of `defaults`. Unknown fields are refused or, with `ignored`, listed there.
using Ignored = std::vector<std::string>*;
ApiResult<GenerationCall> parse_chat(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_completion(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_generate(const Json& body, const Request& defaults, Ignored ignored = nullptr);

// Anthropic's API, OpenAI's Responses, and Ollama's.
ApiResult<GenerationCall> parse_messages(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_responses(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_ollama_chat(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_ollama_generate(const Json& body, const Request& defaults, Ignored ignored = nullptr);

// A chat's messages in the form that templates take: parts of text joined by line feeds, developer as system. Errors:
// 400 naming the message and the field.
ApiResult<Json> read_messages(const Json& messages, Ignored ignored = nullptr);
// A list of functions. Errors: 400.
ApiResult<void> check_tools(const Json& tools);

}  // namespace zinc_rt::server

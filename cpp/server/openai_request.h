// Reads the bodies of /v1/chat/completions, /v1/completions and /generate into the engine's requests. Every field is
// honoured, or refused by its name. openai_chat.cpp, openai_completion.cpp and openai_messages.cpp hold the functions.
// Thread rule: pure functions on plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/json_in.h"
#include "zinc_rt/request.h"

namespace zinc_rt::server {

enum class Api : std::uint8_t { kChat, kText, kTokens };

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
  bool split_reasoning = true;  // <think>...</think> is shown apart from the answer
  bool include_reasoning = true;
  // Whether the prompt ends within the reasoning, where the messages decide that; absent: the template decides.
  std::optional<bool> prompt_opens_reasoning;
  std::string service_tier;  // as the client asked for it; empty: it did not
};

// Sampling fields that are absent keep the values of `defaults`.
// Unknown fields are refused or, with `ignored`, named there.
using Ignored = std::vector<std::string>*;
ApiResult<GenerationCall> parse_chat(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_completion(const Json& body, const Request& defaults, Ignored ignored = nullptr);
ApiResult<GenerationCall> parse_generate(const Json& body, const Request& defaults, Ignored ignored = nullptr);

// The messages of a chat as the templates take them: parts of text joined by line feeds, developer as system. Errors:
// 400 naming the message and the field.
ApiResult<Json> read_messages(const Json& messages, Ignored ignored = nullptr);
// A list of functions. Errors: 400.
ApiResult<void> check_tools(const Json& tools);

}  // namespace zinc_rt::server

// A conversation in the terminal, or from a pipe with one line per turn (`zinc-rt chat`). Whether an engine or a server
// answers depends only on the Answerer.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "zinc_rt/request.h"
#include "zinc_rt/status.h"

namespace zinc_rt::tools {

struct TurnAnswer {
  std::string text;           // text of the answer; if interrupted, the part that was generated
  std::string finish_reason;  // empty if not known
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;  // 0: not known
  double tokens_per_s = 0;
};

// Talk is the conversation so far, and its settings. The user's commands change it.
struct Talk {
  Request request;                // the sampling settings and max_tokens of each request
  std::string system;             // empty: none
  std::uint32_t max_context = 0;  // tokens; 0: not known
  nlohmann::ordered_json history = nlohmann::ordered_json::array();

  nlohmann::ordered_json messages() const;  // returns all messages as JSON, the system message first
};

// Generates the answer to the last message. Prints its text as it arrives, then a line break. The function must stop
// when was_interrupted() returns true.
using Answerer = std::function<Result<TurnAnswer>(const Talk& talk)>;

// Runs until the end of input or /exit. Returns kFailed if the input is not a terminal and the last question got no
// answer.
int converse(Talk& talk, const Answerer& answerer);

}  // namespace zinc_rt::tools

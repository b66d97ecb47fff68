// The answers of the OpenAI API and of /generate as text: whole, or as server-sent events.
// Thread rule: pure functions; TokenNames as Engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai_request.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

// The fields that all parts of an answer share.
struct AnswerHead {
  Api api = Api::kChat;
  std::string id, model, fingerprint, service_tier;
  std::int64_t created_s = 0;
};

// Tokens as the API shows them: their text, or "bytes:\xNN" for a part of a character; and their bytes.
class TokenNames {
 public:
  TokenNames(const Engine& engine, std::string model) : engine_(engine), model_(std::move(model)) {}
  std::string bytes(std::int32_t id) const { return engine_.token_bytes(id, model_); }
  std::string name(std::int32_t id) const;

 private:
  const Engine& engine_;
  std::string model_;
};

// A choice, or what one event of a stream adds to it.
struct ChoiceText {
  std::uint32_t index = 0;
  std::string text, reasoning;
  const std::vector<TokenLogprob>* logprobs = nullptr;         // null: not asked for
  const std::vector<TokenLogprob>* echo_logprobs = nullptr;    // the prompt's, shown before those
  const std::vector<TokenLogprob>* prompt_logprobs = nullptr;  // the prompt's, in a field of their own
  std::uint32_t n_top = 0, n_prompt_top = 0;                   // how many entries of `top` are shown
  std::uint32_t text_offset = 0;                               // for completions: how many characters come before it
  const std::vector<std::int32_t>* token_ids = nullptr;        // null: not asked for
  std::string finish_reason;                                   // empty: it has not ended
  bool has_role = false;                                       // for the first event of a chat's stream
};

// {"prompt_tokens", "completion_tokens", "total_tokens", ..._details}
std::string usage_json(const Usage& usage, std::uint32_t reasoning_tokens);
std::string timings_json(const Timings& timings);

// "data: {...}\n\n"; with_null_usage: the stream ends with a chunk of the usage.
std::string chunk_event(const AnswerHead& head, const ChoiceText& choice, const TokenNames& names,
                        bool with_null_usage);
std::string usage_event(const AnswerHead& head, const std::string& usage, const std::string& timings);
// The whole answer; `timings` may be empty.
std::string whole_answer(const AnswerHead& head, const std::vector<ChoiceText>& choices, const TokenNames& names,
                         const std::string& usage, const std::string& timings);

std::uint32_t n_characters(std::string_view utf8);

}  // namespace zinc_rt::server

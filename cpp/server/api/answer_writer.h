// Writes the answers of one API, whole or as the pieces of a stream. There is one class per API (write_*.cpp) and one
// writer per answer; endpoints/generate.cpp has the table of classes.
// Thread rule: GenerationJob calls it, never two threads at once for one choice.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/api/api_error.h"
#include "server/api/generation_call.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

// The fields that all parts of an answer share.
struct AnswerHead {
  std::string id, model, fingerprint, service_tier;
  std::int64_t created_s = 0;
};

// Tokens as APIs show them: the text, or "bytes:\xNN" for a part of a character; and the bytes.
class TokenNames {
 public:
  TokenNames(const Engine& engine, std::string model) : engine_(engine), model_(std::move(model)) {}
  std::string bytes(std::int32_t id) const { return engine_.token_bytes(id, model_); }
  std::string name(std::int32_t id) const;

 private:
  const Engine& engine_;
  std::string model_;
};

// The part of a choice that an event adds.
struct AnswerPart {
  std::uint32_t index = 0;  // of the choice
  bool is_first = false;    // nothing of this choice was written before
  std::string echo;         // the prompt, where it belongs to the text; with is_first alone
  const StreamEvent& event;
};

// A choice that has ended.
struct AnswerChoice {
  std::uint32_t index = 0;
  std::string echo;
  const Completion& completion;
  const Completion& first;  // the first choice of the same prompt, which has the prompt's logprobs
};

struct AnswerTotals {
  Usage usage;
  Timings timings;
};

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual const char* stream_type() const { return "text/event-stream"; }
  // Each returns whole events, or nothing. `usage`: what is known before the first token.
  virtual std::string begin(const Usage&) { return {}; }
  virtual std::string part(const AnswerPart& part) = 0;
  // `is_first`: nothing of this choice was written before.
  virtual std::string end_choice(const AnswerChoice& choice, bool is_first) = 0;
  virtual std::string end(const AnswerTotals& totals) = 0;
  virtual std::string failed(const ApiError& error) = 0;  // the last of the stream

  // For an answer that is to be kept, once it has ended: the answer as an object. Otherwise empty.
  virtual std::string kept() const { return {}; }

  virtual std::string whole(std::span<const AnswerChoice> choices, const AnswerTotals& totals) = 0;
};

// The arguments of a writer. They must outlive it.
struct WriterInput {
  const AnswerHead& head;
  const GenerationCall& call;
  const TokenNames& names;
};
using MakeWriter = std::unique_ptr<AnswerWriter> (*)(const WriterInput&);

std::unique_ptr<AnswerWriter> write_openai(const WriterInput& input);     // chats, completions and /generate
std::unique_ptr<AnswerWriter> write_messages(const WriterInput& input);   // Anthropic's /v1/messages
std::unique_ptr<AnswerWriter> write_responses(const WriterInput& input);  // OpenAI's /v1/responses
std::unique_ptr<AnswerWriter> write_ollama(const WriterInput& input);     // Ollama's /api/chat and /api/generate

// The answer to a request that only loads or unloads a model.
std::string ollama_loaded(Api api, const std::string& model, bool is_unloaded);

// "2026-11-26T04:05:06.123456Z"
std::string utc_time(std::chrono::system_clock::time_point time);

}  // namespace zinc_rt::server

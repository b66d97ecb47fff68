// AnswerWriter writes the answer to one API call, whole or as the pieces of a stream. Each API has a class
// (write_*.cpp), and each answer a writer. generation_apis.cpp has the table of classes.
// Thread rule: GenerationJob calls it from several threads, but from one at a time for each choice.
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

// AnswerHead holds the fields that all parts of an answer share.
struct AnswerHead {
  std::string id, model, fingerprint, service_tier;
  std::int64_t created_s = 0;
};

// Returns tokens in the form in which answers show them. name() returns the token's text, or "bytes:\xNN" if the token
// is a part of a character. bytes() returns the raw bytes.
class TokenNames {
 public:
  TokenNames(const Engine& engine, std::string model) : engine_(engine), model_(std::move(model)) {}
  std::string bytes(std::int32_t id) const { return engine_.token_bytes(id, model_); }
  std::string name(std::int32_t id) const;

 private:
  const Engine& engine_;
  std::string model_;
};

// AnswerPart holds what one event of the engine adds to the answer of a choice.
struct AnswerPart {
  std::uint32_t index = 0;  // the choice's index
  bool is_first = false;    // true for the first part of this choice
  std::string echo;         // the prompt, if the request wants it repeated; only with is_first
  const StreamEvent& event;
};

// A choice that has ended.
struct AnswerChoice {
  std::uint32_t index = 0;
  std::string echo;
  const Completion& completion;
  const Completion& first;  // the first choice of the same prompt, which holds the prompt's logprobs
};

// AnswerTotals is what all choices of the answer used together.
struct AnswerTotals {
  Usage usage;
  Timings timings;
};

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual const char* stream_type() const { return "text/event-stream"; }
  // The five functions below return the text of whole events of a stream, or an empty text. begin() gets the usage that
  // is known before the first token.
  virtual std::string begin(const Usage&) { return {}; }
  virtual std::string part(const AnswerPart& part) = 0;
  // `is_first`: no part of this choice was written before.
  virtual std::string end_choice(const AnswerChoice& choice, bool is_first) = 0;
  virtual std::string end(const AnswerTotals& totals) = 0;
  virtual std::string failed(const ApiError& error) = 0;  // returns the last event of a stream that ends with an error

  // Returns an ended answer that will be stored, as a JSON object. Empty if it is not stored.
  virtual std::string kept() const { return {}; }

  virtual std::string whole(std::span<const AnswerChoice> choices, const AnswerTotals& totals) = 0;
};

// WriterInput holds what a writer is constructed from. It must outlive the writer.
struct WriterInput {
  const AnswerHead& head;
  const GenerationCall& call;
  const TokenNames& names;
};
using MakeWriter = std::unique_ptr<AnswerWriter> (*)(const WriterInput&);

std::unique_ptr<AnswerWriter> write_openai(const WriterInput& input);     // for chats, completions and /generate
std::unique_ptr<AnswerWriter> write_messages(const WriterInput& input);   // for Anthropic's /v1/messages
std::unique_ptr<AnswerWriter> write_responses(const WriterInput& input);  // for OpenAI's /v1/responses
std::unique_ptr<AnswerWriter> write_ollama(const WriterInput& input);     // for Ollama's /api/chat and /api/generate

// Returns Ollama's answer to a request that only loads or unloads a model.
std::string ollama_loaded(Api api, const std::string& model, bool is_unloaded);

// Returns the time in UTC, such as "2026-11-26T04:05:06.123456Z".
std::string utc_time(std::chrono::system_clock::time_point time);

}  // namespace zinc_rt::server

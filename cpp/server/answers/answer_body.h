// AnswerBody turns the events and completions of one API call into the text of its answer, whole or as the pieces of a
// stream. It owns the call and what is written so far of each choice. Choice c of prompt p has the index p * n + c.
// Thread rule: as AnswerWriter: several threads, but one at a time for each choice.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/answers/answer_writer.h"
#include "server/api/generation_call.h"
#include "zinc_rt/engine.h"
#include "zinc_rt/session.h"

namespace zinc_rt::server {

// AnswerSum sums up the choices of an answer that has ended.
struct AnswerSum {
  AnswerTotals totals;  // the timings are those of the first prompt
  std::string finish;   // why the first choice ended, or "bad_logits" if any choice did so
  std::optional<Error> error;
};

class AnswerBody {
 public:
  // engine_model: the engine's name of the model.
  AnswerBody(const Engine& engine, std::string engine_model, AnswerHead head, GenerationCall call,
             MakeWriter make_writer);
  AnswerBody(const AnswerBody&) = delete;
  AnswerBody& operator=(const AnswerBody&) = delete;

  const GenerationCall& call() const { return call_; }
  const AnswerHead& head() const { return head_; }
  std::uint32_t n_prompts() const { return static_cast<std::uint32_t>(call_.requests.size()); }
  std::uint32_t n_choices() const { return n_prompts() * n_; }  // of all prompts
  // Returns the request for a prompt. It is moved out of the call unless the answer repeats the prompt, so it can be
  // taken once.
  Request take_request(std::uint32_t prompt);

  const char* stream_type() const { return writer_->stream_type(); }  // the Content-Type of a stream
  // Each of the next five functions returns the text of whole events of a stream, or an empty text.
  std::string begin(const Usage& usage) { return writer_->begin(usage); }
  std::string part(std::uint32_t prompt, const StreamEvent& event);
  std::string end_choice(std::uint32_t prompt, std::uint32_t index, const RequestHandle& handle);
  std::string end(const AnswerTotals& totals) { return writer_->end(totals); }
  std::string failed(const ApiError& error) { return writer_->failed(error); }

  // Returns the body of an answer that is not streamed. handles[i] is the ended request of prompt i.
  std::string whole(std::span<const RequestHandle> handles, const AnswerTotals& totals);
  // Returns the ended answer in the form in which it is stored; empty if it is not stored.
  std::string kept() const { return writer_->kept(); }

 private:
  std::string echo_of(std::uint32_t prompt) const;

  const Engine& engine_;
  const std::string engine_model_;
  const AnswerHead head_;
  GenerationCall call_;
  const TokenNames names_;
  const std::uint32_t n_;  // choices per prompt
  const std::unique_ptr<AnswerWriter> writer_;
  std::vector<std::uint8_t> has_begun_;  // index: choice; 1 once a part of it was written
};

// handles[i] is the ended request of prompt i.
AnswerSum sum_up(std::span<const RequestHandle> handles);

}  // namespace zinc_rt::server

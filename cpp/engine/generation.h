// Generation is one running completion: one of a request's n choices, from the checked request to its last event. The
// step thread generates its tokens. The drainer converts the tokens to text and events, and searches for stop strings.
// The client reads the events.
// Thread rule: any thread may call check(), take_prompt() and the functions below "Client". Only the drainer calls the
// functions below "Drainer". Only the step thread calls the functions below "Step thread"; its helper threads may call
// make_details() too.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/answer_mask.h"
#include "engine/drive.h"
#include "engine/model.h"
#include "engine/output_ring.h"
#include "engine/output_stage.h"
#include "engine/replica.h"
#include "engine/tenant_state.h"
#include "engine/timeline.h"
#include "sched/request.h"
#include "spec/drafter.h"
#include "zinc_rt/sink.h"

namespace zinc_rt {

class EngineCore;

// TokenDetails holds what a request may want to know about a generated token besides its id: a hash of the logits, and
// log-probabilities.
struct TokenDetails {
  std::uint64_t logits_hash = 0;
  TokenLogprob logprob;
};

// PromptRoom tells how many tokens a prompt may have at most. `bound` names the limit in error messages.
struct PromptRoom {
  std::uint64_t tokens = 0;
  std::string bound;
  Reason reason = Reason::kNone;  // the error's reason if the prompt exceeds the limit
};

class Generation {
 public:
  // take_prompt(), prompt_field() and check() are defined in generation_request.cpp.
  // take_prompt() moves the prompt out of the request (text, messages and tools) and returns its tokens. `add_special`
  // is the parameter of Tokenizer::encode. If `add_special` is empty, BOS and EOS are added as the model expects for
  // this kind of prompt. Errors: those of the template and the tokenizer; kInvalidArgument if the prompt has more
  // tokens than `room`; kCancelled.
  static Result<Prompt> take_prompt(const Model& model, Request& request, const std::string& system,
                                    const PromptRoom& room, std::optional<bool> add_special = {});
  // Returns the name of the request's member that holds the prompt, for error messages.
  static const char* prompt_field(const Request& request);
  // Checks every number that a client can set. Errors: kInvalidArgument.
  static Status check(const Request& request, const Model& model);

  // `index`: which of the request's n choices this is.
  Generation(std::shared_ptr<Model> model, std::shared_ptr<TenantState> tenant, const Request& request,
             const Prompt& prompt, std::uint64_t seed, std::uint32_t index, std::shared_ptr<Sink> sink);

  Model& model() const { return *model_; }
  TenantState& tenant() const { return *tenant_; }
  RequestName name() const { return {request_.request_id, request_.traceparent}; }
  // Returns the request's parameters for the scheduler. The step thread sets `user` later (engine/generation_table.h).
  sched::RequestParams params(std::span<const std::int32_t> prompt, sched::Qos qos) const;

  // Any client's thread may call the functions from here on.
  void cancel();
  bool is_done() const;
  Status wait() const;
  bool wait_for(double timeout_ms) const;  // waits for the end, and until the reader has taken all events from the sink
  Status error() const;
  Completion completion() const;

  // Only the step thread calls the functions from here on.
  bool is_held_up() const { return is_held_up_.load(std::memory_order_relaxed); }
  // Calls the request's logits processor, which may change the logits. Returns false if it failed.
  bool process(std::span<const std::int32_t> tokens, std::span<float> logits);
  // Null if no tokens are guessed for this request.
  spec::Drafter* drafter() { return drafter_ ? &*drafter_ : nullptr; }
  const std::shared_ptr<AnswerMask>& mask() const { return mask_; }  // null if no grammar restricts the answer
  // Returns the mask for the pick after n_guessed tokens of the guess. Returns nullopt if computing it failed.
  std::optional<std::span<const std::uint32_t>> mask_words(std::uint32_t n_guessed);
  // Called if the processor or the mask allows no token; the request then ends.
  void no_token_left();
  // Stores the pooled row of the text as the request's embedding. Returns false if the row has no direction (its length
  // is 0 or not finite); the request then ends as bad_logits.
  bool take_embedding(std::span<const float> row);
  std::unique_ptr<TokenDetails> make_details(const LogitsRow& row) const;  // several threads may call it at once
  // Called for each of the prompt's tokens from the second on, in order, before the first generated token or the end of
  // the request.
  void add_prompt_logprob(TokenLogprob logprob) { prompt_logprobs_.push_back(std::move(logprob)); }

  // Only the drainer calls the functions from here on.
  void on_admitted(bool is_first, double waited_ms, std::uint32_t cached_tokens);
  void on_token(const OutputEvent& token, const TokenDetails* details);
  void on_preempted();
  void on_finished(sched::Finish reason);
  // Returns whether events, or the final event, wait for room in the sink. If so, the drainer calls retry() every
  // millisecond.
  bool is_waiting() const { return !held_.empty() || has_finish_; }
  void retry();
  // Called when nobody reads the stream any more.
  void abandon() { is_abandoned_.store(true, std::memory_order_relaxed); }
  // Ends the request with an error before the scheduler has seen it.
  void fail_with(Error error);
  // Returns, once, why the scheduler must end the request: its text has ended, or its sink failed. Else returns
  // nullopt.
  std::optional<sched::Finish> take_end() { return std::exchange(wanted_end_, std::nullopt); }

  // EngineCore sets the following members when it submits the request. `replica` runs the generation. on_cancel()
  // reports a cancellation. on_wait() lets a caller wait. `self` keeps this object alive until its last event.
  Replica* replica = nullptr;  // the replica that runs the generation; it belongs to model()
  std::function<void()> on_cancel;
  Waiter on_wait;
  std::shared_ptr<Generation> self;
  sched::RequestId id = 0;    // only the step thread uses it
  bool was_admitted = false;  // only the step thread uses it
  // If the request wants n choices of a prompt, `leader` is the choice that computes the prompt for the other choices.
  // Submission sets it, and the step thread resets it after it has read the leader's id.
  std::shared_ptr<Generation> leader;
  sched::RequestParams pending;  // parameters for the scheduler, until the step thread takes them

 private:
  bool has_processor() const { return request_.logits_processor != nullptr; }
  bool scores_prompt() const { return request_.prompt_logprobs.has_value() && index_ == 0; }
  void keep(Error error);  // stores the error with which the request will end
  void offer(StreamEvent event);
  void offer_held();
  // Appends the event's parts to the completion, and sets the ids of new tool calls. REQUIRES: the caller holds mutex_.
  void keep_pieces(StreamEvent& event);
  std::string call_id(std::uint32_t call) const;
  void end();
  void note_clamps();
  void publish_prompt_logprobs();  // REQUIRES: mutex_

  std::shared_ptr<Model> model_;
  std::shared_ptr<TenantState> tenant_;
  Request request_;
  std::uint32_t n_prompt_, second_text_, index_;
  std::uint64_t prompt_hash_;
  sched::Micros started_, last_;
  double interval_ms_ = 0;  // ms per token in the last step that produced tokens
  Sampling sampling_;
  std::shared_ptr<Sink> sink_;
  const std::shared_ptr<AnswerMask> mask_;
  Speculation speculation_{.most = 0};
  bool has_prediction_ = false;
  std::optional<spec::Drafter> drafter_;       // used by the step thread
  std::vector<TokenLogprob> prompt_logprobs_;  // written by the step thread until it reports that the prompt is done
  // Only the drainer uses the members from here down to finish_.
  OutputStage output_;
  std::deque<StreamEvent> held_;  // events for which the sink had no room; the drainer offers them again
  // Set if the text has ended or the sink has failed. take_end() passes it to the step loop.
  std::optional<sched::Finish> wanted_end_;
  bool has_text_end_ = false, sink_failed_ = false;
  bool has_finish_ = false;  // the scheduler has ended the request; the final event is sent after held_ is empty
  sched::Finish finish_ = sched::Finish::kStop;
  // is_held_up_: held_ is not empty, so the step loop leaves the request out of steps. is_abandoned_: no client reads
  // the events.
  std::atomic<bool> is_held_up_{false}, is_abandoned_{false};

  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool is_done_ = false;
  Completion completion_;
  Error error_;
  bool has_error_ = false;
};

}  // namespace zinc_rt

// One running completion, from the checked request to its last event. The step thread makes its tokens. The drainer
// turns them into text and events and looks for stop strings. The client reads.
// Thread rule: the calls below "Client" and check() and take_prompt() from any thread; those below "Drainer" from the
// drainer alone; those below "Step thread" from that thread, make_details() also from its helpers.
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
#include "engine/output_stage.h"
#include "engine/replica.h"
#include "engine/tenant_state.h"
#include "engine/timeline.h"
#include "sched/request.h"
#include "zinc_rt/sink.h"

namespace zinc_rt {

class EngineCore;

// What a request may want beside the id of each token.
struct TokenDetails {
  std::uint64_t logits_hash = 0;
  TokenLogprob logprob;
};

// The most tokens that a prompt may have, and the name of that limit, for errors.
struct PromptRoom {
  std::uint64_t tokens = 0;
  std::string bound;
  Reason reason = Reason::kNone;  // of the error of a prompt that has more
};

class Generation {
 public:
  // generation_request.cpp
  // Returns the prompt's tokens. Removes the text or messages and the tools from the request.
  // add_special: as for Tokenizer::encode; if empty, BOS and EOS are those that the model uses for such a prompt.
  // Errors: those of the template and the tokenizer; kInvalidArgument also for a text with more tokens than there is
  // room for; kCancelled.
  static Result<Prompt> take_prompt(const Model& model, Request& request, const std::string& system,
                                    const PromptRoom& room, std::optional<bool> add_special = {});
  // The name of the member in which a request gives its prompt, for errors.
  static const char* prompt_field(const Request& request);
  // Checks every number from a client.
  static Status check(const Request& request, const Model& model);

  // `index`: the number of this choice among the request's n choices.
  Generation(std::shared_ptr<Model> model, std::shared_ptr<TenantState> tenant, const Request& request,
             const Prompt& prompt, std::uint64_t seed, std::uint32_t index, std::shared_ptr<Sink> sink);

  Model& model() const { return *model_; }
  TenantState& tenant() const { return *tenant_; }
  RequestName name() const { return {request_.request_id, request_.traceparent}; }
  // For the scheduler. The step thread sets `user` (engine/generation_table.h).
  sched::RequestParams params(std::span<const std::int32_t> prompt, sched::Qos qos) const;

  // Client.
  void cancel();
  bool is_done() const;
  Status wait() const;
  bool wait_for(double timeout_ms) const;  // for the end, and until the reader of the sink has all events
  Status error() const;
  Completion completion() const;

  // Step thread.
  bool is_held_up() const { return is_held_up_.load(std::memory_order_relaxed); }
  bool process(std::span<const std::int32_t> tokens, std::span<float> logits);  // false: it failed
  const std::shared_ptr<AnswerMask>& mask() const { return mask_; }             // null: the answer is free
  // The mask of the next pick. Nothing: making it failed.
  std::optional<std::span<const std::uint32_t>> mask_words();
  void no_token_left();  // that the processor or the mask allows
  // The pooled row of the text. Returns false if it has no direction; the request then ends as bad_logits.
  bool take_embedding(std::span<const float> row);
  std::unique_ptr<TokenDetails> make_details(const LogitsRow& row) const;  // several threads may call it at once
  // For the prompt's tokens from the second on, in order, before the first generated token or the request's end.
  void add_prompt_logprob(TokenLogprob logprob) { prompt_logprobs_.push_back(std::move(logprob)); }

  // Drainer.
  void on_admitted(bool is_first, double waited_ms, std::uint32_t cached_tokens);
  void on_token(std::int32_t token, sched::Micros time, const TokenDetails* details);
  void on_preempted();
  void on_finished(sched::Finish reason);
  // Whether events, or the end after them, wait for room in the sink. If so, retry() is called from time to time.
  bool is_waiting() const { return !held_.empty() || has_finish_; }
  void retry();
  void abandon() { is_abandoned_.store(true, std::memory_order_relaxed); }  // its reader has left
  void fail_with(Error error);                                              // before the scheduler has it
  // What the scheduler must be told: the text has ended, or the sink failed. Returned once.
  std::optional<sched::Finish> take_end() { return std::exchange(wanted_end_, std::nullopt); }

  // Set by the core: where it runs, how to report a cancellation or a waiting caller, and what keeps this object alive
  // until its last event.
  Replica* replica = nullptr;  // of model()
  std::function<void()> on_cancel;
  Waiter on_wait;
  std::shared_ptr<Generation> self;
  sched::RequestId id = 0;             // the step thread's
  bool was_admitted = false;           // the step thread's
  std::shared_ptr<Generation> leader;  // whose prompt this one shares; reset once the step thread has read its id
  sched::RequestParams pending;        // until the step thread takes it

 private:
  bool has_processor() const { return request_.logits_processor != nullptr; }
  bool scores_prompt() const { return request_.prompt_logprobs.has_value() && index_ == 0; }
  void keep(Error error);  // what the request ends with
  void offer(StreamEvent event);
  void offer_held();
  // Adds the event's parts to the completion and gives new tool calls their ids. REQUIRES: mutex_.
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
  Sampling sampling_;
  std::shared_ptr<Sink> sink_;
  const std::shared_ptr<AnswerMask> mask_;
  std::vector<TokenLogprob> prompt_logprobs_;  // the step thread's, until it reports that the prompt is done
  // the drainer's
  OutputStage output_;
  std::deque<StreamEvent> held_;  // what the sink had no room for
  std::optional<sched::Finish> wanted_end_;
  bool has_text_end_ = false, sink_failed_ = false;
  bool has_finish_ = false;  // the scheduler is done with it; the end follows the last held event
  sched::Finish finish_ = sched::Finish::kStop;
  std::atomic<bool> is_held_up_{false}, is_abandoned_{false};

  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool is_done_ = false;
  Completion completion_;
  Error error_;
  bool has_error_ = false;
};

}  // namespace zinc_rt

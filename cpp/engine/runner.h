// ModelRunner runs the steps of one replica: admit, plan, fill, execute, commit. The scheduler decides what to compute,
// the executor computes it, and the runner connects the two. While a step runs, the runner may begin the next one, if
// that step only decodes the same requests again (sched::Scheduler::plan_ahead) and the executor can
// (ExecutorInfo::runs_ahead). The device then need not wait while the runner commits the first step.
// Thread rule: only the thread that holds the Turn of the step loop (engine/turn.h); any thread may read the atomic
// counts.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "engine/draft_model.h"
#include "engine/step_trace.h"
#include "executor/executor.h"
#include "sched/scheduler.h"
#include "spec/drafter.h"

namespace zinc_rt {

// LogitsRow is a row of logits that a request wants to see, for log-probabilities or a hash. The runner passes it to
// StepListener::on_logits. It has either `logits` or `logprobs`, which are valid during the call.
struct LogitsRow {
  std::uint64_t user = 0;
  std::uint32_t row = 0;   // index among the step's output rows
  std::int32_t token = 0;  // the picked token; for a scored prompt, the prompt's next token
  bool is_prompt = false;  // the row belongs to a prompt whose tokens are scored
  std::span<const float> logits{};
  const RowLogprobs* logprobs = nullptr;  // what the executor computed from the logits
};

// Through this interface the runner reports a step's results to the engine and gets data about requests from it.
// StepLoop implements it. `user` is the number by which the scheduler knows the request (sched/request.h).
class StepListener {
 public:
  virtual ~StepListener() = default;
  // Called before each pick of a request with RequestParams::is_processed. May change the logits. `tokens` are the
  // tokens before the pick. If it returns false, the request ends as processor_failed. no_token_left() reports that no
  // token was allowed, which ends the request in the same way.
  virtual bool process(std::uint64_t, std::span<const std::int32_t>, std::span<float>) { return true; }
  virtual void no_token_left(std::uint64_t) {}
  // Called before each pick of a request with RequestParams::is_masked. Returns the mask (StepInput::mask), which must
  // stay valid until the step has ended. n_guessed is how many tokens of the last guess come before the pick. If it
  // returns nullopt, the request ends as processor_failed, unless the pick follows a wrong guess.
  virtual std::optional<std::span<const std::uint32_t>> mask(std::uint64_t, std::uint32_t /*n_guessed*/) {
    return std::nullopt;
  }
  // Called before a step for each decoding request whose RequestParams::speculation allows guesses. Returns a guess of
  // the request's next tokens, which must stay valid until the next call.
  virtual spec::Guess guess(std::uint64_t) { return {}; }
  // Returns the probability that a token that a draft model guesses for the request is picked if all tokens before it
  // were. 0: the request takes no such guess now.
  virtual double chance_of_model(std::uint64_t) { return 0; }
  // Called with a draft model's guess, after guess() for the same step. Returns what of it is used, which must stay
  // valid until the next call. If that is nothing, the runner calls guess() again.
  virtual spec::Guess guess_of_model(std::uint64_t, std::span<const std::int32_t>) { return {}; }
  // Called before each step is planned, with the `user` of each request that has a slot. is_held_up() is then called
  // for each of them.
  virtual void before_step(std::span<const std::uint64_t>) {}
  // Reports rows of the current step, which all have logits or all have logprobs. The rows of a scored prompt come in
  // order; the first row predicts the prompt's second token.
  virtual void on_logits(std::span<const LogitsRow> rows) = 0;
  // Takes the pooled row of a text whose embedding a request wants. Returns false if the row has no direction; the
  // request then ends as bad_logits.
  virtual bool on_embedding(std::uint64_t, std::span<const float>) { return true; }
  // Returns whether the request must be left out of this step, because its sink is full or its mask is not ready.
  virtual bool is_held_up(std::uint64_t user) const = 0;
  virtual void on_event(const sched::Event& event, sched::Micros now) = 0;
};

class ModelRunner {
 public:
  // `all_shares` counts the slots of all replicas of the model together; it is null if this is the only replica.
  // `thread` is the number of the step loop, for the timeline. `draft` is null if no draft model guesses; it must
  // outlive the runner.
  ModelRunner(Executor& executor, const sched::Options& options, sched::TenantBook& tenants,
              std::shared_ptr<sched::Shares> all_shares, Timeline& timeline, std::uint32_t thread,
              DraftModel* draft = nullptr);

  sched::Scheduler& scheduler() { return scheduler_; }
  const sched::Scheduler& scheduler() const { return scheduler_; }

  // Runs one step if there is something to compute, and reports its events to the listener. may_run_ahead: the next
  // step may run on when the call returns. If it does, no member function may be called but turn(), drain(), end_all()
  // and scheduler().submit() and cancel().
  struct Turn {
    bool ran = false;
    sched::Micros wake_at = sched::kNever;  // when to call turn() again if nothing else happens
  };
  Turn turn(StepListener& listener, bool may_run_ahead);
  // Ends the step that still runs, if there is one.
  void drain(StepListener& listener);
  // Ends all requests without running a step.
  void end_all(StepListener& listener, sched::Finish reason);

  // Runs the tokens [begin, begin + n) of `ids` in a leased slot, for diagnostics. `rows` are the tokens whose logits
  // are wanted, as indices in [0, n).
  using OnLogits = std::function<void(std::uint32_t first_row, std::span<const float> logits)>;
  Status run(std::uint32_t slot, std::span<const std::int32_t> ids, std::size_t begin, std::size_t n,
             std::uint32_t rope_variant, std::span<const std::uint32_t> rows, const OnLogits& on_logits);
  Result<std::vector<float>> hidden(std::uint32_t slot, std::span<const std::int32_t> ids, std::size_t begin,
                                    std::size_t n, std::uint32_t rope_variant, int layer);

  // Copy the first pages of a leased slot to or from host memory, as many as the span can hold.
  Status read_pages(std::uint32_t slot, std::span<std::byte> to);
  Status write_pages(std::uint32_t slot, std::span<const std::byte> from);

  // Time spent in steps, by which the step loop chooses the model that runs next.
  double busy_us() const { return busy_us_; }
  void set_busy_us(double us) { busy_us_ = us; }
  // failed_steps() counts the steps that failed on the device. failed_in_a_row() counts only those since the last step
  // that succeeded.
  std::uint64_t failed_steps() const { return failed_steps_; }
  std::uint64_t failed_in_a_row() const { return failed_in_a_row_; }
  // Counts the requests that ended because a row of logits had no finite maximum.
  std::uint64_t bad_logits() const { return bad_logits_; }

 private:
  struct Running;
  template <class Use>
  bool for_guesses(StepListener& listener, const Use& use);
  spec::Guess guess_of(StepListener& listener, const sched::Request& request) const;
  void want_guess(StepListener& listener, const sched::Request& request, std::size_t n_own, double own_chance);
  std::uint32_t n_decoding() const;
  // Passes the features of the step's tokens to the draft model.
  void note_features(std::span<const float> rows);
  bool wants_draft_model();
  void propose_model_guesses(StepListener& listener);
  void look_at_slots(StepListener& listener);
  void propose_guesses(StepListener& listener);
  bool plan_step(StepListener& listener, Turn& turn);
  void begin_ahead(StepListener& listener);
  void finish_step();
  void drop_vain_step();
  void note_failure(const Status& status, std::uint32_t n_tokens);
  void report(StepListener& listener);
  void fill(const sched::StepPlan& plan, StepInput& input);
  OutputRow output_row(const sched::PlanRow& row) const;
  void report_rows(std::uint32_t first, std::span<const float> logits, std::span<const RowLogprobs> logprobs);
  void fill_embeddings(const sched::StepPlan& plan, StepInput& input);
  void end_bad_scores(const sched::StepPlan& plan);
  void end_bad_embeddings();
  void end_failed_picks(const sched::StepPlan& plan);
  void judge_rows(std::size_t end);
  std::span<const std::uint32_t> mask(std::uint32_t row);
  Status begin_step(const sched::StepPlan& plan, const StepInput& input);
  Status copy_state(const std::vector<sched::StateMove>& moves, std::vector<StateCopy>& scratch);
  void fill_leased(std::uint32_t slot, std::span<const std::int32_t> ids, std::size_t begin, std::size_t n,
                   std::uint32_t rope_variant);

  Executor& executor_;
  DraftModel* const draft_;
  sched::Scheduler scheduler_;
  StepTrace trace_;
  StepInput leased_input_;
  StepOutput output_;
  // A step that begin_step() has begun.
  struct Running {
    StepInput input;
    bool has_items = false, is_ahead = false;
    bool has_drafted = false;  // the draft model ran before the step
    Status status;             // of begin_step()
    // When its turn began, and when it was admitted, planned and filled, in us.
    sched::Micros began = 0, admitted = 0, planned = 0, filled = 0;
  };
  // The n_running_ steps that run, in order: the first is running_[first_running_], and plan_ is its plan.
  Running running_[2];
  std::uint32_t first_running_ = 0, n_running_ = 0;
  sched::Micros last_end_ = 0, last_commit_ = 0;  // when the last step ended, and when its commit did
  // Scratch memory: the copies of the current plan, in the form that the executor takes.
  std::vector<PageCopy> page_copies_;
  std::vector<StateCopy> restores_, saves_;
  std::vector<std::uint64_t> in_slots_;     // `user` of each request that is in a slot
  std::vector<DraftModel::Wanted> wanted_;  // the requests for which the draft model may guess
  std::vector<std::uint32_t> failed_rows_;  // output rows whose mask or processor failed
  // row_is_real_[i] tells whether output row i of the step continues the request's own text. It is false if the row
  // follows a wrong guess. judge_rows() fills it.
  std::vector<bool> row_is_real_;
  // Only for models with pooling. embedded_[i] is the index of the plan's item whose embedding is output row i.
  std::vector<std::uint32_t> embedded_;
  // Requests whose embedding had no direction in this step. on_embeddings fills it; they end as bad_logits after the
  // step.
  std::vector<sched::RequestId> bad_embeddings_;
  std::vector<LogitsRow> logits_rows_;
  // RoPE variants for steps of leased slots. Index: slot.
  std::vector<std::uint32_t> leased_variants_;
  StepListener* listener_ = nullptr;  // the argument of the last call of turn() or drain()
  const sched::StepPlan* plan_ = nullptr;
  // Time in us that this model's steps took so far. StepLoop runs the replica with the least.
  double busy_us_ = 0;
  std::atomic<std::uint64_t> failed_steps_{0}, failed_in_a_row_{0}, bad_logits_{0};
};

}  // namespace zinc_rt

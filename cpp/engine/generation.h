// One request under way: its slot, its tokens, and how far it is. Each next() runs at most one token.
// Thread rule: one thread at a time; cancel() from any.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>

#include "engine/core.h"
#include "engine/stop_matcher.h"
#include "tokenizer/detokenizer.h"

namespace zinc_rt {

class Generation {
 public:
  // Checks the request against the model, the engine and the tenant's quota, and takes a slot and its pages.
  static Result<std::unique_ptr<Generation>> start(std::shared_ptr<EngineCore> core,
                                                   std::shared_ptr<TenantState> tenant, const Request& request,
                                                   const std::string& system);
  ~Generation();

  Result<std::optional<StreamEvent>> next();
  void cancel() { cancelled_.store(true); }
  Completion completion() const;

 private:
  using Clock = std::chrono::steady_clock;
  Generation(std::shared_ptr<EngineCore> core, std::shared_ptr<TenantState> tenant, Request request,
             std::vector<std::int32_t> prompt);
  Status admit(std::uint64_t n_tokens);
  // Runs whatever of the prompt has not run; false when it was cut short by a cancel or a deadline.
  Result<bool> catch_up();  // runs all tokens but the last; false: interrupted
  Status validate_prefill();
  Status pick_token();
  void record(std::span<const float> logits, std::int32_t token);
  StreamEvent accept(std::int32_t token);
  void finish(std::string reason);
  void release();
  std::optional<std::string> interrupted() const;  // cancelled or deadline

  std::shared_ptr<EngineCore> core_;
  std::shared_ptr<TenantState> tenant_;
  Request request_;
  Sampling sampling_;
  std::vector<std::int32_t> ids_;  // prompt, then what was picked
  std::size_t n_prompt_ = 0, n_run_ = 0;
  std::optional<EngineCore::Lease> lease_;
  Detokenizer detokenizer_;
  StopMatcher stops_;
  std::vector<float> row_;  // the last logit row, when logprobs or hashes are wanted
  std::deque<StreamEvent> ready_;
  bool ended_ = false;
  std::atomic<bool> cancelled_{false};
  Clock::time_point started_, last_;
  Completion completion_;
};

}  // namespace zinc_rt

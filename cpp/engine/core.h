// The engine behind its handles: models, tenants, and the two threads. Client threads check a request and put it in the
// inbox; the step thread runs the models' turns and writes output events; the drainer reads those and feeds the sinks.
// Thread rule: `inbox_mutex_` guards the inbox, `turn_` all that the step thread touches, `names_mutex_` the names.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/thread_pool.h"
#include "engine/generation.h"
#include "engine/generation_table.h"
#include "engine/model.h"
#include "engine/output_ring.h"
#include "engine/tenant_state.h"
#include "engine/turn.h"

namespace zinc_rt {

class EngineCore final : public StepListener, public std::enable_shared_from_this<EngineCore> {
 public:
  static Result<std::shared_ptr<EngineCore>> open(const std::string& path, const EngineOptions& options);
  static Result<std::shared_ptr<EngineCore>> start(std::shared_ptr<Model> model);
  static Result<std::shared_ptr<EngineCore>> start_empty(const EngineOptions& options);
  ~EngineCore() override;

  // models.cpp
  // Empty: the first. Errors: kUnavailable once closed, kNotFound.
  Result<std::shared_ptr<Model>> model(const std::string& name) const;
  Result<std::shared_ptr<Model>> known_model(const std::string& name) const;  // closed or not
  std::shared_ptr<Model> find_model(const std::string& name) const;           // null: there is none
  Status add_model(const std::string& path, const std::string& name, const EngineOptions& options);
  Status remove_model(const std::string& name);
  std::vector<std::string> model_names() const;

  // diagnostics.cpp: run in a leased slot, by turns with the steps
  Result<std::vector<float>> logits(Model& model, std::span<const std::int32_t> ids, LogitsRows rows,
                                    std::uint32_t chunk);
  Result<std::vector<float>> hidden(Model& model, std::span<const std::int32_t> ids, int layer);

  // prefix_file.cpp: the KV of a prompt as a file; both return how many tokens it has
  Result<std::uint32_t> save_prefix(const TenantState& tenant, Request request, const std::string& system,
                                    const std::string& path);
  Result<std::uint32_t> load_prefix(const TenantState& tenant, const std::string& path, const std::string& model,
                                    const std::string& salt);

  // submit.cpp
  Result<std::vector<std::shared_ptr<Generation>>> submit(const std::shared_ptr<TenantState>& tenant, Request request,
                                                          const std::string& system, std::uint32_t session,
                                                          std::shared_ptr<Sink> sink);

  // tenants.cpp
  Result<std::shared_ptr<TenantState>> tenant(const std::string& name, const std::optional<TenantQuota>& quota);
  Status remove_tenant(const std::string& name);
  Status set_quota(TenantState& tenant, const TenantQuota& quota);
  TenantLedger ledger(const TenantState& tenant);
  Result<std::uint32_t> flush_prefixes(const TenantState& tenant);
  Result<CachedPrefix> cached_prefix(const TenantState& tenant, Request request, const std::string& system);
  std::uint32_t new_session() { return next_session_.fetch_add(1); }

  bool drain(double timeout_ms);
  void close();
  bool is_closed() const { return is_closed_.load(); }
  Status check_open() const;
  Status check_loaded(const Model& model) const;  // REQUIRES: the turn. Errors: closed, or the model was removed
  EngineStats stats();                            // stats.cpp
  Timeline& timeline() { return timeline_; }

  // StepListener
  bool wants_logits(std::uint64_t user) const override;
  bool has_processor(std::uint64_t user) const override;
  bool process(std::uint64_t user, std::span<const std::int32_t> tokens, std::span<float> logits) override;
  bool has_mask(std::uint64_t user) const override;
  std::optional<std::span<const std::uint32_t>> mask(std::uint64_t user) override;
  void before_step(std::span<const std::uint64_t> users) override;
  void no_token_left(std::uint64_t user) override;
  void on_logits(std::span<const LogitsRow> rows) override;
  bool on_embedding(std::uint64_t user, std::span<const float> row) override;
  bool is_held_up(std::uint64_t user) const override;
  void on_event(const sched::Event& event, sched::Micros now) override;

 private:
  struct Command {
    enum Kind : std::uint8_t { kSubmit, kEnd } kind = kSubmit;
    std::shared_ptr<Generation> generation;
    sched::Finish reason = sched::Finish::kCancelled;
  };
  EngineCore(const EngineOptions& options, int n_threads, bool may_be_empty);
  static std::shared_ptr<EngineCore> make(const EngineOptions& options, int n_threads, bool may_be_empty);
  void start_threads();
  Status join(std::shared_ptr<Model> model, std::string name);
  void post(std::vector<Command> commands);  // the step thread gets all of them at the same time

  // step_loop.cpp
  void run_steps();
  void take_commands();
  void apply(Command& command, sched::Micros now);
  Model* next_model();
  void push_output(const OutputEvent& event);
  bool wait_for_work(sched::Micros wake_at);
  void poke();  // makes the step thread look again, since something became free

  // drainer.cpp
  void run_drainer();
  void handle(const OutputEvent& event);
  void retry_held();
  void settle(Generation& generation);
  void forget(Generation& generation);  // from here on only its readers have it

  // submit.cpp
  static PromptRoom prompt_room(const Model& model, const TenantState& tenant, bool generates);
  static std::uint32_t room_for(const Model& model, const TenantState& tenant, std::size_t n_prompt);
  Status check_request(const Model& model, const TenantState& tenant, const Request& request, std::size_t n_prompt);
  static Status bind_output(Model& model, const TenantState& tenant, const Request& request, std::string_view tools,
                            Prompt& prompt);

  // tenants.cpp
  sched::Quota to_sched(const TenantQuota& quota);
  Status check_reserved(std::uint32_t before, std::uint32_t now) const;
  static Status check_has_pages(Model& model, std::uint64_t reserved);
  void reuse_free_tenants();

  // diagnostics.cpp
  struct Span {  // positions [begin, end) that share a variant of the position encoding
    std::size_t begin = 0, end = 0;
    std::uint32_t variant = 0;
  };
  static std::vector<Span> variant_spans(const Model& model, std::size_t n_tokens);
  Status validate_prefill(Model& model, std::span<const std::int32_t> prompt);
  class Lease;

  const std::uint32_t max_models_;
  const bool may_be_empty_;  // it was started without a model
  mutable std::mutex names_mutex_;
  std::vector<std::shared_ptr<Model>> models_;  // written under both the turn and names_mutex_
  std::map<std::string, std::shared_ptr<TenantState>> tenants_;
  const std::shared_ptr<FreeTenants> free_tenants_ = std::make_shared<FreeTenants>();
  std::map<std::string, std::uint32_t> groups_;
  std::uint32_t next_model_id_ = 0;

  mutable Turn turn_;
  sched::TenantBook book_;
  mem::SipKey key_;
  GenerationTable generations_;                                               // that the schedulers of all models have
  std::unordered_map<std::uint64_t, std::unique_ptr<TokenDetails>> details_;  // of the step under way, by `user`
  // Make log-probabilities and quick masks together, since the next step waits for them.
  std::unique_ptr<ThreadPool> row_threads_;
  std::vector<AnswerMask*> quick_masks_;
  std::vector<std::unique_ptr<TokenDetails>> row_details_;  // by row of an on_logits call
  Timeline timeline_;

  std::mutex inbox_mutex_;
  std::condition_variable inbox_filled_, went_idle_;
  std::vector<Command> inbox_, taken_;
  bool stop_ = false, is_poked_ = false;
  std::atomic<std::uint32_t> n_open_{0};  // generations that have not ended
  std::atomic<std::uint32_t> next_session_{1};
  std::atomic<bool> is_closed_{false}, is_draining_{false};

  OutputRing output_{4096};
  std::vector<Generation*> held_;  // whose sinks had no room; the drainer's
  std::thread steps_, drainer_;
  MaskMaker mask_maker_{[this] { poke(); }};
};

}  // namespace zinc_rt

// EngineCore is the engine behind the public handles. It owns the models, the tenants, one step loop per device, and
// the drainer. A client's thread checks a request, chooses a device and puts the request into the inbox of that
// device's step loop (engine/step_loop.h). A step loop runs the steps of its models in turn and writes output events.
// The drainer reads the events and passes them to the sinks. Step loops and drainer have their own threads. In an
// engine without threads, callers that wait run the same work by pump().
// Thread rule: `names_mutex_` guards the names. The lock of `book_` guards the tenants' counts and the state that
// schedulers share. The Turn of a step loop (engine/turn.h), a lock that is held during each step, guards its replicas.
// A thread that takes several of these takes them in this order: pump_mutex_, a Turn, names_mutex_, a tenant's mutex,
// the book's lock, loops_mutex_, an inbox. No thread may hold two Turns.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/generation.h"
#include "engine/model.h"
#include "engine/output_port.h"
#include "engine/step_loop.h"
#include "engine/tenant_state.h"

namespace zinc_rt {

class EngineCore final : public std::enable_shared_from_this<EngineCore> {
 public:
  static Result<std::shared_ptr<EngineCore>> open(const std::string& path, const EngineOptions& options,
                                                  Drive drive = kUsualDrive);
  static Result<std::shared_ptr<EngineCore>> start(std::shared_ptr<Model> model, Drive drive = kUsualDrive);
  static Result<std::shared_ptr<EngineCore>> start_empty(const EngineOptions& options);
  ~EngineCore();

  // The following functions find, add and remove models. They are defined in models.cpp. model() returns the model with
  // this name; an empty name means the first model. Errors: kUnavailable if the engine is closed; kNotFound.
  Result<std::shared_ptr<Model>> model(const std::string& name) const;
  // Finds the model even if the engine is closed.
  Result<std::shared_ptr<Model>> known_model(const std::string& name) const;
  std::shared_ptr<Model> find_model(const std::string& name) const;  // null if there is no such model
  Status add_model(const std::string& path, const std::string& name, const EngineOptions& options);
  Status remove_model(const std::string& name);
  std::vector<std::string> model_names() const;

  // logits() and hidden() are defined in diagnostics.cpp. Both compute in a slot that belongs to no request
  // (engine/lease.h), between the steps of requests.
  Result<std::vector<float>> logits(Model& model, std::span<const std::int32_t> ids, LogitsRows rows,
                                    std::uint32_t chunk, const StopAsked& is_stopped = {});
  Result<std::vector<float>> hidden(Model& model, std::span<const std::int32_t> ids, int layer,
                                    const StopAsked& is_stopped = {});

  // prefix_file.cpp: these save the KV cache of a prompt as a file, or load it. Both return how many tokens the
  // prefix has.
  Result<std::uint32_t> save_prefix(const TenantState& tenant, Request request, const std::string& system,
                                    const std::string& path, const StopAsked& is_stopped = {});
  Result<std::uint32_t> load_prefix(const TenantState& tenant, const std::string& path, const std::string& model,
                                    const std::string& salt);

  // Checks a request on the caller's thread, and hands its n choices to a step loop. Errors concern only this request.
  // Defined in submit.cpp.
  Result<std::vector<std::shared_ptr<Generation>>> submit(const std::shared_ptr<TenantState>& tenant, Request request,
                                                          const std::string& system, std::shared_ptr<Sink> sink);

  // The following functions create, change, remove and describe tenants. They are defined in tenants.cpp.
  Result<std::shared_ptr<TenantState>> tenant(const std::string& name, const std::optional<TenantQuota>& quota);
  Status remove_tenant(const std::string& name);
  Status set_quota(TenantState& tenant, const TenantQuota& quota);
  TenantLedger ledger(const TenantState& tenant);
  Result<std::uint32_t> flush_prefixes(const TenantState& tenant);
  Result<CachedPrefix> cached_prefix(const TenantState& tenant, Request request, const std::string& system);

  // Used with Drive::kPump. Calls StepLoop::look() of each step loop once, then delivers the events to the sinks.
  // The result's `ran` is true if there was something to do; else wake_at tells when to call again. If another thread is in pump(), waits until it returns.
  // Must not be called from a sink. The callers of submit() and pump() also compile grammars and compute masks. Only the
  // computing threads of a tier, and sinks that call back, have threads of their own.
  ModelRunner::Turn pump();
  bool is_pumped() const { return drive_ == Drive::kPump; }
  // Calls pump() until done() returns true. Returns false if timeout_ms pass before that; a negative timeout means no
  // limit.
  bool pump_until(double timeout_ms, const std::function<bool()>& done);
  // Returns a function that calls pump_until(); it returns true at once if the engine no longer exists.
  Waiter waiter();

  bool drain(double timeout_ms);
  void close();
  bool is_closed() const { return is_closed_.load(); }
  Status check_open() const;
  // Checks that the replica may still run requests. Errors: kUnavailable if the engine is closed or the model was
  // removed. REQUIRES: the caller holds the Turn of the replica's step loop, or the lock of the tenant book.
  Status check_loaded(const Model& model, const Replica& replica) const;
  EngineStats stats();  // stats.cpp
  Timeline& timeline() { return timeline_; }

 private:
  using Command = StepLoop::Command;
  EngineCore(const EngineOptions& options, int n_threads, bool may_be_empty, Drive drive);
  static std::shared_ptr<EngineCore> make(const EngineOptions& options, int n_threads, bool may_be_empty, Drive drive);
  void start_drainer();
  Status join(std::shared_ptr<Model> model, std::string name);
  // Removes the model from its step loops and frees its memory. REQUIRES: no request of the model runs or waits.
  void take_out(Model& model);
  // Returns the step loop of a device. The first call creates it; it then lives as long as the engine.
  Result<StepLoop*> loop_for(const DeviceId& device);
  std::vector<StepLoop*> loops() const;
  void post(Replica& replica, std::vector<Command> commands);  // adds all commands at once; all concern this replica
  // Makes all step threads except that of `but` call look() again, because slots or pages became free.
  void poke(const StepLoop* but = nullptr);

  // Waits until is_idle() returns true. is_idle() is called whenever the last open request of the engine or of a model
  // has ended. Returns false if timeout_ms pass first.
  bool wait_idle(double timeout_ms, const std::function<bool()>& is_idle);

  // The following functions pass output events to the sinks. They are defined in drainer.cpp.
  void run_drainer();
  bool take_events();  // handles the events that are in the ring; returns false if there are none
  void handle(const OutputEvent& event);
  bool retry_held();  // returns false if no sink took anything
  void settle(Generation& generation);
  void forget(Generation& generation);  // drops the engine's reference, so that only clients hold the generation

  // The following functions check and place requests. They are defined in submit.cpp. place() chooses a replica for the
  // request and returns it, with the number of the prompt's tokens that its prefix cache holds.
  // Errors: those of check_loaded().
  struct Placed {
    Replica* replica = nullptr;
    std::uint32_t cached_tokens = 0;
  };
  Result<Placed> place(const Model& model, const TenantState& tenant, const std::string& salt,
                       mem::SpanView prompt) const;
  static PromptRoom prompt_room(const Model& model, const TenantState& tenant, bool generates);
  static std::uint32_t room_for(const Model& model, const TenantState& tenant, std::size_t n_prompt);
  Status check_request(const Model& model, const TenantState& tenant, const Request& request, std::size_t n_prompt);
  Status bind_output(Model& model, const TenantState& tenant, const Request& request, Prompt& prompt);

  // The following functions check that quotas fit the models. They are defined in tenants.cpp.
  sched::Quota to_sched(const TenantQuota& quota);
  Status check_reserved(std::uint32_t before, std::uint32_t now) const;
  static Status check_has_pages(const Model& model, std::uint64_t reserved);
  void reuse_free_tenants();

  // The following functions compute tokens that belong to no request. They are defined in diagnostics.cpp.
  struct Span {  // positions [begin, end) that share a variant of the position encoding
    std::size_t begin = 0, end = 0;
    std::uint32_t variant = 0;
  };
  static std::vector<Span> variant_spans(const Model& model, std::size_t n_tokens);
  Status validate_prefill(Model& model, std::span<const std::int32_t> prompt);
  class Lease;

  const std::uint32_t max_models_;
  const bool may_be_empty_;  // the engine was started without a model
  const int n_threads_;
  const Drive drive_;
  std::mutex pump_mutex_;  // held by the thread that runs pump()
  mutable std::mutex names_mutex_;
  // The loaded models, the oldest first. Guarded by names_mutex_.
  std::vector<std::shared_ptr<Model>> models_;
  // Key: the tenant's name. Guarded by names_mutex_.
  std::map<std::string, std::shared_ptr<TenantState>> tenants_;
  const std::shared_ptr<FreeTenants> free_tenants_ = std::make_shared<FreeTenants>();
  // Isolation groups. Key: the group's name; value: its number. Guarded by names_mutex_.
  std::map<std::string, std::uint32_t> groups_;
  std::atomic<std::uint32_t> next_replica_id_{0};

  sched::TenantBook book_;
  mem::SipKey key_;
  Timeline timeline_;

  std::mutex idle_mutex_;  // guards the waits in wait_idle(); the counts themselves are atomic
  std::condition_variable went_idle_;
  std::atomic<std::uint32_t> n_open_{0};  // generations that have not ended
  std::atomic<bool> is_closed_{false}, is_draining_{false};

  OutputPort output_{4096};
  // Generations whose sink had no room for an event; take_events() fills it; drainer thread only.
  std::vector<Generation*> held_;
  std::thread drainer_;
  mutable std::mutex loops_mutex_;                // guards loops_, to which step loops are only added
  std::vector<std::unique_ptr<StepLoop>> loops_;  // declared before mask_maker_, whose threads poke the loops
  MaskMaker mask_maker_;
  WorkQueue compiles_;  // compiles grammars; a tenant may use at most half a processor for this
};

}  // namespace zinc_rt

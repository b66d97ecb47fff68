// The multitenant scheduler of one model at one place (a device): which request gets a slot and pages, and what each
// step computes. It knows no model, no device and no clock; `now` is passed in. A step is five calls, three of which are of this class:
//
//   admit(now)           ends what was cancelled or is late; gives slots to waiting requests, by class and share;
//   preempts
//   plan(now)            chooses decoding slots, then chunks of prompts, under the bounds on tokens and time
//   (fill, execute)      done by the engine
//   commit(tokens, now)  moves positions, fills the prefix cache, ends requests; fail_step(now) after a device fault
//
// Each of them leaves events. The members are defined in scheduler.cpp (submit, commit, ends), admission.cpp,
// turns.cpp, batch_planner.cpp, decode_rows.cpp, preemption.cpp and slot_pages.cpp.
// Thread rule: one thread at a time. Several schedulers, each on a thread of its own, may share a tenant book: a call
// that changes anything but a slot's backpressure holds the book's lock. So while a thread holds that lock, it may read
// what is marked "book" of any scheduler that shares it. Nothing is allocated from admit to commit while no request
// arrives or ends.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>

#include "mem/prefix_cache.h"
#include "sched/cost_model.h"
#include "sched/plan.h"
#include "sched/request_queue.h"
#include "sched/shares.h"
#include "sched/slot_table.h"
#include "sched/tenant_book.h"
#include "zinc_rt/status.h"

namespace zinc_rt::sched {

struct Options {
  std::uint32_t model_id = 0;
  std::uint32_t n_slots = 64;
  std::uint32_t n_pages = 0;
  std::uint32_t max_context = 0;           // tokens, a multiple of kPageTokens
  std::uint32_t chunk_cap = 256;           // tokens that a step may compute; at least n_slots
  std::uint32_t prefill_cap = UINT32_MAX;  // prompt tokens of one request in a step
  std::uint32_t queue_cap = 1024;
  // A text is computed in one step: chunk_cap is at least max_context, and nothing of it can be cached.
  bool needs_whole_texts = false;
  bool prefix_cache = true;
  bool is_recurrent = false;  // slots have recurrent state besides pages; n_checkpoints copies of it can be kept
  std::uint32_t n_checkpoints = 0;
  // Texts of up to rope_limits[i] tokens use variant i of the position encoding.
  std::vector<std::uint32_t> rope_limits;
  mem::SipKey hash_key;
  // The gap between two tokens of a standard stream up to which prompts may fill steps. Where decoding alone takes long
  // the gap is longer (batch_planner.cpp).
  Micros standard_gap = 60'000;
  double prefix_part = 0.2;        // the part of the pages that admission keeps for the prefix cache while requests run
  Micros starvation = 30'000'000;  // a tenant's class that got no slot for so long is next
  // Turns (turns.cpp). turn_after, by class: the wait after which a request whose tenant has less than its share may
  // take a slot of a tenant that has more. turn: how long a request keeps a slot before it may have to yield it.
  std::array<Micros, kQosCount> turn_after = {250'000, 1'000'000, 10'000'000};
  Micros turn = 2'000'000;
  std::uint32_t slow_sink_steps = 500;  // for so many steps a full sink may hold its request up
  std::uint64_t fail_page_take = 0;     // for simulations: the n-th page that is asked for is refused; 0: none is
};

// Whether a request could ever run. Errors: kInvalidArgument with both numbers.
Status check_request(std::uint64_t n_prompt, std::uint64_t max_tokens, const Quota& quota, const Options& options,
                     std::uint64_t reserved_for_others);

enum class EventKind : std::uint8_t { kAdmitted, kPreempted, kToken, kFinished };

struct Event {
  EventKind kind = EventKind::kToken;
  Finish reason = Finish::kStop;  // kFinished
  bool is_first = false;          // kAdmitted: for the first time; kToken: the first one
  bool is_turn = false;           // kAdmitted: its tenant was owed the slot; kPreempted: in favour of such a request
  std::uint32_t slot = 0;         // kFinished: kNone if it had no slot
  TenantId tenant = 0;
  RequestId request = 0;
  std::uint64_t user = 0;
  std::int32_t token = 0;
  std::uint32_t n_generated = 0;
  std::uint32_t output_row = 0;     // kToken: which output row of the step
  std::uint32_t cached_tokens = 0;  // kAdmitted
  Micros waited = 0;                // kAdmitted: how long it waited in all
};

struct Stats {
  std::uint64_t steps = 0, decode_tokens = 0, prefill_tokens = 0;
  std::uint64_t generated_tokens = 0;  // including the first one, which the prompt's last chunk gives
  std::uint64_t admissions = 0, preemptions = 0, page_evictions = 0;
  std::uint64_t turns = 0;  // preemptions in which the slot went to a tenant that was owed one
  std::uint64_t prompt_tokens = 0, cached_tokens = 0;  // of first admissions
  std::uint64_t internal_errors = 0;                   // bugs of this program; stays 0
};

class Scheduler {
 public:
  // `tenants` is shared by the models of an engine and must outlive this. `all_shares`: of all places of the model; null:
  // it has this one alone.
  Scheduler(Options options, TenantBook& tenants, std::shared_ptr<Shares> all_shares = nullptr);
  ~Scheduler();

  // Queues a request. Errors: kInvalidArgument for one that could never run, with both numbers; kExhausted with
  // retry_after_s when queue_cap requests wait.
  Result<RequestId> submit(RequestParams params, Micros now);
  // Ends a request at the next admit. Does nothing when it has ended already.
  void cancel(RequestId id, Finish reason = Finish::kCancelled);
  void cancel_all(Finish reason);
  // A slot whose sink is full is not decoded, and is cancelled after slow_sink_steps.
  void set_backpressure(RequestId id, bool on);

  void admit(Micros now);
  const StepPlan& plan(Micros now);
  // tokens: the picks, in the order of the items, an item's n_picks together. They are appended to the slot's request
  // until one of them ends it. step_us: how long the step took, if it ran.
  void commit(std::span<const std::int32_t> tokens, Micros now, double step_us);
  // The requests of the step end with Finish::kFault; pages that were not committed are not kept.
  void fail_step(Micros now);

  std::span<const Event> events() const { return events_; }
  void clear_events() { events_.clear(); }

  // Takes a slot and pages that belong to no request, for diagnostics. Errors: kExhausted with both numbers.
  Result<std::uint32_t> lease(std::uint32_t n_tokens);
  void give_back_lease(std::uint32_t slot);
  std::span<const std::uint32_t> leased_pages(std::uint32_t slot) const { return slots_.pages(slot); }
  // Gives the pages of a lease to the prefix cache of a tenant, as the KV of these tokens. REQUIRES: whole pages of
  // tokens, no more than the lease has.
  void publish_lease(std::uint32_t slot, TenantId tenant, const std::string& salt,
                     std::span<const std::int32_t> tokens);
  // How many of a prompt's tokens a request of the tenant would have from the prefix cache now. Counts as no use. (book)
  std::uint32_t cached_tokens(TenantId tenant, const std::string& salt, std::span<const std::int32_t> prompt) const;
  // Drops the prefixes that the tenant brought into the cache, its own or that of its isolation group, and that nobody
  // uses. What another member brought, and what that continues, stays. Returns how many pages that freed.
  std::uint32_t flush_prefixes(TenantId tenant);
  // The same before another tenant gets this id. What it shared with an isolation group stays.
  void forget_tenant(TenantId tenant);

  bool is_idle() const { return waiting_.size() == 0 && n_running_ == 0; }
  // book, down to options()
  std::uint32_t n_waiting() const { return waiting_.size(); }
  std::uint32_t n_running() const { return n_running_; }
  // Tokens of all requests that are not computed yet and that the cache is not likely to give. It goes through all.
  std::uint64_t backlog_tokens() const;
  const SlotTable& slots() const { return slots_; }
  const mem::PagePool& pages() const { return pages_; }
  const mem::PrefixCache& prefixes() const { return prefixes_; }
  const Stats& stats() const { return stats_; }
  const Options& options() const { return options_; }  // it never changes

  const Request* find(RequestId id) const;
  const Request* in_slot(std::uint32_t slot) const { return slot_requests_[slot]; }
  std::size_t n_scopes() const { return roots_.size(); }  // of prefixes that are not shared
  const CostModel& cost() const { return cost_; }
  const RequestQueue& queue() const { return waiting_; }
  const Shares& shares() const { return shares_; }  // of this place
  const Shares& shares_everywhere() const { return all_shares_ ? *all_shares_ : shares_; }

 private:
  // scheduler.cpp
  double retry_after() const;
  Request* get(RequestId id) const;
  void end_soon(RequestId id, Finish reason);
  void note_waiting(const Request& request, int more);
  void note_running(const Request& request, int more);
  void finish(Request& request, Finish reason, Micros now);
  void commit_item(const PlanItem& item, Micros now);
  // False: the request has ended, or starts again from its first token.
  bool accept_token(Request& request, std::int32_t token, std::uint32_t row, Micros now);
  void move(std::uint32_t slot, SlotState to);
  Event event(EventKind kind, const Request& request) const;
  std::uint32_t variant_of(std::size_t n_tokens) const;
  // The variant of the position encoding for the logits that it needs next.
  std::uint32_t variant_of(const Request& request) const;

  // admission.cpp
  void apply_cancels(Micros now);
  Request* best_candidate(const Request* blocked, Micros now);
  bool comes_before(const Request& a, const Request& b, Micros now) const;
  // For how long its tenant's requests of its class have got no slot while it waited.
  Micros line_wait(const Request& request, Micros now) const {
    return now - std::max(request.queued_at, shares_.admitted_at(request.params.tenant, request.params.qos));
  }
  bool is_aged(const Request& request, Micros now) const { return line_wait(request, now) >= options_.starvation; }
  bool may_start(const Request& request, Micros now) const;
  Request* first_startable(Request& head, Micros now) const;
  // On what grounds a request may take a slot: its class, or its tenant's share.
  enum class Ground : std::uint8_t { kClass, kShare };
  enum class Outcome : std::uint8_t { kAdmitted, kSkipped, kBlocked };
  Outcome try_admit(Request& request, Ground ground, bool must_preempt, Micros now);
  void start(Request& request, bool is_turn, Micros now);

  // turns.cpp
  Qos level_of(const Request& request, Micros now) const;
  bool is_owed(const Request& request, Micros now) const;
  Micros turn_of(const Request& request) const;
  bool may_yield(const Request& request, const Request& candidate, Micros now) const;
  bool may_yield(const Request& request, const Request& candidate, const Shares& shares, Micros now) const;
  Request* yielder_for(const Request& candidate, const Shares& shares, Micros now) const;
  Request* yielder_for(const Request& candidate, Micros now) const;
  Request* most_owed(Micros now) const;
  void give_turns(Micros now);

  // preemption.cpp
  Request* victim_for(const Request& candidate, Ground ground, Micros now) const;
  std::uint64_t victim_pages(const Request& candidate, Ground ground, Micros now) const;
  Request* victim_for_pages(const Request& grower, bool same_tenant, Micros now) const;
  bool is_worse(const Request& a, const Request& b, Micros now) const;
  void preempt(Request& request, bool is_turn, Micros now);

  // decode_rows.cpp: takes out of decoding_ the rows that sit this step out
  void choose_decodes();

  // batch_planner.cpp
  void plan_decodes(Micros now);
  void plan_prefills(Micros now);
  std::uint32_t prefill_allowed(const Request& request) const;
  double prompt_budget(Qos decoding, std::uint32_t n_decode, double alone_us) const;
  void note_prompts(double step_us, double expected_us);
  std::uint32_t chunk_end(const Request& request, std::uint32_t n) const;
  std::uint32_t whole_end(const Request& request, std::uint32_t room, std::uint32_t allowed) const;
  void add_item(Request& request, std::uint32_t n, bool is_decode);
  void add_scores();
  void save_state(Request& request, std::uint32_t at);
  bool is_throttled(const Request& request, Micros now);
  void note_stall(Request& request);

  // slot_pages.cpp
  std::uint64_t owner_of(TenantId tenant) const;
  std::uint32_t flush_scopes(std::uint64_t owner, TenantId tenant);
  mem::PrefixCache::Node root_of(const Request& request);
  mem::PrefixCache::Node root_of(TenantId tenant, std::uint32_t variant, const std::string& salt);
  void drop_unused_roots();
  std::uint64_t available_pages(TenantId tenant) const;
  std::uint32_t take_page(const Request& request);
  bool grow(Request& request, std::uint32_t n_tokens, bool may_preempt, Micros now);
  mem::PrefixCache::Match usable(mem::PrefixCache::Match match, mem::PrefixCache::Node root) const;
  Bind find_room(Request& request);
  void bind(Request& request);
  void restart(Request& request);
  void publish_pages(Request& request, std::uint32_t first);
  void replace_page(Request& request, std::uint32_t index, std::uint32_t page);
  void publish_tail(Request& request);
  void release_pages(Request& request, bool keep);
  void release_slot(Request& request, bool keep);
  void drop_moves(Request& request);

  Options options_;
  TenantBook& tenants_;
  mem::PagePool pages_;
  mem::PrefixCache prefixes_;
  SlotTable slots_;
  RequestQueue waiting_;
  Shares shares_;                             // of this place
  const std::shared_ptr<Shares> all_shares_;  // null: those of this place are all
  CostModel cost_;
  // Prompt tokens beside decoding slots: twice as many as steps have had.
  std::uint32_t prompt_cap_ = 0;
  std::vector<std::unique_ptr<Request>> requests_;  // by index; null: free
  std::vector<std::uint32_t> free_indices_;
  std::vector<Request*> slot_requests_;
  struct Scope {
    std::uint64_t owner = 0;
    std::uint32_t variant = 0;
    std::string salt;
    auto operator<=>(const Scope&) const = default;
  };
  std::map<Scope, mem::PrefixCache::Node> roots_;
  std::size_t most_roots_ = 1024;                // beyond so many, unused roots are looked for
  std::vector<Request*> decoding_, prefilling_;  // scratch of the planner
  struct TenantRows {                            // the decoding rows of a tenant
    TenantId tenant = 0;
    double weight = 1, us = 0;
    Qos most_urgent = Qos::kBatch;
    double share_us = 0, left_us = 0;
    bool is_heavy = false, has_row = false;
  };
  std::vector<TenantRows> tenant_rows_;
  std::vector<RequestId> cancelled_;
  std::vector<Event> events_;
  StepPlan plan_;
  mem::PrefixCache::Match match_;  // what find_room found, for bind
  Stats stats_;
  std::uint32_t n_running_ = 0, n_protected_ = 0, n_deadlines_ = 0, n_leases_ = 0;
  std::uint64_t next_order_ = 1, next_generation_ = 1, next_admission_ = 1, round_ = 0, page_takes_ = 0;
  std::uint64_t preemptions_planned_ = 0;  // Stats::preemptions at the last plan
  double finish_interval_us_ = 0;
  Micros last_finish_ = 0;
};

}  // namespace zinc_rt::sched

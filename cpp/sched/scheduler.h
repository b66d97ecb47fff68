// Scheduler decides, for one replica (a model on a device), which requests get slots and KV pages, and what each step
// computes. It knows no model, no device and no clock; its callers pass the time `now` in. The engine's runner calls it
// for every step:
//
//   admit(now)           ends requests that were cancelled or passed their deadline. Gives slots to waiting requests by
//                        class and share; if slots or pages are short, others are preempted.
//   plan(now)            chooses the decoding slots, then chunks of prompts, within the limits on tokens and time.
//   (fill, execute)      the runner writes the inputs of the plan and runs the step.
//   plan_ahead(now)      may be called while the step runs. It plans the next step, if that only decodes the same slots
//                        again. The runner then begins that step too, so that the device need not wait for commit().
//   commit(tokens, now)  takes the picked tokens, fills the prefix cache and ends requests. After a device fault
//                        fail_step(now) is called in its place. If a step was planned ahead, it is the step that runs
//                        now, and the next calls are plan_ahead() and commit() again.
//
// Each of these calls appends events, which the runner takes. SlotPages manages the pages, and BatchPlanner chooses
// what a step computes. The members are defined in scheduler.cpp (submit, commit, ends), admission.cpp, turns.cpp,
// preemption.cpp and planning.cpp.
// Thread rule: one thread at a time, the step thread. Several schedulers on different threads may share a tenant book.
// Every call that changes more than a slot's backpressure holds the book's lock. So a thread that holds the lock may
// read the members marked "book" of all these schedulers. From admit to commit nothing is allocated, unless a request
// arrives or ends.
#pragma once

#include <memory>
#include <string>

#include "sched/batch_planner.h"
#include "sched/options.h"
#include "sched/plan.h"
#include "sched/request_queue.h"
#include "sched/shares.h"
#include "sched/slot_pages.h"
#include "sched/slot_table.h"
#include "sched/stats.h"
#include "sched/tenant_book.h"
#include "zinc_rt/status.h"

namespace zinc_rt::sched {

// Refuses a request that could never run under the quota and the options. Errors: kInvalidArgument with both numbers.
Status check_request(std::uint64_t n_prompt, std::uint64_t max_tokens, const Quota& quota, const Options& options,
                     std::uint64_t reserved_for_others);

enum class EventKind : std::uint8_t { kAdmitted, kPreempted, kToken, kFinished };

struct Event {
  EventKind kind = EventKind::kToken;
  Finish reason = Finish::kStop;  // kFinished: why the request ended
  bool is_first = false;          // kAdmitted: for the first time; kToken: the request's first token
  // True if the event happened because a tenant was owed a slot (turns.cpp). kAdmitted: the request's own tenant was;
  // kPreempted: the tenant whose request took the slot was.
  bool is_turn = false;
  std::uint32_t slot = 0;  // kFinished: kNone if the request had no slot
  TenantId tenant = 0;
  RequestId request = 0;
  std::uint64_t user = 0;
  std::int32_t token = 0;
  std::uint32_t n_generated = 0;
  std::uint32_t output_row = 0;  // kToken: the step's output row that picked the token
  // Set in the first kToken event of a step and request: the step computed n_drafts guessed tokens, and the first
  // n_right of them were picked.
  std::uint32_t n_drafts = 0, n_right = 0;
  std::uint32_t n_in_step = 1;      // kToken: how many tokens this step produced for the request
  std::uint32_t cached_tokens = 0;  // kAdmitted: prompt tokens that the prefix cache supplied
  Micros waited = 0;                // kAdmitted: how long the request waited in all
};

class Scheduler {
 public:
  // `tenants` is shared by all models of the engine and must outlive this object. `all_shares` counts the slots of all
  // replicas of the model together; it is null if this is the only replica.
  Scheduler(Options options, TenantBook& tenants, std::shared_ptr<Shares> all_shares = nullptr);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Queues a request and returns its id. Errors: kInvalidArgument, with both numbers, for a request that could never
  // run; kExhausted with retry_after_s if queue_cap requests wait already.
  Result<RequestId> submit(RequestParams params, Micros now);
  // Ends a request at the next admit. Does nothing if it has ended already.
  void cancel(RequestId id, Finish reason = Finish::kCancelled);
  void cancel_all(Finish reason);
  // The engine sets this while the request's sink is full. The slot is then not decoded, and after slow_sink_steps the
  // request is cancelled.
  void set_backpressure(RequestId id, bool on);

  // Proposes a draft: a guess of the tokens after the last token of a decoding request. The next step computes as many
  // guessed tokens as save time, and keeps those that are picked. A draft changes no token of the answer; it only
  // changes how many tokens a step produces. `chance` is the probability that a token of the draft is picked if all
  // tokens before it were. A draft is cut to RequestParams::speculation, to the request's limit, and to the limit of
  // its position encoding. While wants_guesses() returns false, only fixed drafts (Speculation::is_fixed) are used, so the
  // caller need not make other drafts.
  // If is_trial, the next step computes the draft whatever it costs, as it does with a fixed draft.
  bool wants_guesses() const { return planner_.wants_drafts(); }
  void propose(RequestId id, std::span<const std::int32_t> draft, double chance, bool is_trial = false);
  // Returns how many tokens of a draft propose() would take. REQUIRES: the request decodes.
  std::uint32_t most_drafts(const Request& request) const;
  // Returns whether the rate of the request's tenant allows it a token now.
  bool has_rate(const Request& request, Micros now) const;
  const RowPrice& row_price() const { return planner_.row_price(); }

  void admit(Micros now);
  const StepPlan& plan(Micros now);
  // Plans the step after the one that runs. Returns null if that step must wait for commit(): because requests wait,
  // compute prompts or may end for another reason than their tokens, because a pick needs the host, or because pages
  // are short. The plan has kLastPick for each token that the running step picks. Its rows have no text. If commit()
  // ends a request, the request's row of the planned step counts for nothing: its token is dropped, and the step costs
  // nobody's quota. REQUIRES: a planned step runs, and no other step was planned after it.
  const StepPlan* plan_ahead(Micros now);
  // Returns whether plan_ahead() would plan a step, if pages suffice. The call costs less.
  bool may_plan_ahead(Micros now);
  // Returns whether a step that was planned ahead runs and computes something for a request that has not ended.
  bool is_ahead() const;
  // Ends a step that was planned ahead if all its requests have ended.
  void drop_step() { plan_.clear_items(); }

  // Ends a step that ran. `tokens` are the picked tokens in the order of the plan's items, n_picks per item. Each token
  // is appended to its request, until one of them ends the request. `step_us` is how long the step took, in us, if the
  // plan had items to compute.
  void commit(std::span<const std::int32_t> tokens, Micros now, double step_us);
  // Called in place of commit() if the device failed. Ends the requests of the step with Finish::kFault and drops the
  // pages that the step was to fill.
  void fail_step(Micros now);

  std::span<const Event> events() const { return events_; }
  void clear_events() { events_.clear(); }

  // Takes a slot and pages that belong to no request, for diagnostics and for prefixes loaded from a file. Errors:
  // kInvalidArgument if n_tokens exceeds the context; kExhausted; both with both numbers.
  Result<std::uint32_t> lease(std::uint32_t n_tokens);
  void give_back_lease(std::uint32_t slot);
  std::span<const std::uint32_t> leased_pages(std::uint32_t slot) const { return slots_.pages(slot); }
  // Puts the pages of a lease into a tenant's prefix cache as the KV of these tokens. REQUIRES: `tokens` fill whole
  // pages, and no more pages than the lease has.
  void publish_lease(std::uint32_t slot, TenantId tenant, const std::string& salt, mem::SpanView tokens);
  // Returns how many tokens of this prompt the tenant's prefix cache holds now. It does not count as a use for the
  // cache's order of eviction. (book)
  std::uint32_t cached_tokens(TenantId tenant, const std::string& salt, mem::SpanView prompt) const;
  // Drops the tenant's cached prefixes that nobody uses, both in its own scope and in its isolation group. Prefixes
  // that other members of the group computed stay, and so do the prefixes that these extend. Returns how many pages
  // were freed.
  std::uint32_t flush_prefixes(TenantId tenant);
  // Called before another tenant gets this id. Drops the prefixes of the tenant's own scope; what it shared with an
  // isolation group stays.
  void forget_tenant(TenantId tenant);

  bool is_idle() const { return waiting_.size() == 0 && n_running_ == 0; }
  // The members from here down to options() are marked "book".
  std::uint32_t n_waiting() const { return waiting_.size(); }
  std::uint32_t n_running() const { return n_running_; }
  // Returns how many tokens all requests together still have to compute, without the tokens that the cache will
  // probably supply. The call visits every request.
  std::uint64_t backlog_tokens() const;
  const SlotTable& slots() const { return slots_; }
  const mem::PagePool& pages() const { return pages_.pool(); }
  const mem::PrefixCache& prefixes() const { return pages_.prefixes(); }
  const Stats& stats() const { return stats_; }
  const Options& options() const { return options_; }  // never changes

  const Request* find(RequestId id) const;
  const Request* in_slot(std::uint32_t slot) const { return slot_requests_[slot]; }
  // Number of scopes of the prefix cache (mem/prefix_cache.h).
  std::size_t n_scopes() const { return pages_.n_scopes(); }
  const CostModel& cost() const { return planner_.cost(); }
  const RequestQueue& queue() const { return waiting_; }
  const Shares& shares() const { return shares_; }  // counts the slots of this replica only
  // Returns the shares over all replicas of the model.
  const Shares& shares_everywhere() const { return all_shares_ ? *all_shares_ : shares_; }

 private:
  // The following functions queue, commit and end requests. They are defined in scheduler.cpp.
  double retry_after() const;
  Request* get(RequestId id) const;
  void end_soon(RequestId id, Finish reason);
  void note_waiting(const Request& request, int more);
  void note_running(const Request& request, int more);
  void finish(Request& request, Finish reason, Micros now);
  // Verdict tells which of an item's picks count.
  struct Verdict {
    std::uint32_t n_right = 0;   // the first n_right guessed tokens were picked
    std::uint32_t n_tokens = 0;  // the first n_tokens picks become tokens of the text
  };
  Verdict verdict_on(const PlanItem& item, const Request& request, std::span<const std::int32_t> picks) const;
  Request* request_of(const PlanItem& item) const;
  void commit_item(const PlanItem& item, Verdict& verdict, Micros now);
  void accept(Request& request, const PlanItem& item, const Verdict& verdict, std::uint32_t first_row,
              std::span<const std::int32_t> picks, Micros now);
  void move(std::uint32_t slot, SlotState to);
  Event event(EventKind kind, const Request& request) const;
  std::uint32_t variant_of(const Request& request) const { return options_.variant_of(request.n_encoded()); }
  void take_slot(Request& request);
  void release_slot(Request& request, bool keep);
  // Starts the text again from its beginning in the same slot, because it has outgrown the range of its position
  // encoding.
  void restart(Request& request);

  // The following functions decide which waiting request gets the next slot. They are defined in admission.cpp.
  void apply_cancels(Micros now);
  Request* best_candidate(const Request* blocked, Micros now);
  bool comes_before(const Request& a, const Request& b, Micros now) const;
  // Returns how long the request has waited while no request of its tenant and class got a slot.
  Micros line_wait(const Request& request, Micros now) const {
    return now - std::max(request.queued_at, shares_.admitted_at(request.params.tenant, request.params.qos));
  }
  bool is_aged(const Request& request, Micros now) const { return line_wait(request, now) >= options_.starvation; }
  bool may_start(const Request& request, Micros now) const;
  Request* first_startable(Request& head, Micros now) const;
  // Ground is the reason for which a request may take a slot from another request: its class is more urgent, or its
  // tenant has less than its share.
  enum class Ground : std::uint8_t { kClass, kShare };
  enum class Outcome : std::uint8_t { kAdmitted, kSkipped, kBlocked };
  Outcome try_admit(Request& request, Ground ground, bool must_preempt, Micros now);
  void start(Request& request, bool is_turn, Micros now);

  // The following functions decide which running request yields its slot, so that each tenant gets its share. They are
  // defined in turns.cpp.
  Qos level_of(const Request& request, Micros now) const;
  bool is_owed(const Request& request, Micros now) const;
  Micros turn_of(const Request& request) const;
  bool may_yield(const Request& request, const Request& candidate, Micros now) const;
  bool may_yield(const Request& request, const Request& candidate, const Shares& shares, Micros now) const;
  Request* yielder_for(const Request& candidate, const Shares& shares, Micros now) const;
  Request* yielder_for(const Request& candidate, Micros now) const;
  Request* most_owed(Micros now) const;
  void give_turns(Micros now);

  // The following functions choose running requests that lose their slots, and preempt them. They are defined in
  // preemption.cpp.
  Request* victim_for(const Request& candidate, Ground ground, Micros now) const;
  std::uint64_t victim_pages(const Request& candidate, Ground ground, Micros now) const;
  Request* victim_for_pages(const Request& grower, bool same_tenant, Micros now) const;
  bool is_worse(const Request& a, const Request& b, Micros now) const;
  void preempt(Request& request, bool is_turn, Micros now);

  // The following functions make the plan of a step. They are defined in planning.cpp.
  bool is_throttled(const Request& request, Micros now);
  void note_stall(Request& request);
  // Takes pages until the slot has room for n_tokens, preempting others if may_preempt. Returns false if no page was
  // free, or if the request itself was preempted.
  bool grow(Request& request, std::uint32_t n_tokens, bool may_preempt, Micros now);
  bool may_decode_ahead(const Request& request) const;
  bool only_decodes_next(Micros now);
  void plan_decodes(Micros now);
  void plan_prompts(Micros now);
  void save_states(std::size_t first_item);
  void look_again(Micros now);

  Options options_;
  TenantBook& tenants_;
  Stats stats_;
  SlotTable slots_;
  SlotPages pages_;
  BatchPlanner planner_;
  RequestQueue waiting_;
  Shares shares_;                                   // counts the slots of this replica only
  const std::shared_ptr<Shares> all_shares_;        // null if this is the model's only replica
  std::vector<std::unique_ptr<Request>> requests_;  // index: Request::index; null: no request has this index
  // Indexes of null elements in requests_, which new requests get.
  std::vector<std::uint32_t> free_indices_;
  // Index: slot. Null: the slot holds no request.
  std::vector<Request*> slot_requests_;
  std::vector<Request*> decoding_, prompts_;  // scratch of plan()
  // cancel() adds to it, and the next admit() ends these requests.
  std::vector<RequestId> cancelled_;
  // Events since the runner took them last, in order.
  std::vector<Event> events_;
  std::vector<Verdict> verdicts_;  // scratch of commit(), one per item
  // plan_ is the plan of the current step, which plan() fills. ahead_ is the plan of the step after it, which
  // plan_ahead() fills and commit() makes the current one; it has no items if none was planned. n_ahead_ counts the
  // steps planned ahead since the last call of plan().
  StepPlan plan_, ahead_;
  std::uint32_t n_ahead_ = 0;
  // Numbers of requests with a slot, of requests with protected_until, of requests with a deadline, and of leased
  // slots.
  std::uint32_t n_running_ = 0, n_protected_ = 0, n_deadlines_ = 0, n_leases_ = 0;
  std::uint64_t next_order_ = 1, next_generation_ = 1, next_admission_ = 1, round_ = 0;
  std::uint64_t preemptions_planned_ = 0;  // value of Stats::preemptions when the last step was planned
  // Smoothed time in us between two ends of requests, and the time of the last end. retry_after() reads them.
  double finish_interval_us_ = 0;
  Micros last_finish_ = 0;
};

}  // namespace zinc_rt::sched

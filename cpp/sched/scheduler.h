// The multitenant scheduler of one replica: a model on a device. It decides which requests get slots and pages, and
// what each step computes. It knows no model, no device and no clock; callers pass `now` in. A step is five calls.
// Three are members:
//
//   admit(now)           ends what was cancelled or is late; gives slots to waiting requests by class and share, where
//                        slots or pages are short in place of others
//   plan(now)            chooses decoding slots, then chunks of prompts, under the bounds on tokens and time
//   (fill, execute)      the engine's
//   commit(tokens, now)  moves positions, fills the prefix cache, ends requests; fail_step(now) after a device fault
//
// Each of them leaves events. SlotPages manages the pages; BatchPlanner chooses what a step computes. The members are
// defined in scheduler.cpp (submit, commit, ends), admission.cpp, turns.cpp, preemption.cpp and planning.cpp.
// Thread rule: one thread at a time. Several schedulers on different threads may share a tenant book. Every call that
// changes more than a slot's backpressure holds the book's lock. So a thread that holds the lock may read the members
// marked "book" of all these schedulers. From admit to commit nothing is allocated, unless a request arrives or ends.
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
  std::uint32_t output_row = 0;  // kToken: which output row of the step
  // kToken: set in the first token that a step gives. The step computed n_drafts guessed tokens, and the first n_right of
  // them were picked.
  std::uint32_t n_drafts = 0, n_right = 0;
  std::uint32_t n_in_step = 1;      // kToken: tokens that the step gave this request
  std::uint32_t cached_tokens = 0;  // kAdmitted
  Micros waited = 0;                // kAdmitted: how long it waited in all
};

class Scheduler {
 public:
  // `tenants`: shared by the engine's models; it must outlive this object. `all_shares`: the shares over all replicas
  // of the model; null if this is the only replica.
  Scheduler(Options options, TenantBook& tenants, std::shared_ptr<Shares> all_shares = nullptr);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Queues a request. Errors: kInvalidArgument for a request that could never run, with both numbers; kExhausted with
  // retry_after_s if queue_cap requests wait.
  Result<RequestId> submit(RequestParams params, Micros now);
  // Ends a request at the next admit. Does nothing when it has ended already.
  void cancel(RequestId id, Finish reason = Finish::kCancelled);
  void cancel_all(Finish reason);
  // A slot whose sink is full is not decoded, and is cancelled after slow_sink_steps.
  void set_backpressure(RequestId id, bool on);

  // Proposes a draft: a guess of the tokens after the last token of a decoding request. The next step computes as many
  // of them as save time, and keeps those that are picked. A draft changes no token, only how many tokens a step gives.
  // chance: the probability that a token of the draft is picked if all tokens before it were. A draft is cut to
  // RequestParams::speculation, to the request's limit, and to the limit of its position encoding. It is ignored if the
  // model has recurrent state. While wants_guesses() is false, drafts that are not fixed are not used, so that the
  // caller need not make them.
  bool wants_guesses() const { return planner_.wants_drafts(); }
  void propose(RequestId id, std::span<const std::int32_t> draft, double chance);

  void admit(Micros now);
  const StepPlan& plan(Micros now);
  // tokens: the picks in the order of the items, n_picks per item. They are appended to the slot's request until one of
  // them ends it. step_us: the duration of the step, if one ran.
  void commit(std::span<const std::int32_t> tokens, Micros now, double step_us);
  // Ends the requests of the step with Finish::kFault and drops their pages that were not committed.
  void fail_step(Micros now);

  std::span<const Event> events() const { return events_; }
  void clear_events() { events_.clear(); }

  // Takes a slot and pages for diagnostics, without a request. Errors: kExhausted with both numbers.
  Result<std::uint32_t> lease(std::uint32_t n_tokens);
  void give_back_lease(std::uint32_t slot);
  std::span<const std::uint32_t> leased_pages(std::uint32_t slot) const { return slots_.pages(slot); }
  // Puts the pages of a lease into a tenant's prefix cache as the KV of these tokens. REQUIRES: `tokens` fill whole
  // pages, and no more pages than the lease has.
  void publish_lease(std::uint32_t slot, TenantId tenant, const std::string& salt, mem::SpanView tokens);
  // How many tokens of this prompt the prefix cache has for the tenant now. Does not count as a use. (book)
  std::uint32_t cached_tokens(TenantId tenant, const std::string& salt, mem::SpanView prompt) const;
  // Drops cached prefixes that the tenant computed and that nobody uses, from its own scope and from its isolation
  // group. Prefixes that other members computed stay, and so does what they continue. Returns how many pages that
  // freed.
  std::uint32_t flush_prefixes(TenantId tenant);
  // Does the same before another tenant gets this id. What the tenant shared with an isolation group stays.
  void forget_tenant(TenantId tenant);

  bool is_idle() const { return waiting_.size() == 0 && n_running_ == 0; }
  // book, down to options()
  std::uint32_t n_waiting() const { return waiting_.size(); }
  std::uint32_t n_running() const { return n_running_; }
  // The number of tokens that all requests together still have to compute, less those that the cache will probably
  // supply. Visits every request.
  std::uint64_t backlog_tokens() const;
  const SlotTable& slots() const { return slots_; }
  const mem::PagePool& pages() const { return pages_.pool(); }
  const mem::PrefixCache& prefixes() const { return pages_.prefixes(); }
  const Stats& stats() const { return stats_; }
  const Options& options() const { return options_; }  // it never changes

  const Request* find(RequestId id) const;
  const Request* in_slot(std::uint32_t slot) const { return slot_requests_[slot]; }
  std::size_t n_scopes() const { return pages_.n_scopes(); }  // of prefixes that are not shared
  const CostModel& cost() const { return planner_.cost(); }
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
  // The outcome of an item's picks.
  struct Verdict {
    std::uint32_t n_right = 0;   // the first n_right drafted tokens were picked
    std::uint32_t n_tokens = 0;  // the first n_tokens picks become tokens of the text
  };
  Verdict verdict_on(const PlanItem& item, const Request& request, std::span<const std::int32_t> picks) const;
  void commit_item(const PlanItem& item, Verdict& verdict, Micros now);
  void accept(Request& request, const PlanItem& item, const Verdict& verdict, std::uint32_t first_row,
              std::span<const std::int32_t> picks, Micros now);
  void move(std::uint32_t slot, SlotState to);
  Event event(EventKind kind, const Request& request) const;
  std::uint32_t variant_of(const Request& request) const { return options_.variant_of(request.n_encoded()); }
  void take_slot(Request& request);
  void release_slot(Request& request, bool keep);
  // Starts the text over in its slot, because it has outgrown the range of its position encoding.
  void restart(Request& request);

  // admission.cpp
  void apply_cancels(Micros now);
  Request* best_candidate(const Request* blocked, Micros now);
  bool comes_before(const Request& a, const Request& b, Micros now) const;
  // How long its tenant's requests of its class have got no slot while it waited.
  Micros line_wait(const Request& request, Micros now) const {
    return now - std::max(request.queued_at, shares_.admitted_at(request.params.tenant, request.params.qos));
  }
  bool is_aged(const Request& request, Micros now) const { return line_wait(request, now) >= options_.starvation; }
  bool may_start(const Request& request, Micros now) const;
  Request* first_startable(Request& head, Micros now) const;
  // The reason why a request may take a slot: its class, or its tenant's share.
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

  // planning.cpp
  bool is_throttled(const Request& request, Micros now);
  void note_stall(Request& request);
  // Takes pages until the slot has room for n_tokens. False: there are no pages, or the request itself was preempted.
  bool grow(Request& request, std::uint32_t n_tokens, bool may_preempt, Micros now);
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
  Shares shares_;                                   // of this place
  const std::shared_ptr<Shares> all_shares_;        // null: those of this place are all
  std::vector<std::unique_ptr<Request>> requests_;  // by index; null: free
  std::vector<std::uint32_t> free_indices_;
  std::vector<Request*> slot_requests_;
  std::vector<Request*> decoding_, prompts_;  // scratch of plan()
  std::vector<RequestId> cancelled_;
  std::vector<Event> events_;
  std::vector<Verdict> verdicts_;  // scratch of commit(), by item
  StepPlan plan_;
  std::uint32_t n_running_ = 0, n_protected_ = 0, n_deadlines_ = 0, n_leases_ = 0;
  std::uint64_t next_order_ = 1, next_generation_ = 1, next_admission_ = 1, round_ = 0;
  std::uint64_t preemptions_planned_ = 0;  // Stats::preemptions at the last plan
  double finish_interval_us_ = 0;
  Micros last_finish_ = 0;
};

}  // namespace zinc_rt::sched

// Invariants checks, while a scenario is simulated, that the scheduler keeps these rules. A violation carries the name
// of its rule:
//
//   pages       Each page has one reference per slot that lists it, plus one if the cache holds it. Pages without a
//               reference are free. No page is owned twice or lost.
//   writes      A page that a step writes is listed by no other slot, and belongs to the slot that writes it.
//   content     When a step runs an item, the item's whole context is in the slot's pages and in its recurrent state
//               (kv_model.h).
//   quota       Slots and charged pages agree with the book and do not grow above the tenant's quota. After a quota was
//               lowered they only have to fall.
//   reserved    No tenant takes a page that is reserved for another.
//   slots       The slot table agrees with the requests in it: states, positions, counts.
//   plan        Items continue where their requests are computed to, respect the limits, and come once per slot,
//               decoding slots first. Their ids and rows are those of their requests.
//   draft       (A violation is reported as plan, or as slots if it is found after a step.) Guesses come only after the
//               last token of a decoding slot. There are no more of them than the request allows, than its token limit
//               has room for, and than fit into the positions of one variant of the position encoding. After a step no
//               guess is in the text, and no page is lent for one.
//   decode      Every decoding slot that may run (its sink is not full, its rate is not used up) is in the plan.
//   fifo        First admissions of a tenant and class come in order of arrival. A sibling whose leader has not yet
//               computed its prompt may be overtaken; a request that its tenant's page quota holds up may not.
//   class       No request of a lower class is admitted for the first time while an interactive request waits and could
//               start.
//   starvation  If the first request of a tenant and class waits and could start, and that class got no slot for
//               `starvation`, no younger request is admitted for the first time before it. Exceptions: a request of a
//               more urgent class in an admission that preempted, and a request whose tenant is owed a slot.
//   share       If the first requests of two tenants have the same class, both could start and neither is owed a slot,
//               the tenant of lower standing gets the slot. So right after an admission, the standing of the admitted
//               tenant, without the slot and pages of this admission, is at most the standing of any tenant that still
//               waits.
//   turns       A request that yields its slot to a tenant that is owed a slot (sched/turns.cpp) has held the slot for
//               at least a turn, and its tenant had more than its share.
//   bound       A tenant with a request that could start, but without a slot for this class or a less urgent class,
//               waits no longer than docs/tenancy.md says: turn_after, then a time in which the tenant's part adds up
//               to three turns. The part is the tenant's share of a slot, at most 1, and at most slots / lines of the
//               level. (A line is a tenant's requests of one class.) Checked only where pages cannot be short.
//   ahead       A step that is planned ahead decodes only slots that the running step decodes, one token each, and no
//               slot whose text the running step ends. While it is planned, no request computes its prompt, and at most
//               eight such steps follow each other while requests wait.
//   text        A request receives the tokens of its own text, in order and each once, whatever happened to it.
//   progress    While something can run, something runs; and every scenario ends.
//   end         When all requests have ended, every slot is free and every page is free or cached. A flush of the cache
//               frees the rest.
//   cache       PrefixCache::check finds no error.
//   internal    The scheduler counted no internal error.
// Thread rule: one thread.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sched/scheduler.h"

namespace zinc_rt::sched::sim {

struct Violation {
  std::string rule;
  std::string text;
};

class Invariants {
 public:
  // is_alone: no other scheduler shares the tenant book, so the book's numbers must be those of this scheduler.
  Invariants(const Scheduler& scheduler, const TenantBook& tenants, bool is_alone = true);

  void before_admit(Micros now);
  void after_admit(Micros now);
  void after_plan(const StepPlan& plan);
  void after_plan_ahead(const StepPlan& plan);
  void after_step();
  // Called when no request is left. is_flushed: all prefixes were flushed before the call.
  void at_end(bool is_flushed);
  void check_cache();

  void report(std::string_view rule, std::string text);  // keeps only the first report
  const std::optional<Violation>& violation() const { return violation_; }

  std::vector<std::uint32_t> leases;  // slots that diagnostics have taken without a request
  bool checks_reserved = true;        // false once reservations have changed or the pool cannot hold them
  double bound_used = 0;              // the longest wait, as a fraction of the wait that rule bound allows
  bool checks_bound = false;          // whether rule bound is checked; only where pages cannot be short

 private:
  struct Waiting {
    RequestId id = 0;
    TenantId tenant = 0;
    Qos qos = Qos::kStandard;
    std::uint64_t order = 0;
    bool is_held = false;  // true if the request waits until its leader has computed the prompt
    bool is_head = false;  // true if it is the first request of its queue that does not wait for a leader
    bool is_aged = false;
    bool is_admitted = false;  // true if the present call of admit() admitted the request
  };
  struct Line {
    Micros admitted_at = INT64_MIN / 2;
    // Set while the line waits without a slot: since when it waits, how much time of a slot it is owed in us, and its
    // latest share.
    Micros since = kNever;
    double owed_us = 0, share = 0;
  };
  struct Decoding {
    std::uint32_t slot = 0;
    RequestId id = 0;
  };
  void check_contents(const StepPlan& plan);
  bool is_held_by_leader(const Request& r) const;
  bool may_start(const Request& r, Micros now) const;
  Line& line_of(const Request& r) { return lines_[r.params.tenant][static_cast<std::size_t>(r.params.qos)]; }
  void note_admitted(const Event& e, Micros now);
  void check_yield(const Event& e, Micros now);
  void check_bound(Micros now);
  bool may_be_over_quota(const Request& r) const;
  void count_listed();
  void check_write(std::uint32_t slot, std::uint32_t page);
  void check_pages();
  void check_slots();
  void check_tenants();
  void check_fifo(const Request& admitted);
  void check_order(const Request& admitted, bool is_aged, bool is_last_of_tenant, bool did_preempt, Micros now);
  void check_share(const Request& admitted, const Request& waiting, Micros now);

  const Scheduler& s_;
  const TenantBook& tenants_;
  const bool is_alone_;
  std::optional<Violation> violation_;
  std::uint32_t n_ahead_ = 0;                            // steps that were planned ahead since the last other step
  bool looks_at_queue_ = true;                           // whether the queue is checked in this turn of the simulator
  std::uint64_t n_turns_ = 0;                            // number of simulator turns in which the queue was long
  std::vector<std::array<Line, kQosCount>> lines_;       // index: tenant
  std::vector<std::array<bool, kQosCount>> line_waits_;  // scratch; index: tenant
  std::vector<Micros> slot_since_;                       // index: slot; when the slot was taken
  Micros last_admit_ = 0, longest_step_ = 0, longest_turn_ = 0;
  std::vector<Waiting> waiting_;                              // the queue as it was before admit
  std::vector<Decoding> decoding_;                            // the slots that the plan must decode, as of after admit
  std::vector<std::uint32_t> n_listed_;                       // index: page; the number of slots that list it
  std::vector<std::uint32_t> n_slots_, n_pages_, n_waiting_;  // index: tenant; counted from slots and queue
  std::vector<std::uint32_t> last_slots_, last_pages_;        // index: tenant; the values after the step before
};

}  // namespace zinc_rt::sched::sim

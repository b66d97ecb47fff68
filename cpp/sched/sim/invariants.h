// What must hold of the scheduler at each point of a step. Rules, by the names that a violation carries:
//
//   pages       each page's references are those of the slots that list it, plus one if the cache holds it; free pages
//               are those without any; nothing is owned twice or lost
//   writes      a page that a step writes is listed by no other slot and belongs to the slot that writes it
//   content     each item's whole context is in its pages, and in its recurrent state (kv_model.h)
//   quota       slots and charged pages agree with the book, and do not grow above the tenant's quota (one that was
//               lowered is reached by waiting)
//   reserved    no tenant takes a page that is reserved for another
//   slots       the slot table agrees with the requests in it: states, positions, counts
//   plan        items are contiguous from what is done, under the caps, one for each slot, decoding slots first; ids and
//               rows are those of their requests
//   draft       guesses stand behind the last token of a slot that decodes, as many as the request allows, within its
//               limit and one variant of the position encoding; none is in the text, and no page is lent after a step
//   decode      every decoding slot that is neither held up by its sink nor out of tokens is in the plan
//   fifo        first admissions of a tenant and class come in order of arrival. A sibling whose leader has not yet
//               computed its prompt may be passed; a request that its own tenant's page quota holds up may not
//   class       no first admission of a lower class while an interactive request could start and waits
//   starvation  the head of a line (a tenant's requests of a class) that got no slot for `starvation`, while it waits
//               and could start, is not overtaken by the first admission of a younger request. Excepted are requests
//               of a more urgent class in an admission that preempted, and those of a tenant that is owed a slot
//   share       of two tenants whose heads of the same class could start, and neither of which is owed a slot, the one
//               of lower standing is admitted. So right after an admission the winner's standing, less the slot and
//               pages that this admission gave it, is at most that of any tenant that goes on waiting
//   turns       a request that yields a slot to a tenant that is owed one has had it for a turn, and its tenant had
//               more than its share
//   bound       a tenant of which a request could start while none of that class or a less urgent one is in a slot
//               waits no longer than docs/tenancy.md says: turn_after, then a time in which its part adds up to three
//               turns. Its part is its share of a slot, at most 1, and at most slots / lines of the level. Checked
//               where pages cannot be short
//   text        the tokens of a request are its own text's, in order, each once, whatever happened to it
//   progress    while something can run something runs; a scenario ends
//   end         when all requests have ended every slot is free and every page is free or cached; a flush frees the
//               rest
//   cache       PrefixCache::check finds nothing
//   internal    the scheduler counted no internal error
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
  // is_alone: no other scheduler uses the book, so the book's numbers are this scheduler's.
  Invariants(const Scheduler& scheduler, const TenantBook& tenants, bool is_alone = true);

  void before_admit(Micros now);
  void after_admit(Micros now);
  void after_plan(const StepPlan& plan);
  void after_step();
  // Called when no request is left. is_flushed: all prefixes have been flushed.
  void at_end(bool is_flushed);
  void check_cache();

  void report(std::string_view rule, std::string text);  // the first report is kept
  const std::optional<Violation>& violation() const { return violation_; }

  std::vector<std::uint32_t> leases;  // slots that diagnoses have taken, without a request
  bool checks_reserved = true;        // false once reservations have changed or the pool cannot hold them
  double bound_used = 0;              // the largest part of the bound on waiting (rule bound) that a request has waited
  bool checks_bound = false;          // whether rule bound is checked: only where pages cannot be short

 private:
  struct Waiting {
    RequestId id = 0;
    TenantId tenant = 0;
    Qos qos = Qos::kStandard;
    std::uint64_t order = 0;
    bool is_held = false;  // by its leader
    bool is_head = false;  // the first in its queue that is not held
    bool is_aged = false;
    bool is_admitted = false;  // admitted in this call of admit
  };
  struct Line {
    Micros admitted_at = INT64_MIN / 2;
    // For a line that waits without a slot: since when, how much of a slot it is owed in us, and its latest share.
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
  bool looks_at_queue_ = true;                           // whether the queue is checked in this turn
  std::uint64_t n_turns_ = 0;                            // turns with a long queue
  std::vector<std::array<Line, kQosCount>> lines_;       // by tenant
  std::vector<std::array<bool, kQosCount>> line_waits_;  // scratch, by tenant
  std::vector<Micros> slot_since_;                       // by slot: when it was taken
  Micros last_admit_ = 0, longest_step_ = 0, longest_turn_ = 0;
  std::vector<Waiting> waiting_;                              // before admit, by queue and order
  std::vector<Decoding> decoding_;                            // after admit: what the plan must hold
  std::vector<std::uint32_t> n_listed_;                       // by page: slots that list it
  std::vector<std::uint32_t> n_slots_, n_pages_, n_waiting_;  // by tenant, counted
  std::vector<std::uint32_t> last_slots_, last_pages_;        // by tenant, after the step before
};

}  // namespace zinc_rt::sched::sim

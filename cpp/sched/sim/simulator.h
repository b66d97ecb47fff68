// Simulates a scenario: drives the scheduler as engine/runner.cpp does, with simulated time and a simulated device
// (kv_model.h), and checks all invariants in every turn. A turn of the simulator calls admit and plan, unless a step
// that was planned ahead runs already, and ends one step. (It has nothing to do with the turns of turns.cpp.)
// Thread rule: one thread; simulations share nothing.
#pragma once

#include <memory>
#include <vector>

#include "sched/sim/invariants.h"
#include "sched/sim/kv_model.h"
#include "sched/sim/scenario.h"

namespace zinc_rt::sched::sim {

// Counts of a simulation. An `expect count` line names one of them.
struct SimCounts {
  std::uint64_t turns = 0;  // turns of the simulator; each runs at most one step
  std::uint64_t steps = 0;  // turns with something to compute, including failed ones
  std::uint64_t admissions = 0, preemptions = 0, yields = 0, evictions = 0, decode_tokens = 0, prefill_tokens = 0;
  // Members of the same names of Stats, at the end.
  std::uint64_t draft_tokens = 0, accepted_draft_tokens = 0, steps_ahead = 0, dropped_rows = 0;
  std::uint64_t prompt_tokens = 0, cached_tokens = 0, page_copies = 0, restores = 0, saves = 0;
  std::uint64_t refused = 0, finished = 0, faults = 0;
};
std::uint64_t* count_named(SimCounts& counts, std::string_view name);  // null if no count has this name
void add(SimCounts& to, const SimCounts& counts);

struct Outcome {
  std::uint32_t name = 0;
  bool was_refused = false, has_ended = false;
  Finish reason = Finish::kStop;
  std::uint32_t n_generated = 0, cached_tokens = 0;
};

struct SimResult {
  std::optional<Violation> violation;
  SimCounts counts;
  Micros end = 0;
  double bound_used = 0;                           // the longest wait, as a fraction of the wait that rule bound allows
  std::vector<Outcome> outcomes;                   // in the order of the submits
  std::vector<std::uint32_t> admitted, preempted;  // names, in order: first admissions; preemptions
  std::vector<double> service;                     // index: tenant; its service in the book at the end
};

// Simulates a scenario to its end, then checks its expectations.
SimResult simulate(const Scenario& scenario);

}  // namespace zinc_rt::sched::sim

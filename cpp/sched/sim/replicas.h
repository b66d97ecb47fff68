// Simulates conversations on several replicas of a model, as in a data-parallel engine: a scheduler per replica, one
// tenant book, one placement rule (sched/placement.h). Time is simulated; each replica steps by itself.
//
// Checked after every call: on each replica what sim/invariants.h says, and over all of them
//   quota     a tenant's slots, pages and waiting requests are those of the book, and within its quota
//   bound     who has no slot anywhere waits no longer than docs/tenancy.md says
//   placement a request goes to the longest cached prefix, or to a replica that the hit would not make up for
// Thread rule: one thread.
#pragma once

#include <optional>
#include <vector>

#include "sched/sim/invariants.h"
#include "sched/sim/load.h"

namespace zinc_rt::sched::sim {

// A user who asks, thinks about the answer and asks again behind all that was said, for several turns; then starts
// anew.
struct Talkers {
  std::uint32_t n_users = 8;
  double weight = 1;
  Qos qos = Qos::kStandard;
  std::uint32_t max_slots = 64;  // of the tenant
  std::uint32_t n_systems = 2;   // system prompts, of which each conversation has one
  std::uint32_t system[2] = {200, 800}, question[2] = {20, 200}, answer[2] = {20, 200};  // tokens, from and up to
  std::uint32_t turns[2] = {2, 8};
  Micros think = 3'000'000;  // on average
};

enum class PlacementRule : std::uint8_t { kByPrefix, kByBacklog, kAtRandom };

struct ReplicasLoad {
  std::vector<Options> replicas;  // of each
  std::vector<Talkers> tenants;
  Machine machine;
  std::uint32_t n_requests = 2000;
  std::uint64_t seed = 1;
  PlacementRule rule = PlacementRule::kByPrefix;
};

struct ReplicasResult {
  std::optional<Violation> violation;
  // Prompt tokens from the cache, over all replicas. best: as if one replica that forgets nothing served each
  // conversation.
  double hit_rate = 0, best_hit_rate = 0;
  double bound_used = 0;                     // the largest part of the bound on waiting that somebody waited
  std::vector<double> service;               // by tenant
  std::vector<std::uint64_t> n_requests;     // by replica
  std::uint64_t n_yields = 0, n_waited = 0;  // n_waited: requests that got no slot at once
  double seconds = 0, first_p50_ms = 0, first_p99_ms = 0;
};

ReplicasResult run_replicas(const ReplicasLoad& load);

}  // namespace zinc_rt::sched::sim

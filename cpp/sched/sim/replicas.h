// Simulates conversations on several replicas of a model, as a data-parallel engine runs them: one scheduler per
// replica, one tenant book, one placement rule (sched/placement.h). Time is simulated, and each replica steps by
// itself.
//
// After every call the rules of sim/invariants.h are checked on each replica, and these rules over all replicas:
//   quota      A tenant's slots, pages and waiting requests equal the numbers in the book and are within its quota.
//   bound      A tenant that has no slot anywhere waits no longer than docs/tenancy.md says.
//   placement  A request goes to the replica with its longest cached prefix, or to a replica that will have computed
//              the prompt sooner although its cached prefix is shorter.
// Thread rule: one thread.
#pragma once

#include <optional>
#include <vector>

#include "sched/sim/invariants.h"
#include "sched/sim/load.h"

namespace zinc_rt::sched::sim {

// Talkers describes the users of one tenant. Each user asks, thinks about the answer, and asks again in the same
// conversation for several turns. Then the user starts a new conversation.
struct Talkers {
  std::uint32_t n_users = 8;
  double weight = 1;
  Qos qos = Qos::kStandard;
  std::uint32_t max_slots = 64;  // the tenant's quota of slots
  std::uint32_t n_systems = 2;   // each conversation begins with one of n_systems system prompts
  std::uint32_t system[2] = {200, 800}, question[2] = {20, 200}, answer[2] = {20, 200};  // tokens, least and most
  std::uint32_t turns[2] = {2, 8};
  Micros think = 3'000'000;  // mean time between an answer and the next question, in us
};

enum class PlacementRule : std::uint8_t { kByPrefix, kByBacklog, kAtRandom };

struct ReplicasLoad {
  std::vector<Options> replicas;  // the options of each replica
  std::vector<Talkers> tenants;
  Machine machine;
  std::uint32_t n_requests = 2000;
  std::uint64_t seed = 1;
  PlacementRule rule = PlacementRule::kByPrefix;
};

struct ReplicasResult {
  std::optional<Violation> violation;
  // hit_rate: the fraction of prompt tokens that the caches of all replicas supplied. best_hit_rate: the fraction if
  // each conversation stayed on one replica that forgets nothing.
  double hit_rate = 0, best_hit_rate = 0;
  double bound_used = 0;                     // the longest wait, as a fraction of the wait that rule bound allows
  std::vector<double> service;               // index: tenant
  std::vector<std::uint64_t> n_requests;     // index: replica
  std::uint64_t n_yields = 0, n_waited = 0;  // n_waited: requests that did not get a slot at once
  double seconds = 0, first_p50_ms = 0, first_p99_ms = 0;
};

ReplicasResult run_replicas(const ReplicasLoad& load);

}  // namespace zinc_rt::sched::sim

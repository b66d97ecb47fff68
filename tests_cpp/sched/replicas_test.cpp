// Several replicas with one tenant book: prefixes are found, quotas hold and shares are kept over all of them.
#include "sched/sim/replicas.h"

#include <gtest/gtest.h>

namespace zinc_rt::sched::sim {
namespace {

// An H100 with a model of 8 billion weights of 4 bits, as in zinc-rt sched-test --loads.
constexpr Machine kMachine{.base_us = 4000, .decode_us = 10, .prompt_us = 7000, .prompt_token_us = 45};

ReplicasLoad load_of(std::uint32_t n_replicas, std::uint32_t n_slots) {
  ReplicasLoad load;
  load.machine = kMachine;
  Options options;
  options.n_slots = n_slots;
  options.max_context = 8192;
  options.n_pages = 2 * (n_slots + 2) * (options.max_context / kPageTokens);
  options.chunk_cap = 2048;
  load.replicas.assign(n_replicas, options);
  return load;
}

ReplicasResult run(const ReplicasLoad& load) {
  auto result = run_replicas(load);
  EXPECT_FALSE(result.violation) << result.violation->rule << ": " << result.violation->text;
  return result;
}

// Chats with short and long system prompts, and one tenant with long answers.
std::vector<Talkers> chats(std::uint32_t n_replicas) {
  return {{.n_users = 12 * n_replicas},
          {.n_users = 6 * n_replicas, .weight = 2, .system = {500, 2000}},
          {.n_users = 2 * n_replicas, .answer = {200, 800}}};
}

struct PlacesCase {
  std::uint32_t n_replicas, n_slots;
};
class Hits : public ::testing::TestWithParam<PlacesCase> {};

// With four slots a replica most requests wait for one, and the backlogs differ.
TEST_P(Hits, AreNearlyThoseOfOnePlaceThatForgetsNothing) {
  const auto [n_replicas, n_slots] = GetParam();
  auto load = load_of(n_replicas, n_slots);
  load.tenants = chats(n_replicas);
  for (load.seed = 1; load.seed <= 2; ++load.seed) {
    load.rule = PlacementRule::kByPrefix;
    const auto ours = run(load);
    EXPECT_GT(ours.best_hit_rate, 0.9);
    EXPECT_GE(ours.hit_rate, 0.96 * ours.best_hit_rate);
    for (const auto n : ours.n_requests) EXPECT_GT(n, load.n_requests / n_replicas / 4) << "a replica is left out";
    load.rule = PlacementRule::kByBacklog;
    const auto balanced = run(load);
    EXPECT_LT(balanced.hit_rate, 0.93 * balanced.best_hit_rate) << "the load puts no rule to the test";
    EXPECT_LT(ours.first_p99_ms, 2 * balanced.first_p99_ms);
  }
}
INSTANTIATE_TEST_SUITE_P(Replicas, Hits,
                         ::testing::Values(PlacesCase{2, 4}, PlacesCase{2, 16}, PlacesCase{4, 4}, PlacesCase{4, 16}),
                         [](const auto& info) {
                           return std::to_string(info.param.n_replicas) + "_of_" + std::to_string(info.param.n_slots) +
                                  "_slots";
                         });

// Many long streams of some tenants, so that the others have slots by their turns alone.
TEST(Replicas, NobodyWaitsLongerThanTheBoundAndHitsStayHigh) {
  double used = 0;
  std::uint64_t n_yields = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    auto load = load_of(2 + seed % 2, 3);
    load.seed = seed;
    load.n_requests = 800;  // so that the first of each prompt at each replica counts little
    load.tenants = {{.n_users = 10, .answer = {1000, 4000}, .turns = {1, 2}, .think = 100'000},
                    {.n_users = 4, .answer = {1000, 4000}, .turns = {1, 2}, .think = 100'000},
                    {.n_users = 4, .weight = 0.5, .answer = {1000, 4000}, .turns = {1, 2}, .think = 100'000},
                    {.n_users = 3},
                    {.n_users = 2, .qos = Qos::kInteractive},
                    {.n_users = 3, .qos = Qos::kBatch, .answer = {500, 1000}}};
    const auto r = run(load);
    used = std::max(used, r.bound_used);
    n_yields += r.n_yields;
    EXPECT_GE(r.hit_rate, 0.96 * r.best_hit_rate);
  }
  EXPECT_GT(n_yields, 20u);
  EXPECT_GT(used, 0.02);
  EXPECT_LE(used, 1);
}

// What a tenant has at one replica counts at the other: replicas of unlike size, tenants of unlike weight and length.
TEST(Replicas, BackloggedTenantsAreServedByWeightOverAllReplicas) {
  auto load = load_of(2, 8);
  load.replicas[1].n_slots = 2;
  load.n_requests = 4000;
  load.tenants = {{.n_users = 60, .think = 1000},
                  {.n_users = 60, .weight = 2, .think = 1000},
                  {.n_users = 30, .system = {1000, 1200}, .answer = {200, 400}, .think = 1000}};
  const auto r = run(load);
  ASSERT_EQ(r.service.size(), 3u);
  for (const double one : r.service) EXPECT_NEAR(one / r.service[0], 1, 0.01);
  for (const auto n : r.n_requests) EXPECT_GT(n, 400u);
}

TEST(Replicas, ATenantHasItsSlotsOverAllReplicasTogether) {
  auto load = load_of(3, 8);
  load.n_requests = 600;
  load.tenants = {{.n_users = 20, .max_slots = 3, .think = 1000}, {.n_users = 20, .max_slots = 5, .think = 1000}};
  const auto r = run(load);  // rule quota, after every step
  EXPECT_GT(r.n_waited, 400u);
}

}  // namespace
}  // namespace zinc_rt::sched::sim

// Ten million steps of random scenarios, half of them with faults; and ten million in which all wait for slots.
#include <gtest/gtest.h>

#include "sched/sim/campaign.h"

namespace zinc_rt::sched::sim {
namespace {

void expect_sound(std::uint64_t seed, std::uint64_t n_steps, const RandomOptions& random) {
  const auto result = run_campaign({.seed = seed, .n_steps = n_steps, .random = random, .on_progress = {}});
  EXPECT_FALSE(result.violation) << "seed " << result.failed_seed << ": " << result.violation->rule << ": "
                                 << result.violation->text;
  EXPECT_LE(result.bound_used, 1);
}

TEST(RandomScenarios, TenMillionSteps) {
  for (const bool with_faults : {false, true}) expect_sound(5'000'000, 5'000'000, {.with_faults = with_faults});
}

TEST(RandomScenarios, TenMillionStepsOfWaitingForSlots) {
  expect_sound(6'000'000, 10'000'000, {.is_about_shares = true});
}

}  // namespace
}  // namespace zinc_rt::sched::sim

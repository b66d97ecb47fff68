// Ten million steps of random scenarios, half of them with faults.
#include <gtest/gtest.h>

#include "sched/sim/campaign.h"

namespace zinc_rt::sched::sim {
namespace {

TEST(RandomScenarios, TenMillionSteps) {
  for (const bool with_faults : {false, true}) {
    const auto result =
        run_campaign({.seed = 5'000'000, .n_steps = 5'000'000, .random = {with_faults}, .on_progress = {}});
    EXPECT_FALSE(result.violation) << "seed " << result.failed_seed << ": " << result.violation->rule << ": "
                                   << result.violation->text;
  }
}

}  // namespace
}  // namespace zinc_rt::sched::sim

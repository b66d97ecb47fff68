// The devices of a tier: each has memory of its own, they run at the same time, and the bits are those of any other.
#include <gmock/gmock.h>

#include <thread>

#include "executor/registry.h"
#include "model_fixture.h"

namespace zinc_rt {
namespace {

std::vector<std::string> tiers_here() {
  std::vector<std::string> names;
  for (const TierEntry& entry : executor_tiers())
    if (entry.tier.name != "null") names.push_back(entry.tier.name);
  return names;
}

class TierDevices : public ::testing::TestWithParam<std::string> {};

TEST_P(TierDevices, HaveTheSameBitsSideBySide) {
  auto options = small_options();
  options.tier = GetParam();
  const auto tiers = executor_tiers();
  const auto& tier = std::ranges::find(tiers, GetParam(), [](const TierEntry& e) { return e.tier.name; })->tier;
  if (const auto reason = tier.unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const std::uint32_t n = tier.n_devices != nullptr ? tier.n_devices() : 1;
  options.device = n;
  const auto none = open_executor(model_path("llama_k-Q4_K_M"), options);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, ::testing::HasSubstr("devices: " + std::to_string(n) + " of tier " + GetParam()));
  if (n < 2) GTEST_SKIP() << "tier " << GetParam() << " has " << n << " device here, 2 wanted";
  std::vector<std::unique_ptr<Executor>> executors;
  for (options.device = 0; options.device < 2; ++options.device) {
    auto executor = open_executor(model_path("llama_k-Q4_K_M"), options);
    ASSERT_TRUE(executor) << executor.error().message;
    executors.push_back(std::move(*executor));
  }
  const auto ids = prompt(40);
  const auto wanted = run_prompt(*open("llama_k-Q4_K_M"), ids, 16);
  Outcome got[2];
  std::thread second([&] { got[1] = run_prompt(*executors[1], ids, 16); });
  got[0] = run_prompt(*executors[0], ids, 16);
  second.join();
  EXPECT_EQ(got[0], wanted);
  EXPECT_EQ(got[1], wanted);
  executors[0].reset();  // and what one frees is its own
  EXPECT_EQ(run_prompt(*executors[1], ids, 7), wanted);
}

INSTANTIATE_TEST_SUITE_P(Here, TierDevices, ::testing::ValuesIn(tiers_here()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zinc_rt

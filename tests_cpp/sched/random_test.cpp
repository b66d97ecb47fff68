// Random scenarios under all invariants; faults at every place of a small scenario; a failure shrinks.
#include <gtest/gtest.h>

#include "sched/sim/campaign.h"
#include "sched/sim/shrink.h"

namespace zinc_rt::sched::sim {
namespace {

void expect_sound(const Scenario& scenario) {
  const SimResult result = simulate(scenario);
  EXPECT_FALSE(result.violation) << result.violation->rule << ": " << result.violation->text << "\n"
                                 << print_scenario(scenario);
}

void run(bool with_faults, std::uint64_t seed) {
  const CampaignResult result =
      run_campaign({.seed = seed, .n_steps = 100'000, .random = {.with_faults = with_faults}, .on_progress = {}});
  EXPECT_FALSE(result.violation) << "seed " << result.failed_seed << ": " << result.violation->rule << ": "
                                 << result.violation->text;
  // The scenarios reach what they are there for.
  EXPECT_GT(result.counts.preemptions, 1000u);
  EXPECT_GT(result.counts.evictions, 1000u);
  EXPECT_GT(result.counts.cached_tokens, 1000u);
  EXPECT_GT(result.counts.page_copies, 100u);
  EXPECT_GT(result.counts.restores, 50u);
  EXPECT_GT(result.counts.accepted_draft_tokens, 1000u);
  EXPECT_GT(result.counts.draft_tokens - result.counts.accepted_draft_tokens, 1000u);  // wrong ones too
  EXPECT_GT(result.counts.steps_ahead, 10'000u);
  EXPECT_GT(result.counts.dropped_rows, 50u);
  EXPECT_EQ(result.counts.faults > 0, with_faults);
}

TEST(RandomScenarios, WhoeverWaitsGetsASlotWithinTheBound) {
  const CampaignResult result =
      run_campaign({.seed = 3'000'000, .n_steps = 500'000, .random = {.is_about_shares = true}, .on_progress = {}});
  EXPECT_FALSE(result.violation) << "seed " << result.failed_seed << ": " << result.violation->rule << ": "
                                 << result.violation->text;
  EXPECT_GT(result.counts.yields, 5000u);
  EXPECT_GT(result.bound_used, 0.25);  // it is no bound that nothing comes near
}

TEST(RandomScenarios, Plain) {
  run(false, 1'000'000);
}

TEST(RandomScenarios, WithFaults) {
  run(true, 2'000'000);
}

// Two tenants, three classes, few pages: some 150 steps in which every path is taken.
Scenario busy_scenario() {
  const auto scenario = parse_scenario(
      "options slots=3 pages=14 context=128 chunk=24\n"
      "tenant 0 isolation=1\n"
      "tenant 1 isolation=1 weight=2\n"
      "tenant 2 qos=batch reserved=2\n"
      "at 0 submit 0 tenant=0 prompt=50 shared=40 seed=1 max=20\n"
      "at 0 submit 1 tenant=2 qos=batch prompt=40 seed=2 max=40\n"
      "at 0 submit 2 tenant=1 prompt=60 shared=40 seed=3 max=20\n"
      "at 500 submit 3 tenant=1 prompt=60 shared=40 seed=4 max=20 after=2\n"
      "at 9000 submit 4 tenant=0 qos=interactive prompt=30 seed=5 max=30\n"
      "at 12000 submit 5 tenant=2 qos=batch prompt=80 seed=2 max=20\n"
      "at 30000 submit 6 tenant=0 prompt=90 seed=1 shared=40 max=10\n");
  EXPECT_TRUE(scenario);
  return *scenario;
}

template <class Change>
void sweep(std::uint64_t n, Change&& change) {
  for (const bool is_recurrent : {false, true})
    for (std::uint64_t i = 0; i < n; ++i) {
      Scenario scenario = busy_scenario();
      scenario.options.is_recurrent = is_recurrent;
      scenario.options.n_checkpoints = is_recurrent ? 5 : 0;
      change(scenario, i);
      expect_sound(scenario);
      if (testing::Test::HasFailure()) return;
    }
}

TEST(Faults, APageThatIsNotGivenAtEveryCall) {
  sweep(300, [](Scenario& s, std::uint64_t i) { s.options.fail_page_take = i + 1; });
}

TEST(Faults, ADeviceFaultAtEveryStep) {
  sweep(200, [](Scenario& s, std::uint64_t i) { s.faults = {i + 1}; });
  sweep(200, [](Scenario& s, std::uint64_t i) { s.faults = {i + 1, i + 2, i + 9}; });
}

TEST(Faults, EachRequestCancelledBeforeEveryTurn) {
  for (std::uint32_t request = 0; request < 7; ++request)
    for (const Act act : {Act::kCancel, Act::kFailSink, Act::kBlock})
      sweep(120, [&](Scenario& s, std::uint64_t i) {
        EventLine e;
        e.by_step = true;
        e.at = static_cast<std::int64_t>(i);
        e.act = act;
        e.request = request;
        s.events.push_back(e);
        s.options.slow_sink_steps = 15;
        if (act != Act::kBlock) return;
        e.at += 10;
        e.act = Act::kUnblock;
        if (i % 2 == 0) s.events.push_back(e);
      });
}

TEST(Faults, AllCancelledOrFlushedBeforeEveryTurn) {
  for (const Act act : {Act::kCancelAll, Act::kFlush, Act::kLease})
    sweep(170, [&](Scenario& s, std::uint64_t i) {
      EventLine e;
      e.by_step = true;
      e.at = static_cast<std::int64_t>(i);
      e.act = act;
      e.n_tokens = 40;
      s.events.push_back(e);
    });
}

// The rule "expect" can be violated at will, so it shows what shrinking does.
TEST(Shrink, LeavesWhatTheFailureNeeds) {
  Scenario scenario = random_scenario(3, {});
  const auto expects = parse_scenario("expect count finished 0\n");
  scenario.expected = expects->expected;
  ASSERT_TRUE(simulate(scenario).violation);
  const Scenario small = shrink(scenario, "expect");
  const SimResult result = simulate(small);
  ASSERT_TRUE(result.violation);
  EXPECT_EQ(result.violation->rule, "expect");
  ASSERT_EQ(small.events.size(), 1u);
  EXPECT_EQ(small.events[0].submit.n_prompt, 1u);
  EXPECT_EQ(small.tenants.size(), 1u);
  EXPECT_EQ(small.options.n_slots, 1u);
}

}  // namespace
}  // namespace zinc_rt::sched::sim

// Logs of engines under random loads, played again: with guesses, grammars, penalties, prefix caches, preemption,
// faults, recurrent state, and steps that run ahead.
#include "step_logs.h"

namespace zinc_rt {
namespace {

class StepLogs : public ::testing::TestWithParam<FamilyCase> {};

TEST_P(StepLogs, OfRandomLoadsArePlayedWithTheSameBits) {
  FamilyCase c = GetParam();
  c.opener = recorded_on_ring;
  const Family family(c, 10);
  if (::testing::Test::HasFatalFailure()) return;
  Seen seen;
  StepReplay all;
  for (unsigned seed = 1; seed <= 8 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("schedule of seed " + std::to_string(seed));
    const LogFile file;
    recording_plan = {file.path(), seed % 4 == 0};
    Schedule(family, seed, seen).play();
    const auto bytes = file.bytes();
    for (const bool runs_ahead : {true, false}) {
      const auto replay = play_log(bytes, [&](ExecutorOptions& o) {
        o.run_ahead = runs_ahead;
        o.threads = 1;
      });
      expect_equal(replay);
      EXPECT_GT(replay->n_picks, 0u);
      all.n_steps += replay->n_steps;
      all.n_picks += replay->n_picks;
      all.n_hashes += replay->n_hashes;
      all.n_further_rows += replay->n_further_rows;
    }
  }
  seen.print(std::cout, c.model);
  std::cout << c.model << ": " << all.n_steps << " steps, " << all.n_picks << " picks, " << all.n_hashes
            << " hashes compared, " << all.n_further_rows << " further rows of a slot" << std::endl;
  EXPECT_GT(all.n_hashes, 0u);
  EXPECT_GT(seen.preemptions, 0u);
  EXPECT_GT(seen.warm_tokens, 0u);
  EXPECT_GT(seen.masked, 0u);
  EXPECT_GT(seen.steps_ahead, 0u);
  const bool is_recurrent = c.model.contains("qwen35");
  EXPECT_EQ(seen.restores > 0, is_recurrent);
  EXPECT_EQ(seen.page_copies > 0, !is_recurrent);
  EXPECT_GT(seen.accepted_drafts, 0u);
  EXPECT_GT(all.n_further_rows, seen.drafts);  // and those of scored prompts
}

INSTANTIATE_TEST_SUITE_P(Families, StepLogs,
                         ::testing::Values(FamilyCase{"tiny_llama-f32", 128, 1, 80},
                                           FamilyCase{"tiny_qwen35-f16", 128, 1, 80},
                                           FamilyCase{"tiny_llama_k-Q4_K_M", 128, 1, 80, "k8v4"}),
                         [](const auto& info) {
                           auto name = info.param.model + "_kv_" + info.param.kv_dtype;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// A device that fails: one step at its end, one at its beginning. What runs ahead of a step that fails has no meaning.
std::unique_ptr<Executor> recorded_with_faults(const std::string& model, const ExecutorOptions& options) {
  auto probe = std::make_shared<Probe>();
  const auto fault = [](bool is_due) -> Status {
    if (!is_due) return {};
    return std::unexpected(Error{StatusCode::kInternal, "[test] a fault was asked for", 0});
  };
  probe->after = [=](const StepInput&, std::uint64_t n) { return fault(n == 9); };
  probe->before = [=](const StepInput&, std::uint64_t n) { return fault(n == 23); };
  return recording(std::make_unique<ProbeExecutor>(open(model, options), probe), recording_plan.path, false);
}

TEST(StepLogOfFaults, FailedStepsHaveNoResults) {
  for (const bool runs_ahead : {false, true}) {
    const LogFile file;
    recording_plan = {file.path(), false};
    auto options = small_options();
    options.run_ahead = runs_ahead;
    {
      const auto engine = start_engine("tiny_llama-f32", options, {}, {}, recorded_with_faults);
      for (unsigned i = 0; i < 4; ++i) {
        auto request = token_request(prompt(10, i), 12);
        request.return_logits_hash = false;
        static_cast<void>(engine.session().generate(request));
      }
      EXPECT_EQ(engine.stat("failed_steps"), 2u);
      engine.core->close();
    }
    const auto bytes = file.bytes();
    const auto replay = play_log(bytes, [&](ExecutorOptions& o) { o.run_ahead = runs_ahead; });
    expect_equal(replay);
    EXPECT_GE(replay->n_without_results, 1u);
    EXPECT_GE(replay->n_picks, 20u);
    EXPECT_EQ(std::ranges::count(read_log(bytes).records, StepLogKind::kRefused, &StepLogRecord::kind), 1);
  }
}

// A log of T-CPU on each other tier that can run here, and the tier's own log on T-CPU.
class StepLogOnTiers : public ::testing::TestWithParam<std::string> {};

std::vector<std::byte> log_of_two(const std::string& tier, const std::string& model) {
  const LogFile file;
  recording_plan = {file.path(), false};
  auto options = small_options();
  options.tier = tier;
  options.run_ahead = true;
  options.kv_pages = 9;
  {
    const auto engine = start_engine(model, options, {}, {}, recorded_on_ring);
    std::vector<Stream> streams;
    for (unsigned i = 0; i < 3; ++i) {
      auto request = token_request(prompt(20 + 9 * i, i), 12);
      request.return_logits_hash = i == 0;
      request.temperature = i == 2 ? 0.8f : 0.0f;
      request.seed = 3;
      request.prediction_token_ids = prompt(12, i);
      request.speculate = i == 1 ? "off" : "4";
      streams.push_back(*engine.session().stream(request));
    }
    for (Stream& stream : streams)
      for (auto event = stream.next(); event && *event;) event = stream.next();
    engine.core->close();
  }
  return file.bytes();
}

TEST_P(StepLogOnTiers, ArePlayedBothWays) {
  const std::string tier = GetParam();
  for (const auto* model : {"tiny_llama_k-Q4_K_M", "tiny_qwen35-f16"}) {
    SCOPED_TRACE(model);
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"t_cpu", tier}, {tier, "t_cpu"}}) {
      const auto bytes = log_of_two(from, model);
      EXPECT_EQ(read_log(bytes).header.tier, from);
      const auto replay = play_log(bytes, [&](ExecutorOptions& o) { o.tier = to; });
      expect_equal(replay);
      EXPECT_GE(replay->n_picks, 36u);
      EXPECT_GE(replay->n_hashes, 12u);
    }
  }
}

std::vector<std::string> own_tiers_here() {
  std::vector<std::string> names;
  for (const ExecutorKind* kind : executor_kinds())
    for (const ExecutorTier& tier : kind->tiers())
      if (kind->backend == kOwnBackend && tier.name != "null" && tier.unavailable_reason().empty())
        names.push_back(tier.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Tiers, StepLogOnTiers, ::testing::ValuesIn(own_tiers_here()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace zinc_rt

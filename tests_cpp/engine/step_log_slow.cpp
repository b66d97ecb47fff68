// A log of 10,000 steps with guesses, played on T-CPU and on each other tier of this machine.
#include "step_logs.h"

namespace zinc_rt {
namespace {

constexpr std::uint64_t kSteps = 10'000;

TEST(StepLogSlow, TenThousandStepsWithGuessesHaveTheSameBits) {
  const LogFile file;
  recording_plan = {file.path(), true};
  auto options = small_options();
  options.max_slots = 4;
  std::uint64_t n_accepted = 0;
  {
    const auto engine = start_engine("tiny_llama-f32", options, {}, {}, recorded_on_ring);
    const auto session = engine.session();
    std::mt19937 rng(11);
    while (engine.probe->n_steps < kSteps && !::testing::Test::HasFailure()) {
      std::vector<Stream> streams;
      for (int i = 0; i < 8; ++i) {
        auto request = token_request(prompt(1 + rng() % 60, static_cast<unsigned>(rng() % 9)), 60);
        request.seed = rng();
        request.temperature = i % 2 == 0 ? 0.0f : 0.8f;
        request.repetition_penalty = i % 3 == 0 ? 1.2f : 1.0f;
        request.speculate = "5";
        // The model's own text under greedy sampling, so that some guesses are right.
        if (i % 4 == 0) request.prediction_token_ids = session.generate(request)->token_ids;
        auto stream = session.stream(request);
        ASSERT_TRUE(stream) << stream.error().message;
        streams.push_back(std::move(*stream));
      }
      for (Stream& stream : streams)
        for (auto event = stream.next(); event && *event;) event = stream.next();
    }
    n_accepted = engine.stat("accepted_draft_tokens");
    EXPECT_GT(engine.stat("draft_tokens"), n_accepted);
    EXPECT_GT(n_accepted, 1000u);
    engine.core->close();
  }
  const auto bytes = file.bytes();
  std::uint64_t n_tiers = 0;
  for (const ExecutorKind* kind : executor_kinds())
    for (const ExecutorTier& tier : kind->tiers()) {
      if (kind->backend != kOwnBackend || tier.name == "null" || !tier.unavailable_reason().empty()) continue;
      SCOPED_TRACE(tier.name);
      const auto replay = play_log(bytes, [&](ExecutorOptions& o) { o.tier = tier.name; });
      expect_equal(replay);
      EXPECT_GE(replay->n_steps, kSteps);
      EXPECT_EQ(replay->n_hashes, replay->n_picks);
      EXPECT_GT(replay->n_further_rows, n_accepted);
      std::cout << tier.name << ": " << replay->n_steps << " steps, " << replay->n_tokens << " tokens, "
                << replay->n_picks << " picks and as many hashes equal, " << replay->n_further_rows
                << " further rows of a slot, " << n_accepted << " guesses right; " << bytes.size() << " bytes"
                << std::endl;
      ++n_tiers;
    }
  EXPECT_GT(n_tiers, 0u);
}

}  // namespace
}  // namespace zinc_rt

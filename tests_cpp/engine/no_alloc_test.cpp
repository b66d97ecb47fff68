// The step thread allocates nothing while no request comes or goes: no token waits for the heap. The drainer and the
// clients may.
#include <bit>
#include <latch>

#include "engine_fixture.h"
#include "tests_cpp/base/counting_allocator.h"

namespace zinc_rt {
namespace {

class NoAllocation : public ::testing::TestWithParam<std::string> {
 protected:
  void decode_four(bool run_ahead, bool has_draft = false);
};

// run_ahead: without guesses, so that steps may begin before the step before them has ended. has_draft: the model
// guesses for itself.
void NoAllocation::decode_four(bool run_ahead, bool has_draft) {
  struct Seen {
    std::uint64_t n_allocated = 0;
    int n_slots = 0;  // with tokens in the step, some of which may be guessed
  };
  std::vector<Seen> seen;  // at each step's beginning, by the step thread
  seen.reserve(1000);
  auto probe = std::make_shared<Probe>();
  std::latch all_there(1);  // the first step waits, so that none of the four has ended before the last begins
  probe->before = [&](const StepInput& input, std::uint64_t) {
    all_there.wait();
    std::uint64_t slots = 0;  // a bit for each
    for (const std::int32_t slot : input.slots) slots |= std::uint64_t{1} << slot;
    if (seen.size() < seen.capacity()) seen.push_back({n_thread_allocations, std::popcount(slots)});
    return Status{};
  };
  auto options = small_options();
  options.max_slots = 4;
  options.state_checkpoints = 8;
  options.run_ahead = run_ahead;
  options.max_context = 512;
  {
    const auto engine = start_engine(GetParam(), options, {}, probe, open_on_ring, Drive::kThreads,
                                     has_draft ? std::optional(TestDraft{GetParam(), options}) : std::nullopt);
    const auto session = engine.session();
    std::vector<Stream> streams;
    for (unsigned i = 0; i < 4; ++i) {
      auto request = token_request(prompt(10 + i, i), 300);
      // At most five tokens a step, so there are at least sixty; with the draft model three, and a hundred.
      request.speculate = run_ahead ? "off" : has_draft ? "2" : "4";
      request.return_logits_hash = false;
      streams.push_back(*session.stream(request));
    }
    all_there.count_down();
    for (Stream& stream : streams)
      for (auto event = stream.next(); event && *event;) event = stream.next();
    expect_all_free(engine);
    EXPECT_EQ(engine.stat("draft_model_steps") > 100, has_draft);
    if (run_ahead)
      EXPECT_GE(engine.stat("steps_ahead"), 30u);
    else
      EXPECT_EQ(engine.stat("steps_ahead"), 0u);
    engine.core->close();
  }
  // Steps in a row that decode all four, each with what lies between it and the next; a few to warm up.
  constexpr std::size_t kWarmUp = 4;
  std::size_t n_steady = 0, n_in_row = 0;
  for (std::size_t i = 0; i + 1 < seen.size(); ++i) {
    n_in_row = seen[i].n_slots == 4 && seen[i + 1].n_slots == 4 ? n_in_row + 1 : 0;
    if (n_in_row <= kWarmUp) continue;
    ++n_steady;
    EXPECT_EQ(seen[i + 1].n_allocated - seen[i].n_allocated, 0u) << "after step " << i;
  }
  EXPECT_GE(n_steady, 50u);
  EXPECT_GT(seen[0].n_allocated, 0u);  // the count works
}

TEST_P(NoAllocation, OnTheStepThreadWhileFourRequestsDecode) {
  ZRT_NEED_ALLOCATION_COUNT();
  decode_four(false);
}

class NoAllocationWithADraft : public NoAllocation {};

TEST_P(NoAllocationWithADraft, WhileItGuesses) {
  ZRT_NEED_ALLOCATION_COUNT();
  decode_four(false, true);
}

TEST_P(NoAllocation, WhileStepsRunAhead) {
  ZRT_NEED_ALLOCATION_COUNT();
  decode_four(true);
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  auto name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Models, NoAllocation, ::testing::Values("llama_spm-f32", "qwen35-f32", "qwen3moe-Q4_K_M"),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Models, NoAllocationWithADraft, ::testing::Values("llama_spm-f32", "qwen3moe-Q4_K_M"),
                         name_of);

}  // namespace
}  // namespace zinc_rt

// Recurrent state, saved and put back; the RoPE variant of a text.
#include <gmock/gmock.h>

#include "model_fixture.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

class State : public ::testing::TestWithParam<std::string> {
 protected:
};

Outcome run_part(Executor& executor, const std::vector<std::int32_t>& ids, std::size_t first, std::size_t n,
                 std::size_t slot, std::uint32_t first_page = 0) {
  Outcome outcome;
  TestStep input;
  append(input, ids, first, n, slot, pages_from(first_page));
  step(executor, std::move(input), outcome);
  return outcome;
}

TEST_P(State, ACheckpointAtAPageBoundaryGoesOnWithTheSameBits) {
  auto options = small_options();
  options.state_checkpoints = 2;
  const auto executor = open(GetParam(), options);
  EXPECT_EQ(executor->info().n_state_checkpoints, 2u);
  EXPECT_GT(executor->info().state_bytes_per_slot, 0u);
  const auto ids = prompt(60), other = prompt(60, 7);
  const std::uint32_t kFirst = 3, kSecond = 4;  // after the 3 slots
  // Slot 0 reads a prompt; its state after one and after two pages is kept.
  run_part(*executor, ids, 0, 16, 0);
  ASSERT_TRUE(executor->copy_state({{{0, kFirst}}}));
  run_part(*executor, ids, 16, 16, 0);
  ASSERT_TRUE(executor->copy_state({{{0, kSecond}}}));
  const auto wanted = run_part(*executor, ids, 32, 28, 0);
  // Something else runs in the slot meanwhile (in other pages), then the prompt goes on from either checkpoint.
  run_part(*executor, other, 0, 60, 0, 8);
  ASSERT_TRUE(executor->copy_state({{{kSecond, 0}}}));
  EXPECT_EQ(run_part(*executor, ids, 32, 28, 0), wanted);
  ASSERT_TRUE(executor->copy_state({{{kFirst, 0}, {kSecond, 1}}}));
  run_part(*executor, ids, 16, 16, 0);
  EXPECT_EQ(run_part(*executor, ids, 32, 28, 0), wanted);
  // And in another slot with the same pages.
  EXPECT_EQ(run_part(*executor, ids, 32, 28, 1), wanted);
}

// A step with guesses gives the rows of the text token by token. The guesses that are right change the state in the next
// step, the others never do. A page ends among the replayed tokens, and the state there goes to a checkpoint.
TEST_P(State, GuessesChangeItOnlyOnceTheyAreRight) {
  auto options = small_options();
  options.state_checkpoints = 1;
  options.state_guesses = 4;
  const auto executor = open(GetParam(), options);
  EXPECT_EQ(executor->info().state_guesses, 4u);
  constexpr std::uint32_t kCheckpoint = 3;  // after the 3 slots
  const auto ids = prompt(40), wrong = prompt(40, 7);
  const auto expect_rows = [&](const std::vector<std::int32_t>& tokens, std::size_t begin, std::size_t n,
                               const SlotRun& run, std::size_t n_right, const Outcome& wanted) {
    Outcome outcome;
    TestStep input;
    append(input, tokens, begin, n, 0, pages_from(0));
    input.runs = {run};
    step(*executor, std::move(input), outcome);
    const std::size_t width = executor->config().vocab_size;
    ASSERT_EQ(outcome.logits.size(), n * width);
    EXPECT_TRUE(std::equal(outcome.logits.begin(), outcome.logits.begin() + std::ptrdiff_t(n_right * width),
                           wanted.logits.begin() + std::ptrdiff_t(begin * width)))
        << "tokens " << begin << " to " << begin + n_right;
  };
  // Token by token, in slot 1.
  Outcome alone;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    TestStep input;
    append(input, ids, i, 1, 1, pages_from(8));
    step(*executor, std::move(input), alone);
  }
  run_part(*executor, ids, 0, 12, 0);
  // Token 12, and guesses of which the first two are right.
  auto text = ids;
  std::copy(wrong.begin() + 15, wrong.end(), text.begin() + 15);
  expect_rows(text, 12, 5, {.slot = 0, .n_guessed = 4}, 3, alone);
  // Tokens 13 and 14 are replayed. Then all four guesses are right.
  expect_rows(ids, 15, 5, {.slot = 0, .n_replayed = 2, .n_guessed = 4}, 5, alone);
  // Tokens 16 to 19 are replayed. A page ended before them, so there is nothing to save.
  expect_rows(ids, 20, 4, {.slot = 0, .n_replayed = 4, .n_guessed = 3}, 4, alone);
  // No guess, twice.
  expect_rows(ids, 24, 1, {.slot = 0, .n_replayed = 3}, 1, alone);
  expect_rows(ids, 25, 4, {.slot = 0}, 4, alone);
  expect_rows(ids, 29, 5, {.slot = 0, .n_guessed = 4}, 5, alone);
  // Tokens 30 to 33 are replayed, and the state after 32 tokens is saved.
  expect_rows(ids, 34, 2, {.slot = 0, .n_replayed = 4, .save_at = 32, .save_to = kCheckpoint}, 2, alone);
  ASSERT_TRUE(executor->copy_state({{{kCheckpoint, 0}}}));
  expect_rows(ids, 32, 8, {.slot = 0}, 8, alone);
}

TEST_P(State, LiesInItsOwnRegion) {
  auto options = small_options();
  const auto without = open(GetParam(), options);
  options.state_checkpoints = 5;
  const auto with = open(GetParam(), options);
  const auto& region = *with->plan().find("recurrent_state");
  // Each buffer takes a whole number of 256 bytes, and a layer has two.
  EXPECT_NEAR(static_cast<double>(region.bytes - without->plan().find("recurrent_state")->bytes),
              static_cast<double>(5 * with->info().state_bytes_per_slot), 2 * 255);
  EXPECT_EQ(with->allocated_bytes(), with->plan().allocated_bytes());
}

INSTANTIATE_TEST_SUITE_P(Models, State,
                         ::testing::Values("qwen35-f32", "qwen35moe-Q4_K_M", "qwen3next-f16", "tiny_lfm2-f16",
                                           "tiny_lfm2moe-f16", "tiny_granitehybrid-f16", "tiny_nemotron_h-f16",
                                           "tiny_nemotron_h_moe-f16"),
                         [](const auto& info) {
                           auto name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(StateErrors, NameTheEntry) {
  auto options = small_options();
  options.state_checkpoints = 1;
  const auto executor = open("qwen35-f32", options);
  const auto error = [&](std::vector<StateCopy> copies) {
    const auto status = executor->copy_state(copies);
    return status ? std::string("done") : status.error().message;
  };
  EXPECT_EQ(error({}), "done");
  EXPECT_EQ(error({{0, 1}, {0, 2}}), "done");
  EXPECT_THAT(error({{0, 4}}), HasSubstr("state entry 4 of 4"));
  EXPECT_THAT(error({{0, 1}, {1, 2}}), HasSubstr("state entry 1 is written and named again"));
  EXPECT_THAT(error({{0, 1}, {2, 1}}), HasSubstr("state entry 1 is written and named again"));
  EXPECT_THAT(error({{1, 1}}), HasSubstr("state entry 1 is written and named again"));
  EXPECT_THAT(error(std::vector<StateCopy>(129)), HasSubstr("129 copies"));
  options.state_checkpoints = 1u << 20;
  const auto refused = RingExecutor::open(model_path("qwen35-f32"), options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("state_checkpoints 1048576"));
  // Runs of a step.
  const auto run_error = [&](Executor& of, std::size_t begin, std::size_t n, std::vector<SlotRun> runs) {
    TestStep input;
    append(input, prompt(60), begin, n, 0, pages_from(0));
    input.runs = std::move(runs);
    StepOutput output;
    const auto status = of.step(input.view(), output);
    return status ? std::string("done") : status.error().message;
  };
  EXPECT_EQ(run_error(*executor, 0, 12, {}), "done");
  EXPECT_THAT(run_error(*executor, 12, 9, {{.slot = 0, .n_guessed = 9}}), HasSubstr("9 guesses among 9 tokens"));
  EXPECT_THAT(run_error(*executor, 12, 20, {{.slot = 0, .n_guessed = 9}}), HasSubstr("slot 0, 8 allowed"));
  EXPECT_THAT(run_error(*executor, 12, 4, {{.slot = 1, .n_guessed = 1}}), HasSubstr("run 0 of 1 is of slot 1"));
  EXPECT_THAT(run_error(*executor, 12, 4, {{.slot = 0, .n_guessed = 1}, {.slot = 0}}), HasSubstr("run 1 of 2"));
  EXPECT_THAT(run_error(*executor, 12, 4, {{.slot = 0, .n_replayed = 1}}), HasSubstr("whose last step had 0"));
  EXPECT_EQ(run_error(*executor, 12, 4, {{.slot = 0, .n_guessed = 3}}), "done");
  EXPECT_THAT(run_error(*executor, 16, 4, {{.slot = 0, .n_replayed = 4}}), HasSubstr("whose last step had 3"));
  EXPECT_THAT(run_error(*executor, 16, 4, {{.slot = 0, .n_replayed = 3, .save_at = 13, .save_to = 3}}),
              HasSubstr("the state after 13 tokens is to be saved, 13 to 16 are replayed"));
  EXPECT_THAT(run_error(*executor, 16, 4, {{.slot = 0, .n_replayed = 3, .save_at = 17, .save_to = 3}}),
              HasSubstr("the state after 17 tokens"));
  EXPECT_THAT(run_error(*executor, 16, 4, {{.slot = 0, .n_replayed = 3, .save_at = 16, .save_to = 2}}),
              HasSubstr("entry 2, checkpoints are 3 to 4"));
  EXPECT_EQ(run_error(*executor, 16, 4, {{.slot = 0, .n_replayed = 3, .save_at = 16, .save_to = 3}}), "done");
  auto no_guesses = small_options();
  no_guesses.state_guesses = 0;
  EXPECT_THAT(run_error(*open("qwen35-f32", no_guesses), 0, 4, {{.slot = 0, .n_guessed = 1}}),
              HasSubstr("slot 0, 0 allowed"));
  // Models without recurrent layers have nothing to copy.
  const auto plain = open("llama_spm-f32");
  EXPECT_EQ(plain->info().state_bytes_per_slot, 0u);
  EXPECT_TRUE(plain->copy_state({{{0, 1}}}));
}

TEST(RopeVariant, LimitsSayWhereItChanges) {
  ZRT_NEED_SHARED_FIXTURES();
  auto options = small_options();
  options.max_context = 512;
  const auto executor = open("phi3_longrope-f16", options);
  const auto& limits = executor->info().rope_limits;
  EXPECT_EQ(limits, std::vector<std::uint32_t>{256});
  for (std::uint32_t n = 1; n <= 512; ++n)
    EXPECT_EQ(executor->rope_variant(n), std::ranges::lower_bound(limits, n) - limits.begin()) << n;
  options.max_context = 256;
  EXPECT_TRUE(open("phi3_longrope-f16", options)->info().rope_limits.empty());
  EXPECT_TRUE(open("phi3-f32")->info().rope_limits.empty());
}

TEST(RopeVariant, FollowsTheTextNotTheContext) {
  ZRT_NEED_SHARED_FIXTURES();
  auto options = small_options();
  options.max_context = 512;
  const auto executor = open("phi3_longrope-f16", options);
  EXPECT_EQ(executor->rope_variant(256), 0u);
  EXPECT_EQ(executor->rope_variant(257), 1u);
  EXPECT_EQ(open("phi3-f32")->rope_variant(1000), 0u);
  const auto ids = prompt(40);
  const auto with = [&](std::uint32_t variant) {
    Outcome outcome;
    TestStep input;
    append(input, ids, 0, ids.size(), 0, pages_from(0));
    input.rope_variants = {variant};
    step(*executor, std::move(input), outcome);
    return outcome;
  };
  options.max_context = 128;
  EXPECT_EQ(with(0), run_prompt(*open("phi3_longrope-f16", options), ids, 40));
  EXPECT_NE(with(0).logits, with(1).logits);
  TestStep input;
  append(input, ids, 0, 1, 0, pages_from(0));
  input.rope_variants = {2};
  StepOutput output;
  const auto refused = executor->step(input.view(), output);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("RoPE variant 2 of 2"));
}

}  // namespace
}  // namespace zinc_rt

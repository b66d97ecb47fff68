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

TEST_P(State, LiesInItsOwnRegion) {
  auto options = small_options();
  const auto without = open(GetParam(), options);
  options.state_checkpoints = 5;
  const auto with = open(GetParam(), options);
  const auto& region = *with->plan().find("recurrent_state");
  EXPECT_EQ(region.bytes - without->plan().find("recurrent_state")->bytes, 5 * with->info().state_bytes_per_slot);
  EXPECT_EQ(with->allocated_bytes(), with->plan().allocated_bytes());
}

INSTANTIATE_TEST_SUITE_P(Models, State, ::testing::Values("qwen35-f32", "qwen35moe-Q4_K_M", "qwen3next-f16"),
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

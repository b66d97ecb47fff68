// A step in two calls: what begin() gives the device, and what is left for finish().
#include <gmock/gmock.h>

#include "model_fixture.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

struct StepCase {
  std::string name;
  std::size_t n_tokens = 0;
  bool is_masked = false, is_processed = false;
  std::uint64_t n_begin = 1, n_finish = 0;  // submissions
};
void PrintTo(const StepCase& c, std::ostream* out) {
  *out << c.name;
}

class BeginAndFinish : public ::testing::TestWithParam<StepCase> {};

// A prompt with a pick after each token; masks and processors change nothing.
TestStep a_prompt(const StepCase& c) {
  TestStep input;
  append(input, prompt(c.n_tokens), 0, c.n_tokens, 0, pages_from(0));
  for (OutputRow& row : input.outputs) {
    row.is_masked = c.is_masked;
    row.is_processed = c.is_processed;
  }
  input.mask = [](std::uint32_t) { return std::span<const std::uint32_t>(); };
  input.process = [](std::uint32_t, std::span<float>) {};
  return input;
}

TEST_P(BeginAndFinish, TheDeviceHasAllThatNeedsNoCaller) {
  const auto executor = open("llama_k-Q4_K_M");
  Outcome wanted;
  step(*executor, a_prompt({"plain", GetParam().n_tokens}), wanted);

  auto input = a_prompt(GetParam());
  Outcome outcome;
  std::size_t n_calls = 0;
  input.on_logits = [&](std::uint32_t, std::span<const float> logits) {
    ++n_calls;
    outcome.logits.insert(outcome.logits.end(), logits.begin(), logits.end());
  };
  const auto before = executor->ring().stats().submissions;
  ASSERT_TRUE(executor->begin(input.view()));
  const auto begun = executor->ring().stats().submissions;
  EXPECT_EQ(begun - before, GetParam().n_begin);
  EXPECT_EQ(n_calls, 0u);
  StepOutput output;
  output.tokens = {7};  // of a step before
  const auto status = executor->finish(output);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(executor->ring().stats().submissions - begun, GetParam().n_finish);
  outcome.tokens = output.tokens;
  EXPECT_EQ(outcome, wanted);
}

// Rows run in groups of 64, so 100 need two submissions, and four where the caller has a say.
INSTANTIATE_TEST_SUITE_P(Steps, BeginAndFinish,
                         ::testing::Values(StepCase{"Plain", 9}, StepCase{"Masked", 9, true, false, 1, 1},
                                           StepCase{"Processed", 9, false, true, 1, 1},
                                           StepCase{"TwoGroups", 100, false, false, 1, 1},
                                           StepCase{"TwoGroupsMasked", 100, true, false, 1, 3}),
                         [](const auto& info) { return info.param.name; });

TEST(BeginAndFinishAlone, AStepWithoutRowsIsBegunWhole) {
  const auto executor = open("llama_k-Q4_K_M");
  TestStep input;
  append(input, prompt(9), 0, 9, 0, pages_from(0));
  input.outputs.clear();
  const auto before = executor->ring().stats().submissions;
  ASSERT_TRUE(executor->begin(input.view()));
  StepOutput output;
  output.tokens = {7};
  ASSERT_TRUE(executor->finish(output));
  EXPECT_EQ(executor->ring().stats().submissions - before, 1u);
  EXPECT_TRUE(output.tokens.empty());
}

TEST(BeginAndFinishAlone, ARefusedStepLeavesNothingToFinish) {
  const auto executor = open("llama_k-Q4_K_M");
  auto input = a_prompt({"", 9});
  Outcome wanted, outcome;
  step(*executor, input, wanted);
  auto wrong = input;
  wrong.positions[0] = 1000;
  const auto before = executor->ring().stats().submissions;
  const auto refused = executor->begin(wrong.view());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("position"));
  EXPECT_EQ(executor->ring().stats().submissions, before);
  step(*executor, input, outcome);
  EXPECT_EQ(outcome, wanted);
}

}  // namespace
}  // namespace zinc_rt

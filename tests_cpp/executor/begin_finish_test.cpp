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

struct Decoded {
  std::vector<std::int32_t> tokens, likely;  // likely: the three most likely tokens at each pick
  std::vector<double> sums;                  // of exponentials, at each pick
  bool operator==(const Decoded&) const = default;
};

// Decodes n tokens after two prompts, one token a slot and step. ahead: each step but the first begins before the one
// before it has ended, and does not know that step's picks.
Decoded decode_two(Executor& executor, std::size_t n, bool ahead) {
  const std::vector<std::int32_t> prompts[] = {prompt(21), prompt(5, 2)};
  const auto input_of = [&](std::size_t step, const std::vector<std::int32_t>& ids) {
    TestStep input;
    for (std::size_t slot = 0; slot < 2; ++slot) {
      std::vector<std::int32_t> text(prompts[slot].size() + step, 0);
      const std::size_t first = step == 0 ? 0 : text.size() - 1;
      std::ranges::copy(prompts[slot], text.begin());
      if (step > 0) text.back() = ids.empty() ? kLastPick : ids[ids.size() - 2 + slot];
      const auto pages = pages_from(static_cast<std::uint32_t>(8 * slot));
      append(input, text, first, text.size() - first, slot, pages, false);
    }
    for (OutputRow& row : input.outputs) {
      row.wants_logits = false;
      row.sampling.temperature = 0.8f;
      row.sampling.seed = 7 + row.token_index % 2;
      if (executor.info().has_logprobs) row.n_logprobs = 3;
    }
    return input;
  };
  Decoded decoded;
  auto& picked = decoded.tokens;
  const auto on_logprobs = [&](std::uint32_t, std::span<const RowLogprobs> rows) {
    for (const RowLogprobs& row : rows) {
      decoded.sums.push_back(row.sum);
      for (const TokenLogit& token : row.top) decoded.likely.push_back(token.id);
    }
  };
  StepOutput output;
  const auto finish = [&] {
    const auto status = executor.finish(output);
    EXPECT_TRUE(status) << (status ? "" : status.error().message);
    picked.insert(picked.end(), output.tokens.begin(), output.tokens.end());
  };
  TestStep inputs[2];
  for (std::size_t i = 0; i < n; ++i) {
    inputs[i % 2] = input_of(i, ahead ? std::vector<std::int32_t>() : picked);
    inputs[i % 2].on_logprobs = on_logprobs;
    const auto status = executor.begin(inputs[i % 2].view());
    EXPECT_TRUE(status) << (status ? "" : status.error().message);
    if (!ahead || i > 0) finish();
  }
  if (ahead) finish();
  return decoded;
}

std::vector<std::string> tiers_here() {
  std::vector<std::string> names;
  for (const ring::Tier* tier : ring::tiers())
    if (tier->name != "null" && tier->unavailable_reason().empty()) names.emplace_back(tier->name);
  return names;
}

class StepsAhead : public ::testing::TestWithParam<std::string> {};

TEST_P(StepsAhead, HaveThePicksOfStepsOneByOne) {
  auto options = small_options();
  options.tier = GetParam();
  options.run_ahead = true;
  for (const auto* model : {"llama_k-Q4_K_M", "qwen35-f32"}) {
    const auto executor = open(model, options);
    if (!executor->info().runs_ahead) GTEST_SKIP() << "tier " << options.tier << " runs one step at a time";
    const auto wanted = decode_two(*executor, 12, false);
    ASSERT_EQ(wanted.tokens.size(), 24u);
    ASSERT_EQ(wanted.likely.size(), executor->info().has_logprobs ? 72u : 0u);
    EXPECT_TRUE(decode_two(*executor, 12, true) == wanted) << model;
    EXPECT_TRUE(decode_two(*executor, 12, false) == wanted) << model << ", afterwards";
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, StepsAhead, ::testing::ValuesIn(tiers_here()),
                         [](const auto& info) { return info.param; });

TEST(StepsAheadAlone, OnlyTokensThatTheHostNeedNotPick) {
  auto options = small_options();
  options.run_ahead = true;
  const auto executor = open("llama_k-Q4_K_M", options);
  if (!executor->info().runs_ahead) GTEST_SKIP() << "the tier runs one step at a time";
  const auto ids = prompt(9);
  const auto input_of = [&](std::size_t first, std::size_t n) {
    TestStep input;
    append(input, ids, first, n, 0, pages_from(0), false);
    input.outputs[0].wants_logits = false;
    return input;
  };
  auto first = input_of(0, 5);
  auto last_pick = input_of(5, 1);
  last_pick.token_ids = {kLastPick};
  const auto refused = executor->begin(last_pick.view());  // no step runs whose pick it could be
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("token id -1"));

  ASSERT_TRUE(executor->begin(first.view()));
  const std::vector<std::int32_t> history = {1, 2};
  const std::vector<TokenBias> bias = {{3, 1.0f}};
  const auto change = [&](auto set) {
    auto input = last_pick;
    set(input.outputs[0]);
    const auto status = executor->begin(input.view());
    return !status && status.error().message.contains("cannot begin while one of 5 runs");
  };
  EXPECT_TRUE(change([&](OutputRow& row) { row.history = history; }));
  EXPECT_TRUE(change([&](OutputRow& row) { row.bias = bias; }));
  EXPECT_TRUE(change([&](OutputRow& row) { row.banned = history; }));
  EXPECT_TRUE(change([&](OutputRow& row) { row.is_masked = true; }));
  EXPECT_TRUE(change([&](OutputRow& row) { row.is_processed = true; }));
  EXPECT_TRUE(change([&](OutputRow& row) { row.wants_logits = true; }));
  auto two = input_of(5, 2);
  EXPECT_FALSE(executor->begin(two.view()));
  ASSERT_TRUE(executor->begin(last_pick.view()));
  auto third = last_pick;
  third.positions = {6};
  const auto too_many = executor->begin(third.view());
  ASSERT_FALSE(too_many);
  EXPECT_THAT(too_many.error().message, HasSubstr("2 steps run"));
  StepOutput output;
  ASSERT_TRUE(executor->finish(output));
  ASSERT_TRUE(executor->begin(third.view()));
  ASSERT_TRUE(executor->finish(output));
  ASSERT_TRUE(executor->finish(output));
}

}  // namespace
}  // namespace zinc_rt

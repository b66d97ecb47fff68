// A slot may pick after several of its tokens in one step, as the verification of drafts will: each pick is that of
// decoding token by token, as far as the tokens before it are the same.
#include <gtest/gtest.h>

#include "model_fixture.h"

namespace zinc_rt {
namespace {

constexpr std::size_t kPrompt = 9, kDrafts = 4;

class Picks : public ::testing::TestWithParam<std::string> {};

// Tokens after a prompt, decoded one a step in a slot.
std::vector<std::int32_t> decode(Executor& executor, std::vector<std::int32_t> ids, std::size_t n, std::size_t slot,
                                 std::uint32_t first_page) {
  Outcome outcome;
  TestStep prefill;
  append(prefill, ids, 0, ids.size(), slot, pages_from(first_page), false);
  step(executor, std::move(prefill), outcome);
  while (outcome.tokens.size() < n) {
    ids.push_back(outcome.tokens.back());
    TestStep one;
    append(one, ids, ids.size() - 1, 1, slot, pages_from(first_page), false);
    step(executor, std::move(one), outcome);
  }
  return outcome.tokens;
}

TEST_P(Picks, SeveralOfASlotBesideOneThatDecodes) {
  const auto executor = open(GetParam());
  ASSERT_NE(executor, nullptr);
  auto ids = prompt(kPrompt);
  const auto other = prompt(7, 2);
  const auto alone = decode(*executor, ids, kDrafts + 1, 0, 0);
  const auto alone_other = decode(*executor, other, 2, 1, 8);

  // Once more from the start, with the tokens that decoding found as drafts; in the second round the last one is wrong.
  for (const bool is_wrong : {false, true}) {
    Outcome first;
    TestStep prefill;
    append(prefill, ids, 0, ids.size(), 0, pages_from(0), false);
    append(prefill, other, 0, other.size(), 1, pages_from(8), false);
    step(*executor, std::move(prefill), first);
    ASSERT_EQ(first.tokens, (std::vector<std::int32_t>{alone[0], alone_other[0]}));
    auto drafted = ids;
    drafted.insert(drafted.end(), alone.begin(), alone.begin() + kDrafts);
    if (is_wrong) drafted.back() = (drafted.back() + 1) % 300;
    auto after = other;
    after.push_back(alone_other[0]);
    TestStep verify;
    append(verify, drafted, kPrompt, kDrafts, 0, pages_from(0));
    append(verify, after, other.size(), 1, 1, pages_from(8));
    Outcome picks;
    step(*executor, std::move(verify), picks);
    ASSERT_EQ(picks.tokens.size(), kDrafts + 1);
    const std::size_t n_same = is_wrong ? kDrafts - 1 : kDrafts;
    for (std::size_t i = 0; i < n_same; ++i) EXPECT_EQ(picks.tokens[i], alone[i + 1]) << i;
    EXPECT_EQ(picks.tokens[kDrafts], alone_other[1]);
  }
}

// A row that is processed is picked from what that left; the others, and the logits that on_logits gets, are as before.
TEST_P(Picks, AProcessedRowChangesItsOwnPickAlone) {
  const auto executor = open(GetParam());
  ASSERT_NE(executor, nullptr);
  const auto a = prompt(kPrompt), b = prompt(7, 2), c = prompt(5, 3);
  const auto run = [&](bool is_processed, std::vector<std::uint32_t>& rows) {
    TestStep input;
    append(input, a, 0, a.size(), 0, pages_from(0), false);
    append(input, b, 0, b.size(), 1, pages_from(8), false);
    append(input, c, 0, c.size(), 2, pages_from(16), false);
    for (const std::size_t row : {0, 2}) input.outputs[row].is_processed = is_processed;
    input.process = [&](std::uint32_t row, std::span<float> logits) {
      rows.push_back(row);
      std::ranges::fill(logits, 0.0f);
      logits[100 + row] = 1.0f;
    };
    Outcome outcome;
    step(*executor, std::move(input), outcome);
    return outcome;
  };
  std::vector<std::uint32_t> rows;
  const auto plain = run(false, rows);
  EXPECT_TRUE(rows.empty());
  const auto processed = run(true, rows);
  EXPECT_EQ(rows, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(processed.tokens, (std::vector<std::int32_t>{100, plain.tokens[1], 102}));
  EXPECT_EQ((Outcome{processed.logits, {}}), (Outcome{plain.logits, {}}));
  EXPECT_EQ(run(false, rows), plain);
}

INSTANTIATE_TEST_SUITE_P(Models, Picks, ::testing::Values("llama_spm-f32", "qwen35-f32", "llama_k-Q4_K_M"),
                         [](const auto& info) {
                           auto name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace zinc_rt

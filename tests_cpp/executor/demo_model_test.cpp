// A real model, SmolLM2-135M-Instruct, on every tier that can run here against T-CPU: a prompt and 16 tokens, each with
// the bits of all its logits. scripts/demo.sh fetches the file.
#include <cstdlib>

#include "model_fixture.h"
#include "ring/registry.h"

namespace zinc_rt {
namespace {

std::string demo_model() {
  const char* path = std::getenv("ZRT_DEMO_MODEL");
  return path != nullptr ? path : ZRT_SOURCE_DIR "/.cache/zinc_rt/smollm2-135m-instruct.gguf";
}

// "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", and the likeliest tokens behind it.
Outcome answer_of_demo_model(const std::string& tier) {
  constexpr std::size_t kTokens = 16;
  std::vector<std::int32_t> ids{1, 4093, 198, 19556, 2, 198, 1, 520, 9531, 198};
  auto options = small_options();
  options.tier = tier;
  const auto executor = RingExecutor::open(demo_model(), options);
  EXPECT_TRUE(executor) << (executor ? "" : executor.error().message);
  Outcome outcome;
  if (!executor) return outcome;
  for (std::size_t first = 0; outcome.tokens.size() < kTokens;) {
    TestStep input;
    append(input, ids, first, ids.size() - first, 0, pages_from(0), false);
    step(**executor, std::move(input), outcome);
    if (outcome.tokens.empty()) break;
    first = ids.size();
    ids.push_back(outcome.tokens.back());
  }
  return outcome;
}

class DemoModelOnTiers : public ::testing::TestWithParam<std::string> {};

TEST_P(DemoModelOnTiers, AnswersWithTheBitsOfTCpu) {
  if (!std::filesystem::exists(demo_model()))
    GTEST_SKIP() << "no demo model (" << demo_model() << "); scripts/demo.sh fetches it";
  const Outcome wanted = answer_of_demo_model("t_cpu"), got = answer_of_demo_model(GetParam());
  EXPECT_EQ(wanted.tokens.size(), 16u);
  EXPECT_EQ(wanted.tokens, got.tokens);
  EXPECT_EQ(wanted, got);
}

std::vector<std::string> names_of_other_tiers() {
  std::vector<std::string> names;
  for (const ring::Tier* tier : ring::tiers())
    if (tier->name != "t_cpu" && tier->name != "null" && tier->unavailable_reason().empty())
      names.push_back(tier->name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Executor, DemoModelOnTiers, ::testing::ValuesIn(names_of_other_tiers()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DemoModelOnTiers);

}  // namespace
}  // namespace zinc_rt

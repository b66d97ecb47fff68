// An executor that is no ring takes part as the others do: the registry lists it, it is chosen by the name of its tier,
// and an engine runs requests on it. It is one folder, tests_cpp/peer/executor, and this test is linked with it.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "executor/registry.h"
#include "tests_cpp/base/fixtures.h"
#include "zinc_rt/engine.h"
#include "zinc_rt/session.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

const std::string kModel = model_path("llama_spm-f32");

TEST(Peer, IsListedBesideTheRings) {
  std::vector<std::string> kinds;
  for (const ExecutorKind* kind : executor_kinds()) kinds.push_back(kind->name);
  EXPECT_THAT(kinds, ::testing::UnorderedElementsAre("ring", "peer"));
  const auto tiers = executor_tiers();
  const auto peer = std::ranges::find(tiers, "t_peer", [](const TierEntry& entry) { return entry.tier.name; });
  ASSERT_TRUE(peer != tiers.end());
  EXPECT_EQ(peer->executor->name, "peer");
  EXPECT_THAT(pick_tier("t9").error().message, HasSubstr("t_peer"));
}

TEST(Peer, IsTakenOnlyByName) {
  EXPECT_EQ(pick_tier("t_peer")->entry.executor->name, "peer");
  EXPECT_EQ(pick_tier("auto")->entry.executor->name, "ring");
}

std::unique_ptr<Executor> open_peer() {
  ExecutorOptions options;
  options.tier = "t_peer";
  options.max_slots = 2;
  options.kv_pages = 8;
  options.max_context = 64;
  auto executor = open_executor(kModel, options);
  EXPECT_TRUE(executor) << (executor ? "" : executor.error().message);
  return executor ? std::move(*executor) : nullptr;
}

// The checks of steps are those of every executor.
TEST(Peer, RefusesWhatNoStepMayBe) {
  const auto executor = open_peer();
  ASSERT_TRUE(executor);
  const std::vector<std::uint32_t> pages{0, 1, 2, 3, 4, 5, 6, 7}, counts{4, 4};
  StepInput input;
  input.page_tables = {pages, 4, counts};
  input.token_ids = {1}, input.positions = {64}, input.slots = {0};
  StepOutput output;
  EXPECT_THAT(executor->step(input, output).error().message, HasSubstr("position 64 at index 0, the context has 64"));
  EXPECT_THAT(executor->copy_pages(std::vector<PageCopy>{{0, 8}}).error().message, HasSubstr("page 8 of 8"));
  EXPECT_TRUE(executor->copy_pages(std::vector<PageCopy>{{0, 7}}));
}

// A slot whose drafts are verified picks after each of its tokens; another decodes beside it in the same step.
TEST(Peer, PicksSeveralTokensOfASlot) {
  const auto executor = open_peer();
  ASSERT_TRUE(executor);
  const std::vector<std::uint32_t> pages{0, 1, 2, 3, 4, 5, 6, 7}, counts{4, 4};
  StepInput input;
  input.page_tables = {pages, 4, counts};
  input.token_ids = {10, 11, 50, 7}, input.positions = {3, 4, 5, 9}, input.slots = {0, 0, 0, 1};
  for (std::uint32_t i = 0; i < 4; ++i) {
    OutputRow row;
    row.token_index = i;
    row.position = static_cast<std::uint32_t>(input.positions[i]) + 1;
    input.outputs.push_back(row);
  }
  StepOutput output;
  ASSERT_TRUE(executor->step(input, output));
  EXPECT_EQ(output.tokens, (std::vector<std::int32_t>{11, 12, 51, 8}));
}

TEST(Peer, AnEngineRunsOnIt) {
  EngineOptions options;
  options.tier = "t_peer";
  options.max_slots = 2;
  options.max_context = 64;
  auto engine = Engine::open(kModel, options);
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(engine->tier(), "t_peer");
  const auto tenant = engine->tenant("alice");
  ASSERT_TRUE(tenant);
  Request request;
  request.token_ids = {{5, 6, 20}};
  request.max_tokens = 4;
  request.ignore_eos = true;
  const auto done = tenant->session()->generate(request);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->token_ids, (std::vector<std::int32_t>{21, 22, 23, 24}));
}

}  // namespace
}  // namespace zinc_rt

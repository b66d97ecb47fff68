// An engine on every tier that can run here: four slots, so few pages that requests are preempted, prompts that begin
// alike. What each request gives has the bits of the same request alone on T-CPU.
#include "engine_fixture.h"
#include "executor/registry.h"

namespace zinc_rt {
namespace {

struct EngineTierCase {
  std::string tier, model;
};
void PrintTo(const EngineTierCase& c, std::ostream* out) {
  *out << c.model << " on " << c.tier;
}

class EngineOnTiers : public ::testing::TestWithParam<EngineTierCase> {};

TEST_P(EngineOnTiers, BatchesPreemptionAndPrefixesChangeNoBit) {
  constexpr std::size_t kRequests = 4;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < kRequests; ++i) {
    auto ids = prompt(35 + 2 * i, static_cast<unsigned>(i));
    const auto beginning = prompt(32, 77);
    std::ranges::copy(beginning, ids.begin());
    requests.push_back(token_request(ids, 16));
  }
  auto options = small_options();
  options.max_slots = 1;
  EngineOptions engine_options;
  engine_options.prefix_cache = false;
  const auto alone = start_engine(GetParam().model, options, engine_options);
  options.tier = GetParam().tier;
  options.max_slots = 4;
  options.kv_pages = 8;
  options.state_checkpoints = 8;
  const auto engine = start_engine(GetParam().model, options);
  for (int round = 0; round < 2; ++round) {
    std::vector<Stream> streams;
    for (const Request& request : requests) {
      auto stream = engine.session().stream(request);
      ASSERT_TRUE(stream) << stream.error().message;
      streams.push_back(std::move(*stream));
    }
    for (std::size_t i = 0; i < kRequests; ++i) {
      for (auto event = streams[i].next(); event && *event; event = streams[i].next()) {
      }
      const auto wanted = alone.session().generate(requests[i]);
      ASSERT_TRUE(wanted);
      const auto got = streams[i].completion();
      EXPECT_EQ(got.token_ids, wanted->token_ids);
      EXPECT_EQ(got.logits_hashes, wanted->logits_hashes);
    }
  }
  EXPECT_GT(engine.stat("preemptions"), 0u);
  EXPECT_GT(engine.stat("cached_tokens"), 0u);
  expect_all_free(engine);
}

// The logprobs of answers and of prompts, in a batch and with other requests beside them: by the tier itself, and from
// logits where a hash or a processor makes the host read them.
TEST_P(EngineOnTiers, LogprobsHaveTheDigitsOfTCpu) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < 5; ++i) {
    auto request = token_request(prompt(20 + 9 * i, static_cast<unsigned>(i)), 6);
    request.temperature = i % 2 == 0 ? 0.0f : 1.0f;
    request.seed = i;
    request.return_logits_hash = i == 1;
    request.logprobs = i == 4 ? 0 : i == 2 ? 128 : 5;
    if (i == 0 || i == 2) request.prompt_logprobs = i;
    if (i == 3)
      request.logits_processor = [](std::span<const std::int32_t>, std::span<float> logits) {
        logits[9] += 3;
        return Status{};
      };
    requests.push_back(std::move(request));
  }
  auto options = small_options();
  const auto alone = start_engine(GetParam().model, options);
  options.tier = GetParam().tier;
  options.max_slots = 5;
  const auto engine = start_engine(GetParam().model, options);
  std::vector<Stream> streams;
  for (const Request& request : requests) {
    auto stream = engine.session().stream(request);
    ASSERT_TRUE(stream) << stream.error().message;
    streams.push_back(std::move(*stream));
  }
  const auto expect_same = [](const std::vector<TokenLogprob>& got, const std::vector<TokenLogprob>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].token_id, wanted[i].token_id) << i;
      if (!std::isnan(wanted[i].logprob)) {
        EXPECT_EQ(got[i].logprob, wanted[i].logprob) << i;
      }
      EXPECT_EQ(got[i].top, wanted[i].top) << i;
    }
  };
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(i);
    for (auto event = streams[i].next(); event && *event; event = streams[i].next()) {
    }
    const auto wanted = alone.session().generate(requests[i]);
    ASSERT_TRUE(wanted);
    const auto got = streams[i].completion();
    EXPECT_EQ(got.token_ids, wanted->token_ids);
    EXPECT_EQ(got.logprobs.size(), i == 4 ? 0u : 6u);
    expect_same(got.logprobs, wanted->logprobs);
    expect_same(got.prompt_logprobs, wanted->prompt_logprobs);
  }
}

std::vector<EngineTierCase> engine_tier_cases() {
  std::vector<EngineTierCase> list;
  for (const ExecutorKind* kind : executor_kinds())
    for (const ExecutorTier& tier : kind->tiers())
      if (kind->backend == kOwnBackend && tier.name != "t_cpu" && tier.name != "null" &&
          tier.unavailable_reason().empty())
        for (const auto* model : {"tiny_llama_k-Q4_K_M", "tiny_qwen35-f16"}) list.push_back({tier.name, model});
  return list;
}
INSTANTIATE_TEST_SUITE_P(Tiers, EngineOnTiers, ::testing::ValuesIn(engine_tier_cases()), [](const auto& info) {
  auto name = info.param.tier + "_" + info.param.model;
  std::ranges::replace(name, '-', '_');
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EngineOnTiers);

}  // namespace
}  // namespace zinc_rt

// Embeddings as requests: the same bits alone, among others, in any chunks, and on a cached prefix; what is refused.
#include <gmock/gmock.h>

#include "engine/embedding.h"
#include "engine_fixture.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

Request embedding_request(std::vector<std::int32_t> ids) {
  Request request;
  request.token_ids = std::move(ids);
  request.embed = true;
  request.max_tokens = 0;
  return request;
}

TestEngine start_embedding(const std::string& pooling, std::uint32_t slots = 8, std::uint32_t chunk_cap = 0,
                           const EngineOptions& options = {}, std::shared_ptr<Probe> probe = {}) {
  auto executor_options = small_options();
  executor_options.pooling = find_pooling(pooling);
  executor_options.max_slots = slots;
  executor_options.chunk_cap = chunk_cap;
  executor_options.state_checkpoints = 2 * slots;
  return start_engine("qwen3-Q5_K_M", executor_options, options, std::move(probe));
}

std::vector<float> embed(const TestEngine& engine, const std::vector<std::int32_t>& ids, Usage* usage = nullptr) {
  const auto completion = engine.session().generate(embedding_request(ids));
  EXPECT_TRUE(completion) << (completion ? "" : completion.error().message);
  if (!completion) return {};
  EXPECT_EQ(completion->finish_reason, "stop");
  EXPECT_TRUE(completion->token_ids.empty());
  EXPECT_EQ(completion->usage.prompt_tokens, ids.size());
  if (usage != nullptr) *usage = completion->usage;
  return completion->embedding;
}

// Texts of many lengths; some begin alike.
std::vector<std::vector<std::int32_t>> texts(std::size_t n) {
  std::vector<std::vector<std::int32_t>> all;
  for (std::size_t i = 0; i < n; ++i) {
    auto ids = prompt(1 + (i * 37) % 110, i % 4 == 3 ? 1 : static_cast<unsigned>(i + 1));
    all.push_back(std::move(ids));
  }
  return all;
}

class Pooled : public ::testing::TestWithParam<const char*> {};

TEST_P(Pooled, NobodysBitsDependOnWhoElseIsThere) {
  const auto all = texts(64);
  std::vector<std::vector<float>> alone;
  {
    EngineOptions options;
    options.prefix_cache = false;
    const auto engine = start_embedding(GetParam(), 1, 0, options);
    for (const auto& ids : all) alone.push_back(embed(engine, ids));
  }
  for (const std::size_t n : {1, 2, 5, 16, 64})
    for (const std::uint32_t chunk_cap : {8u, 33u, 0u}) {
      const auto engine = start_embedding(GetParam(), 8, chunk_cap);
      std::vector<Stream> streams;
      for (std::size_t i = 0; i < n; ++i) streams.push_back(*engine.session().stream(embedding_request(all[i])));
      for (std::size_t i = 0; i < n; ++i) {
        const auto event = streams[i].next();
        ASSERT_TRUE(event) << event.error().message;
        EXPECT_FALSE(*event) << "an embedding has no token";
        EXPECT_EQ(streams[i].completion().embedding, alone[i])
            << "text " << i << " of " << n << ", chunks " << chunk_cap;
      }
      expect_all_free(engine);
    }
}

TEST_P(Pooled, ACachedPrefixChangesNoBit) {
  const auto engine = start_embedding(GetParam());
  const auto shared = prompt(96);
  auto one = shared, other = shared;
  one.push_back(7);
  other.insert(other.end(), {9, 11, 13});
  const auto first = embed(engine, one);
  Usage usage;
  const auto cached = embed(engine, other, &usage);
  EXPECT_EQ(usage.cached_tokens, 96u);
  EXPECT_EQ(embed(engine, one, &usage), first);
  EXPECT_GT(usage.cached_tokens, 0u);
  EngineOptions options;
  options.prefix_cache = false;
  const auto without = start_embedding(GetParam(), 8, 0, options);
  EXPECT_EQ(embed(without, other, &usage), cached);
  EXPECT_EQ(usage.cached_tokens, 0u);
}

TEST_P(Pooled, IsOfLengthOneAndCutToItsFirstNumbers) {
  const auto engine = start_embedding(GetParam());
  const auto whole = embed(engine, prompt(20));
  const auto length = [](std::span<const float> row) {
    double squares = 0;
    for (const float v : row) squares += double{v} * v;
    return std::sqrt(squares);
  };
  ASSERT_EQ(whole.size(), engine.core->model("").value()->config().model_dim);
  EXPECT_NEAR(length(whole), 1, 1e-6);
  auto request = embedding_request(prompt(20));
  request.dimensions = 5;
  const auto cut = engine.session().generate(request);
  ASSERT_TRUE(cut) << cut.error().message;
  ASSERT_EQ(cut->embedding.size(), 5u);
  EXPECT_NEAR(length(cut->embedding), 1, 1e-6);
  const double scale = length(std::span(whole).first(5));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(cut->embedding[i], whole[i] / scale, 1e-6);
}

TEST_P(Pooled, ATenantPaysForItsPromptTokens) {
  const auto engine = start_embedding(GetParam());
  embed(engine, prompt(40));
  embed(engine, prompt(23, 9));
  const auto ledger = engine.tenant("alice").ledger();
  EXPECT_EQ(ledger.tokens_prompted, 63u);
  EXPECT_EQ(ledger.tokens_generated, 0u);
  EXPECT_EQ(ledger.requests_finished, 2u);
  EXPECT_GT(ledger.service, 0);
}

TEST(Normalized, IsEmptyWithoutADirection) {
  for (const float bad : {NAN, INFINITY, 0.0f}) {
    const std::vector<float> row(4, bad);
    EXPECT_TRUE(normalized(row).empty());
  }
  EXPECT_EQ(normalized(std::vector<float>{3, 0, -4}), (std::vector<float>{0.6f, 0, -0.8f}));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Pooled, ::testing::Values("mean", "last"),
                         [](const auto& info) { return std::string(info.param); });

std::string refusal(const TestEngine& engine, const Request& request) {
  const auto completion = engine.session().generate(request);
  EXPECT_FALSE(completion);
  return completion ? std::string() : completion.error().message;
}

TEST(EmbeddingRequests, WhatAModelDoesNotGiveIsRefusedByName) {
  const auto embeds = start_embedding("last"), generates = start_embedding("none");
  EXPECT_THAT(refusal(embeds, token_request(prompt(5), 3)),
              HasSubstr("gives embeddings (pooling last) and generates nothing"));
  EXPECT_THAT(refusal(generates, embedding_request(prompt(5))), HasSubstr("generates and gives no embeddings"));
  const auto model = *embeds.core->model("");
  const auto logits = embeds.core->logits(*model, prompt(5), LogitsRows::kAll, 0);
  ASSERT_FALSE(logits);
  EXPECT_THAT(logits.error().message, HasSubstr("gives embeddings (pooling last) and has no logits"));
  EXPECT_EQ(model->card().pooling, "last");
  EXPECT_EQ(model->card().embedding_dim, model->config().model_dim);
  EXPECT_EQ((*generates.core->model(""))->card().pooling, "");
}

TEST(EmbeddingRequests, FieldsOfGenerationAreRefusedByName) {
  const auto engine = start_embedding("mean");
  const auto with = [&](auto&& change) {
    auto request = embedding_request(prompt(5));
    change(request);
    return refusal(engine, request);
  };
  EXPECT_THAT(with([](Request& r) { r.max_tokens = 3; }), HasSubstr("max_tokens is 3, 0 wanted for an embedding"));
  EXPECT_THAT(with([](Request& r) { r.n = 2; }), HasSubstr("n is 2, 1 wanted for an embedding"));
  EXPECT_THAT(with([](Request& r) { r.logprobs = 1; }), HasSubstr("logprobs is given for an embedding"));
  EXPECT_THAT(with([](Request& r) { r.prompt_logprobs = 0; }), HasSubstr("prompt_logprobs is given for an embedding"));
  EXPECT_THAT(with([](Request& r) { r.stop = {"a"}; }), HasSubstr("stop is given for an embedding"));
  EXPECT_THAT(with([](Request& r) { r.dimensions = 1000; }), HasSubstr("dimensions is 1000, 1 to "));
  EXPECT_THAT(with([](Request& r) { r.token_ids = prompt(129); }), HasSubstr("129"));
  EXPECT_THAT(with([](Request& r) { r.token_ids->clear(); }), HasSubstr("the prompt has no tokens"));
}

}  // namespace
}  // namespace zinc_rt

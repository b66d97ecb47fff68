// What an engine tells of itself: model cards, memory and statistics, as values and as JSON.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests_cpp/executor/model_fixture.h"
#include "zinc_rt/engine.h"
#include "zinc_rt/session.h"

namespace zinc_rt {
namespace {

using Json = nlohmann::json;

class Describe : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.tier = "t_cpu";
    options_.max_slots = 2;
    options_.max_context = 64;
    options_.threads = 2;
    auto engine = Engine::open(model_path("qwen3moe-Q4_K_M"), options_);
    ASSERT_TRUE(engine) << engine.error().message;
    engine_.emplace(std::move(*engine));
  }
  void generate(const std::string& model, std::uint32_t max_tokens) {
    Request request;
    request.token_ids = {{5, 6, 20}};
    request.model = model;
    request.max_tokens = max_tokens;
    request.ignore_eos = true;
    ASSERT_TRUE(engine_->tenant("alice")->session()->generate(request));
  }

  EngineOptions options_;
  std::optional<Engine> engine_;
};

TEST_F(Describe, UnknownModelsAreNotFound) {
  EXPECT_EQ(engine_->model_card("other").error().code, StatusCode::kNotFound);
  EXPECT_EQ(engine_->memory_plan("other").error().code, StatusCode::kNotFound);
}

TEST_F(Describe, CardAndMemoryAreTheirJson) {
  const auto card = engine_->model_card();
  ASSERT_TRUE(card);
  EXPECT_EQ(card->architecture, "qwen3moe");
  EXPECT_GT(card->n_experts, card->n_experts_used);
  EXPECT_GT(card->n_parameters, card->n_active_parameters);
  const auto json = Json::parse(to_json(*card));
  EXPECT_EQ(json["n_experts"], card->n_experts);
  EXPECT_EQ(json["n_active_parameters"], card->n_active_parameters);
  EXPECT_EQ(json["tokenizer"]["n_vocab"], card->tokenizer.n_vocab);
  EXPECT_FALSE(json.contains("ssm"));  // of another family

  const auto memory = engine_->memory_plan();
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->max_slots, options_.max_slots);
  std::uint64_t allocated = 0;
  for (const auto& region : memory->regions) allocated += region.mapped ? 0 : region.bytes;
  EXPECT_EQ(memory->allocated_bytes, allocated);
  const auto plan = Json::parse(to_json(*memory));
  EXPECT_EQ(plan["regions"].size(), memory->regions.size());
  EXPECT_EQ(plan["allocated_bytes"], allocated);

  // What a list shows is a part of it.
  for (const auto& [all, listed] : {std::pair(json, Json::parse(to_json(*card, CardDetail::kListed))),
                                    std::pair(plan, Json::parse(to_json(*memory, CardDetail::kListed)))}) {
    EXPECT_LT(listed.size(), all.size());
    for (const auto& [key, value] : listed.items()) EXPECT_EQ(all[key], value) << key;
  }
}

TEST_F(Describe, TotalsAreSumsOverTheModels) {
  ASSERT_TRUE(engine_->add_model(model_path("llama_spm-f32"), "second", options_));
  generate({}, 3);
  generate("second", 5);
  const auto stats = engine_->stats();
  ASSERT_EQ(stats.models.size(), 2u);
  EXPECT_EQ(stats.models[0].generated_tokens, 3u);
  EXPECT_EQ(stats.models[1].generated_tokens, 5u);
  const auto json = Json::parse(to_json(stats));
  for (const auto& [key, value] : json["models"][0].items()) {
    if (!value.is_number()) continue;
    EXPECT_EQ(json[key].get<std::uint64_t>(), value.get<std::uint64_t>() + json["models"][1][key].get<std::uint64_t>())
        << key;
  }
  EXPECT_EQ(json["generated_tokens"], 8);
  EXPECT_EQ(json["tier"], "t_cpu");
}

TEST(ModelCard, CountsTheRecurrentLayersOfHybrids) {
  EngineOptions options;
  options.tier = "t_cpu";
  options.max_slots = 1;
  options.max_context = 64;
  options.threads = 2;
  for (const auto& [model, has_ssm] : {std::pair("tiny_lfm2-f16", false),
                                       {"tiny_granitehybrid-f16", true},
                                       {"tiny_nemotron_h-f16", true},
                                       {"tiny_qwen35-f16", true}}) {
    const auto engine = Engine::open(model_path(model), options);
    ASSERT_TRUE(engine) << engine.error().message;
    const auto card = engine->model_card();
    ASSERT_TRUE(card);
    EXPECT_EQ(card->n_recurrent_layers, 1u) << model;
    EXPECT_EQ(card->ssm.has_value(), has_ssm) << model;
    EXPECT_GT(card->state_bytes_per_slot, 0u) << model;
  }
  const auto llama = Engine::open(model_path("tiny_llama-f32"), options);
  ASSERT_TRUE(llama) << llama.error().message;
  EXPECT_EQ(llama->model_card()->n_recurrent_layers, 0u);
}

TEST_F(Describe, AClosedEngineHasNoModels) {
  engine_->close();
  const auto stats = engine_->stats();
  EXPECT_TRUE(stats.models.empty());
  EXPECT_FALSE(Json::parse(to_json(stats)).contains("steps"));
}

}  // namespace
}  // namespace zinc_rt

// An engine that is started without a model.
#include <gmock/gmock.h>

#include "tests_cpp/base/fixtures.h"
#include "zinc_rt/engine.h"

namespace zinc_rt {
namespace {

using testing::HasSubstr;

EngineOptions small() {
  EngineOptions options;
  options.max_slots = 2;
  options.max_context = 64;
  return options;
}

std::string a_model() {
  return (own_models() / (models_in(own_models()).front() + ".gguf")).string();
}

Request two_tokens() {
  Request request;
  request.token_ids = {1, 2};
  request.max_tokens = 2;
  request.ignore_eos = true;
  return request;
}

TEST(EmptyEngine, SaysThatThereIsNoModel) {
  auto engine = Engine::start(small());
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_TRUE(engine->models().empty());
  EXPECT_TRUE(engine->tier().empty() && engine->arithmetic().empty());
  EXPECT_TRUE(engine->stats().models.empty());
  EXPECT_EQ(engine->vocab_size(), 0u);
  for (const auto& name : {"", "a"}) {
    const auto card = engine->model_card(name);
    ASSERT_FALSE(card);
    EXPECT_EQ(card.error().code, StatusCode::kNotFound);
    EXPECT_THAT(card.error().message, HasSubstr("no model is loaded"));
  }
  auto tenant = engine->tenant("t");
  ASSERT_TRUE(tenant);
  const auto answer = tenant->session()->generate(two_tokens());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, StatusCode::kNotFound);
  EXPECT_TRUE(engine->drain(1000));
}

TEST(EmptyEngine, ModelsComeAndGo) {
  auto engine = Engine::start(small());
  ASSERT_TRUE(engine);
  auto session = engine->tenant("t")->session();
  std::vector<std::int32_t> first;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(engine->add_model(a_model(), "m", small()));
    EXPECT_EQ(engine->tier(), engine->stats().models.at(0).tier);
    const auto answer = session->generate(two_tokens());
    ASSERT_TRUE(answer) << answer.error().message;
    if (round == 0) first = answer->token_ids;
    EXPECT_EQ(answer->token_ids, first);
    ASSERT_TRUE(engine->remove_model("m"));
    EXPECT_TRUE(engine->models().empty());
  }
}

TEST(EmptyEngine, AModelHasThePagesThatTenantsReserve) {
  auto engine = Engine::start(small());
  ASSERT_TRUE(engine);
  TenantQuota quota;
  quota.reserved_kv_pages = 4096;
  quota.max_kv_pages = 4096;
  ASSERT_TRUE(engine->tenant("t", quota));
  const auto added = engine->add_model(a_model(), "m", small());
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, StatusCode::kExhausted);
  EXPECT_THAT(added.error().message, HasSubstr("4096 pages reserved in all, model \"m\" has "));
  quota.reserved_kv_pages = 1;
  ASSERT_TRUE(engine->tenant("t", quota));
  EXPECT_TRUE(engine->add_model(a_model(), "m", small()));
}

}  // namespace
}  // namespace zinc_rt

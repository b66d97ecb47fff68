// Encoders as requests: the same bits however many others there are, texts that are too long, and what is not there.
#include <gmock/gmock.h>

#include <cstdlib>

#include "engine_fixture.h"
#include "tests_cpp/model/tiny_bert.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

class BertRequests : public ::testing::TestWithParam<const char*> {
 protected:
  static TestEngine start(std::uint32_t slots, std::uint32_t kv_pages = 0) {
    auto options = small_options();
    options.pooling = find_pooling(GetParam());
    options.max_slots = slots;
    options.kv_pages = kv_pages;
    return start_engine(write_tiny_bert("engine_bert"), options);
  }
  static Request text_request(std::vector<std::int32_t> ids) {
    Request request;
    request.token_ids = std::move(ids);
    request.embed = true;
    request.max_tokens = 0;
    return request;
  }
};

TEST_P(BertRequests, HaveTheSameBitsAloneAndAmongOthers) {
  std::vector<std::vector<std::int32_t>> texts;
  for (std::size_t i = 0; i < 48; ++i) texts.push_back(prompt(1 + (i * 37) % 128, static_cast<unsigned>(i + 1)));
  std::vector<std::vector<float>> alone;
  {
    const auto engine = start(1);
    for (const auto& ids : texts) alone.push_back(engine.session().generate(text_request(ids))->embedding);
  }
  // Also where pages are for two long texts, and eight are admitted.
  for (const std::uint32_t kv_pages : {0u, 16u}) {
    const auto engine = start(8, kv_pages);
    const auto session = engine.session();
    std::vector<Stream> streams;
    for (const auto& ids : texts) {
      auto stream = session.stream(text_request(ids));
      ASSERT_TRUE(stream) << stream.error().message;
      streams.push_back(std::move(*stream));
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      while (auto event = *streams[i].next()) {
      }
      const auto got = streams[i].completion();
      EXPECT_EQ(got.finish_reason, "stop") << i;
      EXPECT_EQ(got.usage.cached_tokens, 0u);
      ASSERT_EQ(got.embedding.size(), alone[i].size());
      EXPECT_EQ(0, std::memcmp(got.embedding.data(), alone[i].data(), alone[i].size() * sizeof(float))) << i;
    }
    expect_all_free(engine);
  }
}

TEST_P(BertRequests, AreRefusedWithBothNumbers) {
  const auto engine = start(2);
  const auto error = [&](Request request) {
    const auto completion = engine.session().generate(std::move(request));
    return completion ? std::string("none") : completion.error().message;
  };
  EXPECT_EQ(error(text_request(prompt(128))), "none");
  EXPECT_THAT(error(text_request(prompt(129))), ::testing::AllOf(HasSubstr("129"), HasSubstr("128")));
  EXPECT_THAT(error(token_request({5, 6}, 4)), HasSubstr("gives embeddings (pooling " + std::string(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Poolings, BertRequests, ::testing::Values("mean", "cls"),
                         [](const auto& info) { return std::string(info.param); });

Request pair_request(const std::string& first, const std::string& second) {
  Request request;
  request.prompt = first;
  request.text_pair = second;
  request.embed = true;
  request.max_tokens = 0;
  return request;
}
TestEngine start_cross_encoder(std::uint32_t slots) {
  auto options = small_options();
  options.max_slots = slots;
  return start_engine(write_tiny_bert("engine_rank", {.pooling = 4, .n_labels = 1}), options);
}

TEST(CrossEncoder, ScoresAreTheSameAloneAndAmongOthers) {
  const auto text = [](std::size_t i) {
    std::string words;
    for (std::size_t w = 0; w < 1 + i * 13 % 50; ++w) words += "w" + std::to_string(10 + (i * 7 + w) % 300) + " ";
    return words;
  };
  const auto engine = start_cross_encoder(8);
  std::vector<double> alone;
  for (std::size_t i = 0; i < 32; ++i) {
    const auto done = engine.session().generate(pair_request("w10 w11", text(i)));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(done->embedding.empty());
    alone.push_back(done->score.value());
  }
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < 32; ++i) streams.push_back(*engine.session().stream(pair_request("w10 w11", text(i))));
  for (std::size_t i = 0; i < streams.size(); ++i) {
    while (auto event = *streams[i].next()) {
    }
    EXPECT_EQ(streams[i].completion().score, alone[i]) << i;
  }
  EXPECT_NE(engine.session().generate(pair_request("w10 w11", "w12"))->score,
            engine.session().generate(pair_request("w10", "w11 w12"))->score);
  expect_all_free(engine);
}

TEST(CrossEncoder, RefusesWhatIsNoPair) {
  const auto engine = start_cross_encoder(2);
  const auto error = [&](Request request) {
    const auto completion = engine.session().generate(std::move(request));
    return completion ? std::string("none") : completion.error().message;
  };
  auto request = pair_request("w10", "w11");
  EXPECT_EQ(error(request), "none");
  request.dimensions = 1;
  EXPECT_THAT(error(request), HasSubstr("dimensions is given for a score"));
  request = pair_request("w10", "w11");
  request.text_pair.reset();
  EXPECT_THAT(error(request), HasSubstr("prompt and text_pair are wanted"));
  request = pair_request("w10", "w11");
  request.prompt.reset();
  request.token_ids = {5};
  EXPECT_THAT(error(request), HasSubstr("prompt and text_pair are wanted"));
  const auto embedding = start_engine(write_tiny_bert("engine_bert"), small_options());
  const auto refused = embedding.session().generate(pair_request("w10", "w11"));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("(pooling mean) scores no pairs"));
}

TEST(BertModel, ComputesNoPromptTokenByToken) {
  ::setenv("ZINC_RT_BATCHED_PREFILL", "0", 1);
  auto executor = open(write_tiny_bert("engine_bert"));
  std::vector<std::unique_ptr<Executor>> executors;
  executors.push_back(std::move(executor));
  const auto model = Model::make(std::move(executors), {});
  ::unsetenv("ZINC_RT_BATCHED_PREFILL");
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("ZINC_RT_BATCHED_PREFILL=0 is not there for bert"));
}

}  // namespace
}  // namespace zinc_rt

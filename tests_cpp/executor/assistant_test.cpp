// An assistant of Gemma 4 reads the KV pages of its model: its guesses against transformers' own, and the same bits however
// its rows are cut into steps. What guesses do to answers is tested in tests_cpp/engine/draft_model_test.cpp.
#include <gmock/gmock.h>

#include "draft_block_fixture.h"

namespace zinc_rt {
namespace {

constexpr const char* kModel = "tiny_gemma4-f16";
constexpr const char* kAssistant = "assistant-tiny_gemma4";

// A row of an assistant: the guess behind `token`, the text's token at `position`. The row of features is the model's at
// the position before, or the assistant's own.
struct Row {
  std::int32_t token;
  std::uint32_t position;
  std::vector<float> features;
};

Result<std::unique_ptr<RingExecutor>> try_open(Executor* model, ExecutorOptions options) {
  options.part = ModelPart::kDraftBlock;
  options.model = model;
  options.lender = model != nullptr ? model->weights().path() : model_path(kModel);
  options.gives_features = false;
  return RingExecutor::open(model_path(kAssistant), options);
}

class Assistant : public ::testing::Test {
 protected:
  void SetUp() override {
    auto file = Weights::open((own_models().parent_path() / "ref" / (std::string(kAssistant) + ".gguf")).string());
    ASSERT_TRUE(file) << file.error().message;
    const auto numbers = [&](std::string_view tensor) {
      std::vector<std::int32_t> ids;
      for (const float id : reference(*file, tensor)) ids.push_back(static_cast<std::int32_t>(id));
      return ids;
    };
    tokens_ = numbers("tokens");
    positions_ = numbers("positions");
    chain_tokens_ = numbers("chain_tokens");
    logits_ = reference(*file, "logits");
    own_features_ = reference(*file, "own_features");
    chain_logits_ = reference(*file, "chain_logits");
  }

  // Computes the text with the model, in the pages from number 3 on.
  void open_pair(ExecutorOptions options) {
    options.gives_features = true;
    model_ = open(kModel, options);
    Outcome outcome;
    TestStep input;
    append(input, tokens_, 0, tokens_.size(), 0, pages_from(kFirstPage));
    input.on_features = [&](std::span<const float> rows) { features_.assign(rows.begin(), rows.end()); };
    step(*model_, std::move(input), outcome);
    auto opened = try_open(model_.get(), options);
    ASSERT_TRUE(opened) << opened.error().message;
    assistant_ = std::move(*opened);
  }
  Row row_at(std::int32_t position) const {
    const auto p = static_cast<std::size_t>(position), dim = std::size_t{model_->info().feature_dim};
    const auto* of_model = features_.data() + (p - 1) * dim;
    return {tokens_[p], static_cast<std::uint32_t>(p), {of_model, of_model + dim}};
  }
  // One step for each element of `steps`.
  FeatureResults guess(const std::vector<std::vector<Row>>& steps) {
    FeatureResults results;
    for (const auto& rows : steps) {
      TestStep input;
      input.page_tables = {pages_from(kFirstPage)};
      for (const Row& row : rows) {
        OutputRow& output = input.outputs.emplace_back();
        output.token_index = static_cast<std::uint32_t>(input.token_ids.size());
        output.position = row.position;
        input.token_ids.push_back(row.token);
        input.positions.push_back(static_cast<std::int32_t>(row.position) - 1);
        input.slots.push_back(0);
        input.features.insert(input.features.end(), row.features.begin(), row.features.end());
      }
      input.on_features = [&](std::span<const float> own) {
        results.features.insert(results.features.end(), own.begin(), own.end());
      };
      step(*assistant_, std::move(input), results.outcome);
    }
    return results;
  }

  static constexpr std::uint32_t kFirstPage = 3;
  std::vector<std::int32_t> tokens_, positions_, chain_tokens_;
  std::vector<float> logits_, own_features_, chain_logits_, features_;
  std::unique_ptr<RingExecutor> model_, assistant_;
};

TEST_F(Assistant, GivesTheLogitsAndFeaturesOfTheReference) {
  ASSERT_NO_FATAL_FAILURE(open_pair(float_options(ModelPart::kModel)));
  EXPECT_TRUE(assistant_->info().reads_model_pages);
  EXPECT_EQ(assistant_->info().page_bytes, 0u);
  EXPECT_EQ(assistant_->info().feature_dim, model_->info().feature_dim);
  EXPECT_EQ(assistant_->allocated_bytes(), assistant_->plan().allocated_bytes());
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    SCOPED_TRACE(positions_[i]);
    const auto results = guess({{row_at(positions_[i])}});
    const auto part = [&](const std::vector<float>& all) {
      const std::size_t n = all.size() / positions_.size();
      return std::vector<float>(all.begin() + std::ptrdiff_t(i * n), all.begin() + std::ptrdiff_t((i + 1) * n));
    };
    EXPECT_LE(largest_difference(results.outcome.logits, part(logits_)), 2e-4f);
    EXPECT_LE(largest_difference(results.features, part(own_features_)), 2e-4f);
  }
}

TEST_F(Assistant, GoesOnWithItsOwnFeatures) {
  ASSERT_NO_FATAL_FAILURE(open_pair(float_options(ModelPart::kModel)));
  Row row = row_at(positions_.back());
  std::vector<float> logits;
  for (const std::int32_t token : chain_tokens_) {
    row.features = guess({{row}}).features;
    row.token = token;
    const auto of_guess = guess({{row}}).outcome.logits;
    logits.insert(logits.end(), of_guess.begin(), of_guess.end());
  }
  EXPECT_LE(largest_difference(logits, chain_logits_), 2e-4f);
}

// Also with the other types of the model's cache, which the assistant reads as they are.
TEST_F(Assistant, HasTheSameBitsInStepsOfAnySize) {
  for (const char* kv : {"f16", "f32", "i16"}) {
    SCOPED_TRACE(kv);
    auto options = small_options();
    options.kv_type = find_kv_type(kv);
    ASSERT_NO_FATAL_FAILURE(open_pair(options));
    std::vector<Row> rows;
    std::vector<std::vector<Row>> alone;
    for (std::int32_t p = 1; p < std::int32_t(tokens_.size()); ++p)
      rows.push_back(row_at(p)), alone.push_back({row_at(p)});
    const auto together = guess({rows}), one_by_one = guess(alone);
    EXPECT_EQ(together.outcome, one_by_one.outcome);
    EXPECT_EQ(together.features, one_by_one.features);
  }
}

TEST_F(Assistant, HasTheBitsOfTheCpuOnOtherTiers) {
  auto options = small_options();
  options.kv_type = find_kv_type("i16");
  ASSERT_NO_FATAL_FAILURE(open_pair(options));
  const std::vector<Row> rows{row_at(positions_.front()), row_at(positions_.back())};
  const auto wanted = guess({rows});
  std::size_t n_tiers = 0;
  for (const ring::Tier* tier : ring::tiers()) {
    if (tier->name == "t_cpu" || tier->name == "null" || !tier->unavailable_reason().empty()) continue;
    SCOPED_TRACE(tier->name);
    ++n_tiers;
    options.tier = tier->name;
    options.gives_features = true;
    assistant_.reset();
    model_ = open(kModel, options);
    if (const auto other = try_open(model_.get(), options); !other) {
      EXPECT_THAT(other.error().message, ::testing::HasSubstr("no kernel for CONCAT"));
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(open_pair(options));
    const auto got = guess({rows});
    EXPECT_EQ(got.outcome, wanted.outcome);
    EXPECT_EQ(got.features, wanted.features);
  }
  if (n_tiers == 0) GTEST_SKIP() << "no tier but T-CPU here";
}

TEST_F(Assistant, WithoutItsModelIsRefused) {
  const auto alone = RingExecutor::open(model_path(kAssistant), small_options());
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().message, ::testing::HasSubstr("is no model: files of gemma4-assistant are draft models"));
  const auto without = try_open(nullptr, small_options());
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, ::testing::HasSubstr("reads the KV cache of the model that it guesses for"));
}

TEST_F(Assistant, OfAnotherModelIsRefusedWithBothNumbers) {
  const auto error_with = [](const char* name) {
    const auto model = open(name, small_options());
    const auto opened = try_open(model.get(), small_options());
    return opened ? std::string() : opened.error().message;
  };
  EXPECT_THAT(error_with("tiny_gemma3-f16"), ::testing::HasSubstr("guesses for models of gemma4"));
  EXPECT_THAT(error_with("tiny_gemma4_moe-f16"),
              ::testing::HasSubstr("made for a model of width 32, and gemma4 fixture has 48"));
}

}  // namespace
}  // namespace zinc_rt

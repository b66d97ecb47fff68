// EAGLE-3's draft blocks of a tiny SmolLM3: their guesses against a reference, and the same bits however their tokens are
// cut into steps. What guesses do to answers is tested in tests_cpp/engine/draft_model_test.cpp.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "draft_block_fixture.h"

namespace zinc_rt {
namespace {

constexpr const char* kModel = "tiny_smollm3-f16";

class Eagle3Block : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto file = Weights::open((own_models().parent_path() / "ref" / (name() + ".gguf")).string());
    ASSERT_TRUE(file) << file.error().message;
    const auto tokens_of = [&](std::string_view tensor) {
      std::vector<std::int32_t> ids;
      for (const float id : reference(*file, tensor)) ids.push_back(static_cast<std::int32_t>(id));
      return ids;
    };
    tokens_ = tokens_of("tokens");
    chain_tokens_ = tokens_of("chain_tokens");
    features_ = reference(*file, "features");
    logits_ = reference(*file, "logits");
    block_features_ = reference(*file, "block_features");
    chain_logits_ = reference(*file, "chain_logits");
    // The block's input at position p is the token at p + 1.
    next_tokens_.assign(tokens_.begin() + 1, tokens_.end());
  }
  std::string name() const { return std::string("eagle3-") + GetParam(); }
  std::string path() const { return (own_models().parent_path() / "blocks" / (name() + ".gguf")).string(); }
  std::unique_ptr<RingExecutor> open_block(ExecutorOptions options) const {
    options.part = ModelPart::kDraftBlock;
    options.lender = model_path(kModel);
    auto block = RingExecutor::open(path(), options);
    if (!block) throw std::runtime_error(block.error().message);
    return std::move(*block);
  }
  // The block's rows for the text, with the model's features.
  std::vector<float> rows_of_text(const Executor& block) const {
    const FeatureInput& reads = block.info().reads;
    std::vector<float> rows(next_tokens_.size() * reads.width);
    for (std::size_t i = 0; i < next_tokens_.size(); ++i)
      std::copy_n(features_.data() + i * reads.of_model, reads.of_model, rows.data() + i * reads.width);
    return rows;
  }

  std::vector<std::int32_t> tokens_, next_tokens_, chain_tokens_;
  std::vector<float> features_, logits_, block_features_, chain_logits_;
};

TEST_P(Eagle3Block, ReadsTheInputsOfTheModelsLayers) {
  auto options = float_options(ModelPart::kModel);
  options.feature_layers = open_block(small_options())->config().target_layers;
  EXPECT_EQ(options.feature_layers.size(), 3u);
  const auto model = open(kModel, options);
  EXPECT_EQ(model->info().feature_dim * tokens_.size(), features_.size());
  EXPECT_LE(largest_difference(run(*model, tokens_, 7).features, features_), 2e-4f);
}

TEST_P(Eagle3Block, GivesTheLogitsAndFeaturesOfTheReference) {
  const auto block = open_block(float_options(ModelPart::kDraftBlock));
  const FeatureInput& reads = block->info().reads;
  EXPECT_EQ(reads.width, reads.of_model + block->info().feature_dim);
  const auto results = run(*block, next_tokens_, 9, rows_of_text(*block));
  EXPECT_LE(largest_difference(results.outcome.logits, logits_), 2e-4f);
  EXPECT_LE(largest_difference(results.features, block_features_), 2e-4f);
}

// Behind the text the block reads its own features.
TEST_P(Eagle3Block, GoesOnWithItsOwnFeatures) {
  const auto block = open_block(float_options(ModelPart::kDraftBlock));
  const FeatureInput& reads = block->info().reads;
  auto ids = next_tokens_;
  auto rows = rows_of_text(*block);
  for (const std::int32_t token : chain_tokens_) {
    const auto before = run(*block, ids, ids.size(), rows).features;
    ids.push_back(token);
    rows.resize(rows.size() + reads.width);
    std::copy_n(before.end() - block->info().feature_dim, block->info().feature_dim,
                rows.end() - static_cast<std::ptrdiff_t>(reads.width - reads.own_at));
  }
  const auto all = run(*block, ids, 1, rows).outcome.logits;
  const std::vector<float> logits(all.end() - static_cast<std::ptrdiff_t>(chain_logits_.size()), all.end());
  EXPECT_LE(largest_difference(logits, chain_logits_), 2e-4f);
}

TEST_P(Eagle3Block, HasTheSameBitsInStepsOfAnySize) {
  const auto block = open_block(small_options());
  const auto rows = rows_of_text(*block);
  const auto whole = run(*block, next_tokens_, next_tokens_.size(), rows);
  auto options = small_options();
  options.gives_features = true;
  options.feature_layers = block->config().target_layers;
  const auto model = open(kModel, options);
  const auto of_model = run(*model, tokens_, tokens_.size());
  for (const std::size_t chunk : {1, 2, 5, 16}) {
    SCOPED_TRACE(chunk);
    const auto cut = run(*block, next_tokens_, chunk, rows);
    EXPECT_EQ(cut.outcome, whole.outcome);
    EXPECT_EQ(cut.features, whole.features);
    const auto model_cut = run(*model, tokens_, chunk);
    EXPECT_EQ(model_cut.outcome, of_model.outcome);
    EXPECT_EQ(model_cut.features, of_model.features);
  }
}

// Every tier that can run here gives T-CPU's bits, or names the op that it lacks.
TEST_P(Eagle3Block, HasTheBitsOfTheCpuOnOtherTiers) {
  const auto on_cpu = open_block(small_options());
  auto options = small_options();
  options.part = ModelPart::kDraftBlock;
  options.lender = model_path(kModel);
  expect_bits_of_cpu_on_other_tiers(path(), options, next_tokens_, rows_of_text(*on_cpu));
  auto of_model = small_options();
  of_model.gives_features = true;
  of_model.feature_layers = on_cpu->config().target_layers;
  expect_bits_of_cpu_on_other_tiers(model_path(kModel), of_model, tokens_);
}

TEST_P(Eagle3Block, AloneIsNoModel) {
  const auto model = RingExecutor::open(path(), small_options());
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, ::testing::HasSubstr("is no model: files of eagle3 are draft models"));
}

INSTANTIATE_TEST_SUITE_P(Blocks, Eagle3Block, ::testing::Values("shared", "whole"),
                         [](const auto& info) { return std::string(info.param); });

// Features are one more result: those of layers change no bit of the model's logits, in any family that a draft block may
// be trained for.
TEST(LayerFeatures, ChangeNoLogitsInAnyFamily) {
  const auto ids = prompt(20);
  for (const auto& model : models_in(own_models())) {
    SCOPED_TRACE(model);
    auto options = small_options();
    const auto plain = open(model, options);
    if (plain->info().pooling != Pooling::kNone) continue;
    const std::uint32_t n_layers = plain->config().n_layers;
    options.gives_features = true;
    options.feature_layers = {0, n_layers / 2, n_layers};
    const auto giving = open(model, options);
    EXPECT_EQ(giving->info().feature_dim, 3 * plain->config().model_dim);
    EXPECT_EQ(run(*giving, ids, 7).outcome, run_prompt(*plain, ids, 7));
    options.feature_layers = {n_layers + 1};
    const auto too_far = RingExecutor::open(model_path(model), options);
    ASSERT_FALSE(too_far);
    EXPECT_THAT(too_far.error().message,
                ::testing::HasSubstr(fmt::format("the input of layer {} is a feature", n_layers + 1)));
  }
}

}  // namespace
}  // namespace zinc_rt

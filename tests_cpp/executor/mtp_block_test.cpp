// The block for multi-token prediction of a tiny Qwen 3.5: its guesses against a reference, and the same bits however
// its tokens are cut into steps. What guesses do to answers is tested in tests_cpp/engine/draft_model_test.cpp.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "draft_block_fixture.h"

namespace zinc_rt {
namespace {

constexpr const char* kModel = "tiny_qwen35_mtp-f16";

class MtpBlock : public ::testing::Test {
 protected:
  void SetUp() override {
    auto file = Weights::open((own_models().parent_path() / "ref" / "tiny_qwen35_mtp.gguf").string());
    ASSERT_TRUE(file) << file.error().message;
    for (const float id : reference(*file, "tokens")) tokens_.push_back(static_cast<std::int32_t>(id));
    features_ = reference(*file, "features");
    logits_ = reference(*file, "logits");
    block_features_ = reference(*file, "block_features");
    // The block's input at position p is the token at p + 1.
    next_tokens_.assign(tokens_.begin() + 1, tokens_.end());
    block_input_.assign(features_.begin(), features_.end() - static_cast<std::ptrdiff_t>(dim()));
  }
  std::size_t dim() const { return features_.size() / tokens_.size(); }

  std::vector<std::int32_t> tokens_, next_tokens_;
  std::vector<float> features_, logits_, block_features_, block_input_;
};

TEST_F(MtpBlock, GivesTheLogitsAndFeaturesOfTheReference) {
  const auto model = open(kModel, float_options(ModelPart::kModel));
  EXPECT_EQ(model->info().feature_dim, dim());
  EXPECT_LE(largest_difference(run(*model, tokens_, 7).features, features_), 2e-4f);
  const auto block = open(kModel, float_options(ModelPart::kDraftBlock));
  EXPECT_EQ(block->info().state_bytes_per_slot, 0u);
  const auto results = run(*block, next_tokens_, 9, block_input_);
  EXPECT_LE(largest_difference(results.outcome.logits, logits_), 2e-4f);
  EXPECT_LE(largest_difference(results.features, block_features_), 2e-4f);
}

TEST_F(MtpBlock, HasTheSameBitsInStepsOfAnySize) {
  auto options = small_options();
  for (const ModelPart part : {ModelPart::kModel, ModelPart::kDraftBlock}) {
    options.part = part;
    options.gives_features = true;
    const auto executor = open(kModel, options);
    const auto& ids = part == ModelPart::kModel ? tokens_ : next_tokens_;
    const auto& input = part == ModelPart::kModel ? std::vector<float>() : block_input_;
    const auto whole = run(*executor, ids, ids.size(), input);
    for (const std::size_t chunk : {1, 2, 5, 16}) {
      const auto cut = run(*executor, ids, chunk, input);
      EXPECT_EQ(cut.outcome, whole.outcome) << chunk;
      EXPECT_EQ(std::memcmp(cut.features.data(), whole.features.data(), whole.features.size() * sizeof(float)), 0);
    }
  }
}

// Features are one more result: those of the model change no bit of its logits.
TEST_F(MtpBlock, FeaturesChangeNoLogits) {
  auto options = small_options();
  const auto plain = open(kModel, options);
  EXPECT_EQ(plain->info().feature_dim, 0u);
  options.gives_features = true;
  const auto giving = open(kModel, options);
  EXPECT_EQ(run(*giving, tokens_, 7).outcome, run_prompt(*plain, tokens_, 7));
}

TEST_F(MtpBlock, AStepWithoutItsFeaturesIsRefused) {
  auto options = small_options();
  options.part = ModelPart::kDraftBlock;
  const auto block = open(kModel, options);
  TestStep input;
  append(input, next_tokens_, 0, 3, 0, pages_from(0));
  input.features.assign(block_input_.begin(), block_input_.begin() + 2 * static_cast<std::ptrdiff_t>(dim()));
  StepOutput output;
  const auto status = block->step(input.view(), output);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, ::testing::HasSubstr(fmt::format("3 tokens with {} values of features, {} wanted",
                                                                       2 * dim(), 3 * dim())));
  // Nor does a model read features.
  options.part = ModelPart::kModel;
  const auto model = open(kModel, options);
  EXPECT_FALSE(model->step(input.view(), output));
}

TEST_F(MtpBlock, OfAFamilyThatRunsNoneIsRefusedByName) {
  auto options = small_options();
  options.part = ModelPart::kDraftBlock;
  const auto other = RingExecutor::open(model_path("tiny_llama-f32"), options);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, ::testing::HasSubstr("llama: blocks for multi-token prediction"));
  const auto without = RingExecutor::open(model_path("tiny_qwen35-f16"), options);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, ::testing::HasSubstr("tensor \"blk.2.nextn.eh_proj.weight\" is missing"));
}

// Every tier that can run here gives T-CPU's bits, or names the op that it lacks.
TEST_F(MtpBlock, HasTheBitsOfTheCpuOnOtherTiers) {
  auto options = small_options();
  options.part = ModelPart::kDraftBlock;
  expect_bits_of_cpu_on_other_tiers(model_path(kModel), options, next_tokens_, block_input_);
}

}  // namespace
}  // namespace zinc_rt

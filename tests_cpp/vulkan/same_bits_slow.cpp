// Every model that the backend supports, families and weight formats, on every kind of step: T-CPU's bits.
#include "same_bits.h"
#include "tests_cpp/model/tiny_float.h"

namespace zinc_rt::vulkan {
namespace {

// Those of a folder that it does not refuse.
std::vector<std::string> supported(const std::vector<std::string>& models) {
  std::vector<std::string> names;
  for (const auto& name : models) {
    const auto weights = Weights::open(model_path(name));
    if (!weights) continue;
    const auto config = read_config(weights->metadata(), weights->infos());
    if (config && describe(*config, *weights)) names.push_back(name);
  }
  return names;
}

// One model a family, that of tests_data.
class EveryFamily : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ZRT_NEED_VULKAN(); }
};
// Of each family several, in more weight formats.
class EveryModel : public EveryFamily {};
// The same in one weight format each, for what no format changes.
class EveryShape : public EveryFamily {};

TEST_P(EveryModel, APromptInChunks) {
  expect_same(GetParam(), small_options(), prompt_in_chunks);
}

TEST_P(EveryFamily, BatchesOfSlots) {
  auto options = small_options();
  options.max_slots = 16;
  options.kv_pages = 16;
  expect_same(GetParam(), options, batches_of_slots);
}

TEST_P(EveryShape, ALongHistory) {
  for (const auto* kv_dtype : {"f16", "i16"}) {
    auto options = long_options();
    options.kv_type = find_kv_type(kv_dtype);
    if (RingExecutor::open(model_path(GetParam()), options)) expect_same(GetParam(), options, long_history);
  }
}

TEST_P(EveryFamily, CachesOfOtherTypes) {
  for (const auto* kv_dtype : {"f32", "q8_0", "i16"}) {
    auto options = small_options();
    options.kv_type = find_kv_type(kv_dtype);
    if (!RingExecutor::open(model_path(GetParam()), options)) {  // heads that are no whole blocks
      EXPECT_FALSE(VulkanExecutor::open_on(open_device(), model_path(GetParam()), options));
      continue;
    }
    expect_same(GetParam(), options, prompt_in_chunks);
  }
}

// Attention of prompts over integers by matrices, those of the test; with the memory of a workgroup that GPUs have it
// takes twice as many rows as with that of Mesa's processor device, which has more than it says.
class MatricesByHand : public EveryFamily {
 protected:
  void SetUp() override {
    ZRT_NEED_VULKAN();
    if (const auto opened = RingExecutor::open(model_path(GetParam()), with_integers(small_options())); !opened)
      GTEST_SKIP() << opened.error().message;
  }
  static void expect_same_by_hand(const ExecutorOptions& options, void (*calls)(Executor&, Outcome&)) {
    for (const std::uint32_t kib : {32, 48})
      expect_same(GetParam(), options, calls, open_new_device({.matrices_by_hand = true}, kib * 1024));
  }
  static ExecutorOptions with_integers(ExecutorOptions options) {
    options.kv_type = find_kv_type("i16");
    return options;
  }
};
TEST_P(MatricesByHand, APromptInChunks) {
  expect_same_by_hand(with_integers(small_options()), prompt_in_chunks);
}
TEST_P(MatricesByHand, BatchesOfSlots) {
  auto options = with_integers(small_options());
  options.max_slots = 16;
  options.kv_pages = 16;
  expect_same_by_hand(options, batches_of_slots);
}
TEST_P(MatricesByHand, ALongHistory) {
  expect_same_by_hand(with_integers(long_options()), long_history);
}

// Groups of heads that fill tiles, that do not, and of which a tile has a part.
TEST(VulkanForms, GroupsOfHeadsByMatrices) {
  ZRT_NEED_VULKAN();
  for (const auto& [n_heads, n_kv_heads] : {std::pair{1u, 1u}, {3u, 1u}, {10u, 2u}, {9u, 1u}}) {
    TinyFloat shape{.n_heads = n_heads, .n_kv_heads = n_kv_heads, .n_layers = 1, .head_dim = 64, .window = 70};
    auto options = long_options();
    options.kv_type = find_kv_type("i16");
    expect_same(write_tiny_float("groups", shape), options, long_history,
                open_new_device({.matrices_by_hand = true}, 48 * 1024));
  }
}

TEST_P(EveryFamily, CheckpointsOfState) {
  const auto options = checkpoint_options();
  expect_same(GetParam(), options, checkpoints_of_state);
  const auto peer = open_vulkan(GetParam(), options);
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->info().state_bytes_per_slot > 0, peer->config().ssm_v_heads > 0);
  EXPECT_EQ(peer->allocated_bytes(), peer->plan().allocated_bytes());
}

TEST_P(EveryFamily, HiddenStatesAfterEachLayer) {
  expect_same_hidden(GetParam());
}

TEST_P(EveryFamily, FloatActivations) {
  auto options = small_options();
  options.activations = Activations::kF32;
  expect_same(GetParam(), options,
              [](Executor& executor, Outcome& outcome) { outcome = run_prompt(executor, prompt(20), 9); });
}

TEST_P(EveryFamily, SamplingOfAllKinds) {
  expect_same(GetParam(), small_options(), sampling_of_all_kinds);
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  auto name = info.param;
  std::ranges::replace_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}
std::vector<std::string> all_models() {
  auto names = models_in(own_models());
  if (has_shared_fixtures())
    for (auto& name : models_in(shared_models())) names.push_back(std::move(name));
  return names;
}
// Of names that differ in what follows their last '-' alone, the first.
std::vector<std::string> in_one_format(const std::vector<std::string>& names) {
  std::vector<std::string> first;
  for (const auto& name : names)
    if (std::ranges::none_of(first, [&](const auto& other) {
          return other.substr(0, other.rfind('-')) == name.substr(0, name.rfind('-'));
        }))
      first.push_back(name);
  return first;
}
INSTANTIATE_TEST_SUITE_P(Vulkan, EveryFamily, ::testing::ValuesIn(supported(models_in(own_models()))), name_of);
INSTANTIATE_TEST_SUITE_P(Vulkan, MatricesByHand, ::testing::ValuesIn(supported(models_in(own_models()))), name_of);
INSTANTIATE_TEST_SUITE_P(Vulkan, EveryModel, ::testing::ValuesIn(supported(all_models())), name_of);
INSTANTIATE_TEST_SUITE_P(Vulkan, EveryShape, ::testing::ValuesIn(in_one_format(supported(all_models()))), name_of);

// Of more rows than are converted at once while a model is loaded.
TEST(VulkanLoading, ALargeMatrixIsConvertedInPieces) {
  ZRT_NEED_VULKAN();
  const auto model = write_tiny_float("large", {.n_layers = 1, .n_tokens = 70001, .is_tied = true});
  auto options = small_options();
  options.max_slots = 1, options.max_context = 32;
  expect_same(model, options, [](Executor& executor, Outcome& outcome) {
    outcome = run_prompt(executor, {3, 69999, 40000, 0, 32000}, 3);
  });
}

TEST(VulkanForms, MatricesOfIntegers) {
  ZRT_NEED_VULKAN();
  const auto device = open_new_device();
  ASSERT_TRUE(device);
  if (!device->info().has_matrices) GTEST_SKIP() << device->info().name << " has no int8 matrices";
  EXPECT_EQ(find_matrix_difference(*device).value_or("an error"), "");
}

// Devices without doubles and with an fma that rounds twice are rare, so this form is run where another one would do.
TEST(VulkanForms, FmaOfIntegers) {
  ZRT_NEED_VULKAN();
  auto device = open_new_device();
  ASSERT_TRUE(device);
  EXPECT_EQ(find_difference(*device, Fma::kIntegers).value_or("an error"), "");
  device = open_new_device();
  device->use(Fma::kIntegers);
  Outcome a, b;
  const auto calls = [](Executor& executor, Outcome& outcome) { outcome = run_prompt(executor, prompt(9), 8); };
  run_both("tiny_llama_k-Q4_K_M", small_options(), calls, a, b, std::move(device));
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace zinc_rt::vulkan

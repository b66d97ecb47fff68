// Three families on every run of the tests: float weights, quantized ones, and recurrent layers with experts.
// same_bits_slow.cpp has all.
#include "same_bits.h"
#include "tests_cpp/model/tiny_bert.h"
#include "tests_cpp/model/tiny_float.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "vulkan/device/matrices.h"

namespace zinc_rt::vulkan {
namespace {

using ::testing::HasSubstr;

class SameBits : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ZRT_NEED_VULKAN(); }
};

TEST_P(SameBits, APromptInChunks) {
  expect_same(GetParam(), small_options(), prompt_in_chunks);
}

TEST_P(SameBits, BatchesOfSlots) {
  auto options = small_options();
  options.max_slots = 6;
  options.kv_pages = 8;
  expect_same(GetParam(), options, batches_of_slots);
}

TEST_P(SameBits, CachesOfIntegers) {
  auto options = small_options();
  options.kv_type = find_kv_type("i16");
  expect_same(GetParam(), options, prompt_in_chunks);
  options.max_slots = 6;
  options.kv_pages = 8;
  expect_same(GetParam(), options, batches_of_slots);
}

TEST_P(SameBits, HiddenStatesAfterEachLayer) {
  expect_same_hidden(GetParam());
}

TEST_P(SameBits, CheckpointsOfState) {
  expect_same(GetParam(), checkpoint_options(), checkpoints_of_state);
}

std::string name_of(const ::testing::TestParamInfo<const char*>& info) {
  const std::string name = info.param;
  return name.substr(0, name.find('-'));
}
INSTANTIATE_TEST_SUITE_P(Vulkan, SameBits,
                         ::testing::Values("tiny_qwen3-f16", "tiny_llama_k-Q4_K_M", "tiny_qwen35moe-f16"), name_of);

constexpr const char* kModel = "tiny_llama_k-Q4_K_M";

class Vulkan : public ::testing::Test {
 protected:
  void SetUp() override { ZRT_NEED_VULKAN(); }
};

TEST_F(Vulkan, SamplesWhatTCpuSamples) {
  expect_same(kModel, small_options(), sampling_of_all_kinds);
}

// Weights that become fixed16 while they are loaded, one matrix that does not, and activations of floats with both.
TEST_F(Vulkan, FloatMatricesHaveTheBitsOfTCpu) {
  for (const bool is_tied : {false, true}) {
    const auto model = write_tiny_float("wide", {.is_tied = is_tied});
    const auto options = small_options();
    const auto weights = open_vulkan(model, options);
    ASSERT_TRUE(weights);
    EXPECT_EQ(weights->weights().find("blk.0.attn_q.weight")->dtype, DType::kFixed16);
    EXPECT_EQ(weights->weights().find("blk.1.ffn_up.weight")->dtype, DType::kF16);
    expect_same(model, options, prompt_in_chunks);
    auto floats = options;
    floats.activations = Activations::kF32;
    expect_same(model, floats,
                [](Executor& executor, Outcome& outcome) { outcome = run_prompt(executor, prompt(20), 9); });
  }
}

// Heads that are no power of two, of other values than keys, and of more than an invocation has; windows and softcaps.
class CachesOfIntegers : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { ZRT_NEED_VULKAN(); }
};
TEST_P(CachesOfIntegers, HoldHeadsOfManySizes) {
  const TinyFloat shapes[] = {{.n_layers = 1, .head_dim = 80, .window = 24, .softcap = 3},
                              {.n_layers = 1, .head_dim = 96, .v_head_dim = 144},
                              {.n_layers = 1, .head_dim = 272, .softcap = 20}};
  auto options = small_options();
  options.kv_type = find_kv_type("i16");
  for (std::size_t i = 0; i < std::size(shapes); ++i)
    expect_same(
        write_tiny_float("heads" + std::to_string(i), shapes[i]), options,
        [](Executor& executor, Outcome& outcome) { outcome = run_prompt(executor, prompt(40), 33); },
        open_new_device({.matrices_by_hand = GetParam()}));
}
INSTANTIATE_TEST_SUITE_P(Vulkan, CachesOfIntegers, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "MatricesByHand" : "AsTheDeviceDoes");
});

TEST_F(Vulkan, HoldsWhatItsPlanSays) {
  const auto peer = open_vulkan(kModel, small_options());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->allocated_bytes(), peer->plan().allocated_bytes());
  EXPECT_EQ(peer->info().page_bytes, peer->info().kv_bytes_per_token * 16);
  EXPECT_EQ(peer->info().family, open(kModel)->info().family);
}

// A prefix that is copied to other pages, or that the host kept, serves another slot.
TEST_F(Vulkan, PagesAreCopiedReadAndWritten) {
  const auto peer = open_vulkan(kModel, small_options());
  ASSERT_TRUE(peer);
  const auto ids = prompt(20);
  const auto after = [&](std::size_t first, const std::vector<std::uint32_t>& pages) {
    TestStep input;
    append(input, ids, first, ids.size() - first, 0, pages, false);
    Outcome outcome;
    step(*peer, input, outcome);
    return outcome;
  };
  const Outcome whole = after(0, {0, 1});
  ASSERT_TRUE(peer->copy_pages(std::vector<PageCopy>{{0, 5}}));
  EXPECT_EQ(after(16, {5, 6}), whole);
  std::vector<std::byte> bytes(peer->info().page_bytes);
  ASSERT_TRUE(peer->read_pages(std::vector<std::uint32_t>{0}, bytes));
  ASSERT_TRUE(peer->write_pages(std::vector<std::uint32_t>{7}, bytes));
  EXPECT_EQ(after(16, {7, 6}), whole);
  EXPECT_THAT(peer->read_pages(std::vector<std::uint32_t>{9999}, bytes).error().message, HasSubstr("page 9999"));
  EXPECT_THAT(peer->write_pages(std::vector<std::uint32_t>{0, 1}, bytes).error().message, HasSubstr("for 2 pages"));
  EXPECT_THAT(peer->copy_pages(std::vector<PageCopy>{{0, 9999}}).error().message, HasSubstr("page 9999"));
}

TEST_F(Vulkan, RefusesByName) {
  const auto why = [](const std::string& model, const ExecutorOptions& options = small_options()) {
    const auto opened = VulkanExecutor::open_on(open_device(), model_path(model), options);
    return opened ? std::string("it opened") : opened.error().message;
  };
  EXPECT_THAT(why(write_tiny_bert("refused")),
              HasSubstr("\"bert\" is not supported by this backend; supported: llama, "));
  auto options = small_options();
  options.kv_pages = 1u << 30;
  EXPECT_THAT(why(kModel, options), HasSubstr("1073741824 pages"));
  options = small_options();
  options.kv_type = find_kv_type("k8v4");
  EXPECT_THAT(why(kModel, options), HasSubstr("has no kernels for kv_dtype k8v4; it has them for f16, f32, q8_0, i16"));
}

// Each of these must be noticed; without the fault the comparison is of equals.
TEST_F(Vulkan, TheComparisonNoticesWhatIsWrong) {
  const auto differs = [](const Faults& faults, std::optional<Fma> form = {}, const char* model = kModel) {
    auto device = open_new_device(faults);
    if (form) device->use(*form);
    Outcome a, b;
    run_both(
        model, small_options(),
        [](Executor& executor, Outcome& outcome) { outcome = run_prompt(executor, prompt(9), 8); }, a, b,
        std::move(device));
    return a.logits != b.logits;
  };
  EXPECT_FALSE(differs({}));
  EXPECT_FALSE(differs({.more_barriers = true}));
  EXPECT_FALSE(differs({.shuffled = true}));
  EXPECT_TRUE(differs({.shuffled = true, .lost_barrier = 7}));
  constexpr const char* kRecurrent = "tiny_qwen35moe-f16";
  EXPECT_FALSE(differs({.shuffled = true}, {}, kRecurrent));
  EXPECT_TRUE(differs({.shuffled = true, .lost_barrier = 11}, {}, kRecurrent));
  const auto device = open_device();
  ASSERT_TRUE(device);
  if (device->info().name.starts_with("llvmpipe")) {
    EXPECT_TRUE(differs({}, Fma::kNative)) << "there a product and a sum";
  }
}

// No driver of the tests reads such modules, so what can be said of them is: all that a type is made of comes before it,
// no integer type is there twice, and the bound is above all.
TEST(VulkanModules, MatricesGetTheTypesOfTheirElements) {
  std::uint32_t n_with_matrices = 0;
  for (const Module& module : modules()) {
    const auto code = complete_matrices(module.words);
    std::set<std::uint32_t> defined;
    std::set<std::pair<std::uint32_t, std::uint32_t>> integers;
    std::map<std::uint32_t, std::uint32_t> bits;
    bool has_matrices = false;
    for (std::size_t i = 5; i < code.size(); i += code[i] >> 16) {
      const std::uint32_t op = code[i] & 0xFFFF;
      if (op == 21) {  // OpTypeInt
        EXPECT_TRUE(integers.insert({code[i + 2], code[i + 3]}).second) << module.name;
        bits[code[i + 1]] = code[i + 2];
      }
      if (op == 4456) {  // OpTypeCooperativeMatrixKHR
        has_matrices = true;
        ASSERT_EQ(code[i] >> 16, 7u);
        for (std::size_t operand = 2; operand < 7; ++operand)
          EXPECT_TRUE(defined.contains(code[i + operand])) << module.name;
        EXPECT_TRUE(bits.at(code[i + 2]) == 8 || bits.at(code[i + 2]) == 32);
      }
      if (op >= 19 && op <= 39) defined.insert(code[i + 1]);  // types
      if (op == 43) {                                         // OpConstant
        EXPECT_TRUE(defined.contains(code[i + 1])) << module.name;
        defined.insert(code[i + 2]);
      }
    }
    for (const std::uint32_t id : defined) EXPECT_LT(id, code[3]);
    n_with_matrices += has_matrices;
    if (!has_matrices) {
      EXPECT_TRUE(std::ranges::equal(code, module.words)) << module.name;
    }
  }
  EXPECT_EQ(n_with_matrices,
            1 + 2 * std::size(kFmaForms));  // self_test_matrix; linear_matrix, flash_attn_integer_matrix
}

// Without the pass that forbids it drivers compute otherwise than written; the device is then refused.
TEST_F(Vulkan, KernelsWithoutNoContractionAreNoticed) {
  const auto device = Device::open(*test_device(), {.undecorated = true});
  ASSERT_TRUE(device);
  const auto difference = find_difference(**device, open_device()->fma());
  ASSERT_TRUE(difference);
  EXPECT_THAT(*difference, HasSubstr(" differs in "));
}

}  // namespace
}  // namespace zinc_rt::vulkan

// What a step of T-CUDA asks of the driver, counted by the driver of the tests (tests_cpp/cuda_sim); with another one
// the tests are skipped.
#include <map>
#include <string>

#include "driver_counts.h"
#include "model_fixture.h"
#include "ring/registry.h"

namespace zinc_rt {
namespace {

class DriverCalls : public ::testing::Test {
 protected:
  void SetUp() override {
    ZRT_NEED_SHARED_FIXTURES();
    if (!ring::find_tier("t_cuda")) GTEST_SKIP() << "no tier t_cuda here";
    calls = find_count<CallCount>("cuda_sim_calls");
    launches = find_count<LaunchCount>("cuda_sim_launches");
    if (calls == nullptr || launches == nullptr) GTEST_SKIP() << "NVIDIA's driver counts neither calls nor launches";
  }
  // max_context 0: that of small_options.
  static std::unique_ptr<RingExecutor> open_on_device(const std::string& model, std::uint32_t max_context = 0) {
    auto options = small_options();
    options.tier = "t_cuda";
    if (max_context > 0) options.max_context = max_context;
    return open(model, options);
  }

  CallCount calls = nullptr;
  LaunchCount launches = nullptr;
};

// A token of each of n_slots, with somebody who reads the logits of the first n_wanted, as the engine always has one.
void decode(RingExecutor& executor, std::size_t at, std::size_t n_slots, std::size_t n_wanted = 0) {
  TestStep input;
  for (std::size_t slot = 0; slot < n_slots; ++slot) {
    append(input, prompt(40), at, 1, slot, pages_from(static_cast<std::uint32_t>(8 * slot)));
    input.outputs.back().wants_logits = slot < n_wanted;
  }
  std::size_t n_given = 0;
  input.on_logits = [&](std::uint32_t, std::span<const float> logits) {
    n_given += logits.size() / executor.config().vocab_size;
  };
  StepOutput output;
  const auto status = executor.step(input.view(), output);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(n_given, n_wanted);
}

// A step like one before binds the thread to the device, which stays within the process, and launches one graph.
TEST_F(DriverCalls, AStepIsOneLaunch) {
  const auto executor = open_on_device("qwen35moe-Q8_0");
  ASSERT_NE(executor, nullptr);
  decode(*executor, 0, 3);
  const unsigned long before = calls();
  for (std::size_t i = 1; i <= 20; ++i) decode(*executor, i, 3);
  EXPECT_EQ(calls() - before, 2 * 20u);
  decode(*executor, 21, 3, 2);
  EXPECT_GT(calls() - before, 2 * 21u);  // it can tell: logits that are wanted are copied
}

// LOGPROBS runs in steps with a row that wants it, and only then. Its results are there without a copy.
TEST_F(DriverCalls, LogprobsAreOneLaunchMore) {
  const auto executor = open_on_device("llama_k-Q4_K_M");
  ASSERT_NE(executor, nullptr);
  ASSERT_TRUE(executor->info().has_logprobs);
  std::vector<std::uint32_t> given;
  const auto decode_one = [&](std::size_t at, std::initializer_list<bool> rows) {
    TestStep input;
    std::size_t slot = 0;
    for (const bool is_wanted : rows) {
      append(input, prompt(40), at, 1, slot, pages_from(static_cast<std::uint32_t>(8 * slot)));
      input.outputs.back().wants_logits = false;
      if (is_wanted) input.outputs.back().n_logprobs = 2;
      ++slot;
    }
    input.on_logprobs = [&](std::uint32_t first, std::span<const RowLogprobs> group) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        given.push_back(first + static_cast<std::uint32_t>(i));
        EXPECT_EQ(group[i].top.size(), 2u);
        EXPECT_EQ(group[i].max, group[i].top[0].logit);
        EXPECT_EQ(group[i].logit, group[i].max);  // greedy
        EXPECT_GE(group[i].sum, 1.0);
      }
    };
    StepOutput output;
    const auto status = executor->step(input.view(), output);
    ASSERT_TRUE(status) << status.error().message;
  };
  decode_one(0, {false, false, false});
  decode_one(1, {true, false, true});
  EXPECT_EQ(given, (std::vector<std::uint32_t>{0, 2}));
  const unsigned long n_calls = calls(), n_launches = launches("logprobs");
  decode_one(2, {false, false, false});
  EXPECT_EQ(launches("logprobs") - n_launches, 0u);
  decode_one(3, {false, true, true});
  EXPECT_EQ(launches("logprobs") - n_launches, 1u);
  EXPECT_EQ(calls() - n_calls, 2 * 2u);
  EXPECT_EQ(given, (std::vector<std::uint32_t>{0, 2, 1, 2}));
}

// Matrices of Q4_K, Q5_K and Q6_K, which are all of this model, meet 2 to 64 rows of x by digits of sub-scales, where
// they have rows for it; as these are few, 16 of them and 8 rows of x a workgroup. What quantizes rows brings them into
// the order of these products, but for attention and the last norm.
TEST_F(DriverCalls, LaunchesOfProductsByDigits) {
  const auto executor = open_on_device("llama_k-Q4_K_M");
  ASSERT_NE(executor, nullptr);
  for (const std::size_t n_tokens : {8u, 32u}) {
    std::map<std::string, unsigned long> before;
    for (const char* kernel : {"linear_digits_4x8", "digit_rows", "glu_quantize", "linear_8", "linear_32"})
      before[kernel] = launches(kernel);
    TestStep input;
    append(input, prompt(40), 0, n_tokens, 0, pages_from(0));
    StepOutput output;
    const auto status = executor->step(input.view(), output);
    ASSERT_TRUE(status) << status.error().message;
    const auto n = [&](const char* kernel) { return launches(kernel) - before[kernel]; };
    const auto n_layers = n("glu_quantize");
    EXPECT_GT(n_layers, 0u);
    EXPECT_EQ(n("linear_digits_4x8") > 0, n_tokens > 8);
    EXPECT_EQ(n("digit_rows"), n_tokens > 8 ? n_layers + 1 : 0);
    EXPECT_EQ(n("linear_8") + n("linear_32") > 0, n_tokens <= 8);
  }
}

// Rows are quantized by what makes them; choices are sorted by expert once a layer, for few tokens by what makes them,
// and not at all for one token. A few tokens meet gate and up, then down, by warps of their own. The norm of the next
// layer sums up a token's experts, if there are several tokens; of one token the router makes its own rows, gate and up
// leave their GLU, and down quantizes it.
TEST_F(DriverCalls, LaunchesOfLayersWithExperts) {
  const auto executor = open_on_device("qwen3moe-Q6_K");
  ASSERT_NE(executor, nullptr);
  const auto n_layers = executor->config().n_layers;
  for (const std::size_t n_tokens : {1u, 3u, 32u, 33u}) {
    std::map<std::string, unsigned long> before;
    for (const char* kernel : {"moe_gate_topk_128", "moe_gate_topk_sorted_128", "quantize", "moe_swiglu", "add",
                               "glu_quantize", "moe_group", "linear_8_by_warp", "moe_sum", "moe_sum_norm_rows",
                               "linear_4_norm", "norm_rows", "linear_1_glu", "linear_1_floats"})
      before[kernel] = launches(kernel);
    if (n_tokens < 32) {
      decode(*executor, n_tokens, n_tokens);
    } else {
      Outcome outcome;
      TestStep input;
      append(input, prompt(40), 0, n_tokens, 0, pages_from(0));
      step(*executor, input, outcome);
    }
    const auto n = [&](const char* kernel) { return launches(kernel) - before[kernel]; };
    const bool is_few = n_tokens > 1 && n_tokens <= 32;
    EXPECT_EQ(n("moe_gate_topk_128"), is_few ? 0 : n_layers);
    EXPECT_EQ(n("moe_gate_topk_sorted_128"), is_few ? n_layers : 0);
    EXPECT_EQ(n("moe_group"), n_tokens > 32 ? n_layers : 0);
    EXPECT_EQ(n("moe_sum_norm_rows"), n_tokens > 1 ? n_layers - 1 : 0);
    EXPECT_EQ(n("moe_sum"), n_tokens > 1 ? 1 : n_layers);
    EXPECT_EQ(n("linear_4_norm"), n_tokens > 1 ? 0 : n_layers);
    if (n_tokens == 1) {
      EXPECT_EQ(n("norm_rows"), 1u);  // before the head
    }
    EXPECT_EQ(n("add"), 0u);
    EXPECT_EQ(n("quantize"), 0u);
    EXPECT_EQ(n("moe_swiglu"), 0u);
    EXPECT_EQ(n("glu_quantize"), n_tokens > 1 ? n_layers : 0);
    EXPECT_EQ(n("linear_1_glu"), n_tokens > 1 ? 0 : n_layers);
    EXPECT_EQ(n("linear_1_floats"), n_tokens > 1 ? 0 : n_layers);
    if (n_tokens <= 3) {
      EXPECT_EQ(n("linear_8_by_warp"), n_tokens == 1 ? 0 : 2 * n_layers);
    }
  }
}

// A shared expert beside them multiplies x by gate and up at once, and its rows too are quantized by what makes them,
// or of one token by what reads them.
TEST_F(DriverCalls, LaunchesOfSharedExperts) {
  const auto executor = open_on_device("qwen35moe-Q8_0");
  ASSERT_NE(executor, nullptr);
  for (const std::size_t n_slots : {1u, 3u}) {
    std::map<std::string, unsigned long> before;
    for (const char* kernel : {"shared_expert", "glu", "glu_quantize", "linear_1_glu"})
      before[kernel] = launches(kernel);
    decode(*executor, n_slots, n_slots);
    const auto n = [&](const char* kernel) { return launches(kernel) - before[kernel]; };
    const auto n_layers = n("shared_expert");
    EXPECT_GT(n_layers, 0u);
    EXPECT_EQ(n("glu"), 0u);
    EXPECT_EQ(n(n_slots == 1 ? "linear_1_glu" : "glu_quantize"), 2 * n_layers);
    EXPECT_EQ(n(n_slots == 1 ? "glu_quantize" : "linear_1_glu"), 0u);
  }
}

// Attention of a token of each slot writes the cache itself where a slot has room for several chunks.
TEST_F(DriverCalls, LaunchesOfOneTokenEach) {
  for (const std::uint32_t context : {128u, 256u})
    for (const std::size_t n_slots : {1u, 2u}) {
      const auto executor = open_on_device("llama_k-Q4_0", context);
      ASSERT_NE(executor, nullptr);
      const auto layers = executor->config().n_layers;
      const auto written = launches("rope_kv_write_heads"), joined = launches("flash_attn_1_f16_64");
      decode(*executor, 0, n_slots);
      const bool is_joined = context > 128;
      EXPECT_EQ(launches("rope_kv_write_heads") - written, is_joined ? 0 : layers);
      EXPECT_EQ(launches("flash_attn_1_f16_64") - joined, is_joined ? layers : 0);
    }
}

// What shares K and V among a slot's tokens is not launched where each slot has one.
TEST_F(DriverCalls, LaunchesOfAttention) {
  const auto executor = open_on_device("qwen3moe-Q6_K", 512);
  ASSERT_NE(executor, nullptr);
  const auto n_runs = [&](auto&& step) {
    const auto of_tokens = [&] { return launches("flash_attn_f16_64") + launches("flash_attn_1_f16_64"); };
    const auto runs = launches("flash_attn_runs_f16_64"), layers = of_tokens();
    step();
    EXPECT_GT(of_tokens(), layers);
    return std::pair(launches("flash_attn_runs_f16_64") - runs, of_tokens() - layers);
  };
  EXPECT_EQ(n_runs([&] { decode(*executor, 0, 3); }).first, 0u);
  const auto [of_prompt, layers] = n_runs([&] {
    TestStep input;
    append(input, prompt(40), 1, 30, 0, pages_from(0), false);
    append(input, prompt(40), 1, 1, 1, pages_from(8));
    StepOutput output;
    ASSERT_TRUE(executor->step(input.view(), output));
  });
  EXPECT_EQ(of_prompt, layers);
}

}  // namespace
}  // namespace zinc_rt

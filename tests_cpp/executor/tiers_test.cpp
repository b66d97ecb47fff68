// Every tier that can run here against T-CPU: logits and tokens, bit for bit. Where there is none, nothing is listed.
#include <fmt/format.h>

#include "base/kv_type.h"
#include "kernels/cpu/ops.h"
#include "model/weights.h"
#include "model_fixture.h"
#include "ring/cpu/kernel_sets.h"
#include "ring/registry.h"

namespace zinc_rt {
namespace {

struct TierCase {
  std::string tier, model;
};
void PrintTo(const TierCase& c, std::ostream* out) {
  *out << c.model << " on " << c.tier;
}

std::vector<TierCase> tier_cases() {
  std::vector<TierCase> cases;
  for (const ring::Tier* tier : ring::tiers()) {
    if (tier->name == "t_cpu" || tier->name == "null" || !tier->unavailable_reason().empty()) continue;
    for (const auto& model : models()) cases.push_back({tier->name, model});
    if (!has_shared_fixtures()) continue;
    for (const auto* model : {"llama_k-Q4_0", "llama_k-Q4_1", "llama_k-Q6_K", "llama_k-Q8_0", "llama_spm-bf16",
                              "qwen3moe-Q6_K", "qwen35moe-Q8_0", "mistral-f32"})
      cases.push_back({tier->name, model});
  }
  return cases;
}

// Those that have kernels of arithmetic `fast` somewhere, and T-CPU with weights that it has some for.
std::vector<TierCase> fast_cases() {
  auto cases = tier_cases();
  for (const auto& model : own_and({"llama_spm-bf16", "llama3_tied_rope-f16", "qwen3next-f16", "gemma3-f16",
                                    "gemma4_e2b-f16", "gemma4_dense-f16", "gemma4_moe-f16", "phi3_longrope-f16",
                                    "llama_k-Q4_0", "llama_k-Q6_K", "qwen3moe-Q4_K_M"}))
    cases.push_back({"t_cpu", model});
  return cases;
}

class Tiers : public ::testing::TestWithParam<TierCase> {
 protected:
  void SetUp() override {
    // The models that need an op which some tiers have no kernel for.
    static constexpr std::pair<const char*, ir::Op> kNeeds[] = {
        {"tiny_cohere2", ir::Op::LAYER_NORM},     {"tiny_deepseek2", ir::Op::LINEAR_HEADS},
        {"tiny_mistral4", ir::Op::LINEAR_HEADS},  {"tiny_lfm2", ir::Op::MUL},
        {"tiny_granitehybrid", ir::Op::SSM_SCAN}, {"tiny_nemotron_h", ir::Op::SSM_SCAN}};
    for (const auto& [model, op] : kNeeds) {
      if (!GetParam().model.starts_with(model)) continue;
      const auto ring = (*ring::find_tier(GetParam().tier))->make_ring({.threads = 2, .cpu_kernels = {}});
      ASSERT_TRUE(ring);
      if (!(*ring)->kernels().has(op))
        GTEST_SKIP() << "no kernel of " << to_string(op) << " on " << GetParam().tier << ", which " << model
                     << " needs";
    }
  }
  // The same calls on both; what they give must be equal.
  template <class Calls>
  void expect_same(const Calls& calls, const ExecutorOptions& wanted = small_options()) {
    auto options = wanted;
    const auto cpu = open(GetParam().model, options);
    options.tier = GetParam().tier;
    const auto other = open(GetParam().model, options);
    ASSERT_TRUE(cpu && other);
    Outcome a, b;
    calls(*cpu, a);
    calls(*other, b);
    EXPECT_FALSE(a.tokens.empty());
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a, b);
  }
};

TEST_P(Tiers, APromptInChunks) {
  expect_same([](Executor& executor, Outcome& outcome) {
    for (const std::size_t chunk : {70, 33, 7, 1}) {
      const auto part = run_prompt(executor, prompt(70), chunk);
      outcome.logits.insert(outcome.logits.end(), part.logits.begin(), part.logits.end());
      outcome.tokens.insert(outcome.tokens.end(), part.tokens.begin(), part.tokens.end());
    }
  });
}

// Steps of several hundred tokens, which take other kernels: a prompt in two pieces, the second beside the tokens of
// other slots.
ExecutorOptions long_options() {
  auto options = small_options();
  options.max_context = 512;
  options.chunk_cap = 512;
  return options;
}
void run_long_prompt(Executor& executor, Outcome& outcome) {
  const auto ids = prompt(470);
  TestStep first, second;
  append(first, ids, 0, 3, 1, pages_from(32, 32), false);
  append(first, ids, 0, 7, 2, pages_from(64, 32), false);
  append(first, ids, 0, 205, 0, pages_from(0, 32), false);
  step(executor, first, outcome);
  append(second, ids, 3, 1, 1, pages_from(32, 32), false);
  append(second, ids, 205, 265, 0, pages_from(0, 32), false);
  append(second, ids, 7, 2, 2, pages_from(64, 32), false);
  step(executor, second, outcome);
}

TEST_P(Tiers, ALongPrompt) {
  expect_same(run_long_prompt, long_options());
}

// 1 less the cosine of rows of logits, on the average.
double distance(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.logits.size(), b.logits.size());
  const std::size_t n_rows = a.tokens.size(), n_vocab = a.logits.size() / n_rows;
  double sum = 0;
  for (std::size_t row = 0; row < n_rows; ++row) {
    double aa = 0, ab = 0, bb = 0;
    for (std::size_t i = row * n_vocab; i < (row + 1) * n_vocab; ++i)
      aa += double{a.logits[i]} * a.logits[i], ab += double{a.logits[i]} * b.logits[i],
          bb += double{b.logits[i]} * b.logits[i];
    sum += 1 - ab / std::sqrt(aa * bb);
  }
  return sum / static_cast<double>(n_rows);
}

// Arithmetic `fast` moves logits no further than not quantizing activations does, which with experts is far: another
// one is chosen where two are about as good.
class FastTiers : public Tiers {
 protected:
  // Whether T-CPU has products of arithmetic `fast` for some matrix of the model on this processor.
  static bool has_fast_products(const std::string& model) {
    const auto* set = ring::fast_form_of(**ring::find_kernel_set("auto"));
    const auto weights = Weights::open(model_path(model));
    return set != nullptr && weights && std::ranges::any_of(weights->all(), [&](const Tensor& tensor) {
             return tensor.n_dims > 1 && set->rows->rounds_x(tensor.dtype, act_dtype(tensor.dtype), 1 << 20);
           });
  }
};
TEST_P(FastTiers, ALongPromptInArithmeticFast) {
  auto options = long_options();
  const auto exact = open(GetParam().model, options);
  options.activations = Activations::kF32;
  const auto unquantized = open(GetParam().model, options);
  options.activations = Activations::kInt8;
  options.tier = GetParam().tier;
  options.arithmetic = Arithmetic::kFast;
  const auto fast = open(GetParam().model, options);
  ASSERT_TRUE(exact && unquantized && fast);
  if (fast->info().arithmetic != Arithmetic::kFast) GTEST_SKIP() << "this tier has no arithmetic fast here";
  if (GetParam().tier == "t_cpu" && !has_fast_products(GetParam().model))
    GTEST_SKIP() << "T-CPU has no kernels of arithmetic fast for the weights of " << GetParam().model << " here";
  Outcome outcomes[3];
  run_long_prompt(*exact, outcomes[0]);
  run_long_prompt(*unquantized, outcomes[1]);
  run_long_prompt(*fast, outcomes[2]);
  EXPECT_LT(distance(outcomes[0], outcomes[2]), distance(outcomes[0], outcomes[1]) * 2 + 0.002);
  if (GetParam().tier == "t_cpu") {
    EXPECT_EQ(outcomes[0].logits == outcomes[2].logits, GetParam().model.ends_with("-f32"))
        << "another arithmetic is used, but for F32";
  }
}

// Prompts of many slots in one step, then steps of one token a slot for more and more of them.
TEST_P(Tiers, BatchesOfSlots) {
  constexpr std::size_t kSlots = 41;
  auto options = small_options();
  options.max_slots = kSlots;
  options.max_context = 128;
  options.kv_pages = kSlots;
  options.chunk_cap = 128;
  expect_same(
      [](Executor& executor, Outcome& outcome) {
        std::vector<std::size_t> held(kSlots);
        const auto add = [&](TestStep& to, std::size_t slot, std::size_t n) {
          append(to, prompt(12, 100 + static_cast<unsigned>(slot)), held[slot], n, slot,
                 {static_cast<std::uint32_t>(kSlots - 1 - slot)}, false);
          held[slot] += n;
        };
        TestStep prefill;
        for (std::size_t slot = 0; slot < kSlots; ++slot) add(prefill, slot, 1 + slot % 5);
        step(executor, prefill, outcome);
        for (const std::size_t n : {1, 2, 3, 8, 9, 17, 41}) {
          TestStep decode;
          for (std::size_t slot = 0; slot < n; ++slot) add(decode, slot, 1);
          step(executor, decode, outcome);
        }
      },
      options);
}

// Single tokens around the border of a chunk, of slots that have room for several.
TEST_P(Tiers, TokenAfterToken) {
  auto options = small_options();
  options.max_context = 256;
  expect_same(
      [](Executor& executor, Outcome& outcome) {
        const auto ids = prompt(130);
        for (const std::size_t first : {0, 1, 2, 126, 127, 128, 129}) {
          TestStep input;
          append(input, ids, first, first == 2 ? 124 : 1, 0, pages_from(0, 16), false);
          step(executor, input, outcome);
        }
      },
      options);
}

TEST_P(Tiers, CachesOfOtherTypes) {
  for (const KvType& type : kv_types()) {
    auto options = small_options();
    options.kv_type = find_kv_type(type.name);
    if (!RingExecutor::open(model_path(GetParam().model), options)) continue;  // heads that are no whole blocks
    auto there = options;
    there.tier = GetParam().tier;
    if (const auto other = RingExecutor::open(model_path(GetParam().model), there); !other) {
      const auto why = fmt::format("tier {} has no kernels for kv_dtype {};", there.tier, type.name);
      EXPECT_NE(other.error().message.find(why), std::string::npos) << other.error().message;
      continue;
    }
    expect_same([](Executor& executor, Outcome& outcome) { outcome = run_prompt(executor, prompt(40), 9); }, options);
  }
}

TEST_P(Tiers, FloatActivationsWithoutFusion) {
  auto options = small_options();
  options.activations = Activations::kF32;
  options.fusion = "0";
  expect_same([](Executor& executor, Outcome& outcome) { outcome = run_prompt(executor, prompt(20), 9); }, options);
}

TEST_P(Tiers, SamplingOfAllKinds) {
  expect_same([](Executor& executor, Outcome& outcome) {
    const auto ids = prompt(20);
    std::vector<Sampling> kinds(7);
    for (auto& s : kinds) s.temperature = 0.9f, s.seed = 77;
    kinds[1].top_k = 20;
    kinds[2].top_p = 0.8f;
    kinds[3].min_p = 0.05f;
    kinds[4].typical_p = 0.6f;
    kinds[5].repetition_penalty = 1.3f, kinds[5].presence_penalty = 0.2f, kinds[5].frequency_penalty = 0.4f;
    kinds[6] = kinds[5], kinds[6].temperature = 0, kinds[6].top_k = 5;
    const std::vector<TokenBias> bias{{5, 3.0f}, {9, -2.0f}, {5, 0.5f}};
    const std::vector<std::int32_t> banned{1, 2, 3};
    const std::vector<std::uint32_t> mask{0xF0F0F0F0u, 0x12345678u, 0xFFFFFFFFu};
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      TestStep input;
      append(input, ids, 0, 20, 0, pages_from(0));
      input.mask = [&](std::uint32_t) { return std::span(mask); };
      for (auto& row : input.outputs) {
        row.sampling = kinds[i];
        row.sampling.seed += row.position;
        row.history = std::span(ids).first(row.position);
        row.n_prompt = row.position / 2;
        if (i % 2 == 0) row.bias = bias, row.banned = banned;
        row.is_masked = row.position % 3 == i % 3;
      }
      step(executor, input, outcome);
    }
  });
}

TEST_P(Tiers, HiddenStates) {
  auto options = small_options();
  const auto cpu = open(GetParam().model, options);
  options.tier = GetParam().tier;
  const auto other = open(GetParam().model, options);
  ASSERT_TRUE(cpu && other);
  TestStep input;
  append(input, prompt(11), 0, 11, 0, pages_from(0));
  for (int layer = -1; layer < static_cast<int>(cpu->config().n_layers); ++layer) {
    const auto a = cpu->hidden(input.view(), layer), b = other->hidden(input.view(), layer);
    ASSERT_TRUE(a && b);
    ASSERT_EQ(a->size(), b->size());
    EXPECT_EQ(std::memcmp(a->data(), b->data(), a->size() * sizeof(float)), 0) << "layer " << layer;
  }
}

std::string name_of(const ::testing::TestParamInfo<TierCase>& info) {
  auto name = info.param.tier + "_" + info.param.model;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Executor, Tiers, ::testing::ValuesIn(tier_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Executor, FastTiers, ::testing::ValuesIn(fast_cases()), name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Tiers);

}  // namespace
}  // namespace zinc_rt

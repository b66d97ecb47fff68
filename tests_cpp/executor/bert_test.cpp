// Encoders: a text has the same bits alone and among others, each token sees all of it, and steps come with whole texts.
#include <gmock/gmock.h>

#include "embedding_steps.h"
#include "ring/registry.h"
#include "tests_cpp/model/tiny_bert.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

class BertSteps : public ::testing::TestWithParam<const char*> {
 protected:
  static ExecutorOptions options() {
    auto options = small_options();
    options.pooling = find_pooling(GetParam());
    return options;
  }
  static bool is_cls() { return GetParam() == std::string("cls"); }
  // A whole text in a slot; its output row is that of its pooling.
  static void add_text(TestStep& input, const std::vector<std::int32_t>& ids, std::size_t slot) {
    const std::size_t begin = input.token_ids.size();
    append(input, ids, 0, ids.size(), slot, pages_from(static_cast<std::uint32_t>(8 * slot)), false);
    if (is_cls()) input.outputs.back().token_index = static_cast<std::uint32_t>(begin);
  }
  static std::vector<float> embed_alone(Executor& executor, const std::vector<std::int32_t>& ids,
                                        std::size_t slot = 0) {
    TestStep input;
    add_text(input, ids, slot);
    return embed(executor, std::move(input));
  }
};

TEST_P(BertSteps, NoNeighbourChangesABit) {
  for (const DType matrix : {DType::kF32, DType::kQ8_0}) {
    auto with_room = options();
    with_room.max_slots = 4;
    const auto executor = open(write_tiny_bert("executor_bert", {.matrix = matrix}), with_room);
    ASSERT_NE(executor, nullptr);
    EXPECT_TRUE(executor->info().needs_whole_texts);
    // All within a step of 128 tokens; one token alone goes through the graph of decoding.
    const std::vector<std::vector<std::int32_t>> texts{prompt(70, 2), prompt(1, 3), prompt(17, 4), prompt(40, 5)};
    std::vector<float> alone;
    TestStep together;
    for (std::size_t slot = 0; slot < texts.size(); ++slot) {
      const auto row = embed_alone(*executor, texts[slot]);
      ASSERT_EQ(row.size(), 64u);
      EXPECT_TRUE(same_bits(embed_alone(*executor, texts[slot], 3), row)) << "in another slot";
      alone.insert(alone.end(), row.begin(), row.end());
      add_text(together, texts[slot], slot);
    }
    EXPECT_TRUE(same_bits(embed(*executor, together), alone));
  }
}

TEST_P(BertSteps, NoSettingChangesABit) {
  const auto path = write_tiny_bert("executor_bert", {.matrix = DType::kQ8_0});
  const auto ids = prompt(128);
  const auto wanted = embed_alone(*open(path, options()), ids);
  for (const auto& o : other_settings(options()))
    EXPECT_TRUE(same_bits(embed_alone(*open(path, o), ids), wanted)) << o.threads;
}

TEST_P(BertSteps, QuantizedProductsAreNearThoseOfFloats) {
  const auto path = write_tiny_bert("executor_bert", {.matrix = DType::kQ8_0});
  auto o = options();
  o.activations = Activations::kF32;
  const auto ids = prompt(50);
  const auto quantized = embed_alone(*open(path, options()), ids), floats = embed_alone(*open(path, o), ids);
  double dot = 0, a = 0, b = 0;
  for (std::size_t i = 0; i < floats.size(); ++i)
    dot += double{quantized[i]} * floats[i], a += double{quantized[i]} * quantized[i],
        b += double{floats[i]} * floats[i];
  EXPECT_GT(dot / std::sqrt(a * b), 0.99);
  EXPECT_LT(dot / std::sqrt(a * b), 1.0 - 1e-12);
}

TEST_P(BertSteps, EachTokenSeesTheWholeText) {
  const auto executor = open(write_tiny_bert("executor_bert"), options());
  auto ids = prompt(100);
  TestStep input;
  add_text(input, ids, 0);
  const auto rows = executor->hidden(input.view(), 0);
  ids.back() += 1;
  TestStep changed;
  add_text(changed, ids, 0);
  const auto other = executor->hidden(changed.view(), 0);
  ASSERT_TRUE(rows && other);
  for (std::size_t t = 0; t < ids.size(); ++t)
    EXPECT_NE(0, std::memcmp(rows->data() + 64 * t, other->data() + 64 * t, 64 * sizeof(float))) << t;
}

TEST_P(BertSteps, WantTextsWhole) {
  const auto executor = open(write_tiny_bert("executor_bert"), options());
  const auto refused = [&](std::size_t first, std::size_t n, const std::function<void(TestStep&)>& change = {}) {
    TestStep input;
    append(input, prompt(128), first, n, 0, pages_from(0), false);
    if (change) change(input);
    StepOutput output;
    const auto status = executor->step(input.view(), output);
    return status ? std::string("ran") : status.error().message;
  };
  EXPECT_EQ(refused(0, 128), "ran");
  EXPECT_THAT(refused(16, 4), HasSubstr("slot 0 has 4 tokens up to position 19, 3 wanted"));
  EXPECT_THAT(refused(0, 4, [](TestStep& in) { in.positions[3] = 5; }),
              HasSubstr("slot 0 has 4 tokens up to position 5, 3 wanted"));
}

INSTANTIATE_TEST_SUITE_P(Poolings, BertSteps, ::testing::Values("mean", "cls", "last"),
                         [](const auto& info) { return std::string(info.param); });

// A pair of texts in a slot, of which the second begins at `second`.
void add_pair(TestStep& input, const std::vector<std::int32_t>& ids, std::size_t second, std::size_t slot) {
  const std::size_t begin = input.token_ids.size();
  append(input, ids, 0, ids.size(), slot, pages_from(static_cast<std::uint32_t>(8 * slot)), false);
  input.outputs.back().token_index = static_cast<std::uint32_t>(begin);
  for (std::size_t i = 0; i < ids.size(); ++i) input.token_types.push_back(i < second ? 0 : 1);
}
std::vector<float> score_alone(Executor& executor, const std::vector<std::int32_t>& ids, std::size_t second) {
  TestStep input;
  add_pair(input, ids, second, 0);
  return embed(executor, std::move(input));
}

TEST(CrossEncoderSteps, NeitherNeighbourNorSettingChangesABit) {
  for (const DType matrix : {DType::kF32, DType::kQ8_0}) {
    const auto path = write_tiny_bert("executor_rank", {.pooling = 4, .matrix = matrix, .n_labels = 1});
    auto options = small_options();
    options.max_slots = 4;
    const auto executor = open(path, options);
    ASSERT_NE(executor, nullptr);
    EXPECT_EQ(executor->info().embedding_dim, 1u);
    const std::vector<std::vector<std::int32_t>> pairs{prompt(70, 2), prompt(1, 3), prompt(17, 4), prompt(40, 5)};
    std::vector<float> alone;
    TestStep together;
    for (std::size_t slot = 0; slot < pairs.size(); ++slot) {
      const auto score = score_alone(*executor, pairs[slot], pairs[slot].size() / 2);
      ASSERT_EQ(score.size(), 1u);
      alone.push_back(score[0]);
      add_pair(together, pairs[slot], pairs[slot].size() / 2, slot);
    }
    EXPECT_TRUE(same_bits(embed(*executor, together), alone));
    for (const auto& o : other_settings(options))
      EXPECT_EQ(score_alone(*open(path, o), pairs[0], 35)[0], alone[0]) << o.threads;
  }
}

TEST(CrossEncoderSteps, TypesOfTokensCount) {
  const auto executor = open(write_tiny_bert("executor_rank", {.pooling = 4, .n_labels = 1}));
  const auto ids = prompt(40);
  EXPECT_NE(score_alone(*executor, ids, 20), score_alone(*executor, ids, 21));
  TestStep without;
  add_pair(without, ids, 40, 0);
  const auto zeros = embed(*executor, without);
  without.token_types.clear();
  EXPECT_EQ(embed(*executor, without), zeros);
  const auto refused = [&](std::vector<std::int32_t> types) {
    TestStep input;
    add_pair(input, ids, 40, 0);
    input.token_types = std::move(types);
    StepOutput output;
    const auto status = executor->step(input.view(), output);
    return status ? std::string("ran") : status.error().message;
  };
  EXPECT_THAT(refused({0, 1}), HasSubstr("40 tokens with 2 token types"));
  EXPECT_THAT(refused(std::vector<std::int32_t>(40, 2)), HasSubstr("token type 2, the model has 2"));
  EXPECT_THAT(refused(std::vector<std::int32_t>(40, -1)), HasSubstr("token type -1, the model has 2"));
}

TEST(BertSizes, AStepHasTheLongestText) {
  const auto path = write_tiny_bert("executor_bert");
  auto o = small_options();
  o.chunk_cap = 64;
  const auto refused = RingExecutor::open(path + ".gguf", o);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("chunk_cap 64 is below the context of 128 tokens, and bert computes a "
                                                 "text in one step; a chunk_cap of 128 fits"));
  o.max_context = 64;
  const auto small = open(path, o);
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(small->info().chunk_cap, 64u);
  EXPECT_EQ(open(path)->info().chunk_cap, 128u);
}

// A tier runs it with T-CPU's bits or names the op for which it has no kernel.
TEST(BertTiers, HaveTheBitsOfTCpuOrNameWhatTheyLack) {
  const auto path = write_tiny_bert("executor_bert");
  std::size_t n_tiers = 0;
  for (const ring::Tier* tier : ring::tiers()) {
    if (tier->name == "t_cpu" || tier->name == "null" || !tier->unavailable_reason().empty()) continue;
    ++n_tiers;
    for (const char* pooling : {"mean", "cls"}) {
      auto o = small_options();
      o.pooling = find_pooling(pooling);
      const auto cpu = open(path, o);
      o.tier = tier->name;
      const auto executor = RingExecutor::open(path + ".gguf", o);
      if (!executor) {
        EXPECT_EQ(executor.error().code, StatusCode::kUnavailable);
        EXPECT_THAT(executor.error().message, ::testing::ContainsRegex("no kernel for (LAYER_NORM|GELU|POOL_MEAN)"));
        continue;
      }
      const auto ids = prompt(40);
      TestStep input;
      append(input, ids, 0, ids.size(), 0, pages_from(0), false);
      if (pooling == std::string("cls")) input.outputs.back().token_index = 0;
      EXPECT_TRUE(same_bits(embed(**executor, input), embed(*cpu, input))) << tier->name << " " << pooling;
    }
  }
  if (n_tiers == 0) GTEST_SKIP() << "no tier but T-CPU here";
}

}  // namespace
}  // namespace zinc_rt

// Embeddings: what pooling gives, and that nothing but the text changes a bit of it.
#include <gmock/gmock.h>

#include "embedding_steps.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

struct PoolingCase {
  std::string model, pooling;
};
void PrintTo(const PoolingCase& c, std::ostream* out) {
  *out << c.model << ' ' << c.pooling;
}

class Embeddings : public ::testing::TestWithParam<PoolingCase> {
 protected:
  static ExecutorOptions options() {
    auto options = small_options();
    options.pooling = find_pooling(GetParam().pooling);
    return options;
  }
  static std::unique_ptr<RingExecutor> open_model(const ExecutorOptions& options) {
    return open(GetParam().model, options);
  }
};

// A text in chunks; only its last token is an output row.
std::vector<float> embed_text(Executor& executor, const std::vector<std::int32_t>& ids, std::size_t chunk,
                              std::size_t slot = 0) {
  std::vector<float> row;
  for (std::size_t first = 0; first < ids.size(); first += chunk) {
    TestStep input;
    const std::size_t n = std::min(chunk, ids.size() - first);
    append(input, ids, first, n, slot, pages_from(static_cast<std::uint32_t>(8 * slot)), false);
    if (first + n < ids.size()) input.outputs.clear();
    row = embed(executor, std::move(input));
  }
  return row;
}

TEST_P(Embeddings, NoChunkChangesABit) {
  const auto executor = open_model(options());
  const auto ids = prompt(100);
  const auto whole = embed_text(*executor, ids, 100);
  ASSERT_EQ(whole.size(), executor->config().model_dim);
  for (const std::size_t chunk : {1, 7, 16, 64})
    EXPECT_TRUE(same_bits(embed_text(*executor, ids, chunk), whole)) << "chunks of " << chunk;
  EXPECT_FALSE(same_bits(embed_text(*executor, prompt(100, 7), 100), whole));
}

TEST_P(Embeddings, NoNeighbourChangesABit) {
  const auto executor = open_model(options());
  const std::vector<std::vector<std::int32_t>> texts{prompt(40), prompt(1, 7), prompt(59, 9)};
  std::vector<float> alone;
  for (const auto& ids : texts) {
    const auto row = embed_text(*executor, ids, ids.size());
    alone.insert(alone.end(), row.begin(), row.end());
  }
  // The texts in one step; and each in two steps beside the others.
  TestStep whole, first, second;
  for (std::size_t slot = 0; slot < texts.size(); ++slot) {
    const auto& ids = texts[slot];
    const auto pages = pages_from(static_cast<std::uint32_t>(8 * slot));
    append(whole, ids, 0, ids.size(), slot, pages, false);
    if (ids.size() > 1) append(first, ids, 0, ids.size() / 2, slot, pages, false);
    append(second, ids, ids.size() / 2, ids.size() - ids.size() / 2, slot, pages, false);
  }
  first.outputs.clear();
  EXPECT_TRUE(same_bits(embed(*executor, whole), alone));
  embed(*executor, first);
  EXPECT_TRUE(same_bits(embed(*executor, second), alone));
}

TEST_P(Embeddings, NoSettingChangesABit) {
  const auto ids = prompt(33);
  const auto wanted = embed_text(*open_model(options()), ids, 33);
  for (const auto& o : other_settings(options()))
    EXPECT_TRUE(same_bits(embed_text(*open_model(o), ids, 33), wanted)) << o.threads;
}

// The final norm of rows of the residual stream, in double, pooled.
TEST_P(Embeddings, AreTheNormedRowsPooled) {
  const auto executor = open_model(options());
  const auto ids = prompt(21);
  const std::size_t d = executor->config().model_dim, n = ids.size();
  TestStep input;
  append(input, ids, 0, n, 0, pages_from(0), false);
  const auto rows = executor->hidden(input.view(), static_cast<int>(executor->config().n_layers) - 1);
  ASSERT_TRUE(rows) << rows.error().message;
  const bool has_short_conv = executor->config().short_conv_width > 0;
  const Tensor& tensor = *executor->weights().find(has_short_conv ? "token_embd_norm.weight" : "output_norm.weight");
  ASSERT_EQ(tensor.dtype, DType::kF32);
  std::vector<float> w(d);
  std::memcpy(w.data(), tensor.data.data(), d * sizeof(float));
  const bool has_layer_norm = executor->config().architecture == "cohere2";
  std::vector<double> mean(d), last(d);
  for (std::size_t t = 0; t < n; ++t) {
    double centre = 0, squares = 0;
    for (std::size_t i = 0; has_layer_norm && i < d; ++i) centre += (*rows)[t * d + i] / static_cast<double>(d);
    for (std::size_t i = 0; i < d; ++i) squares += std::pow((*rows)[t * d + i] - centre, 2.0);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(d) + executor->config().norm_eps);
    for (std::size_t i = 0; i < d; ++i) {
      last[i] = ((*rows)[t * d + i] - centre) * scale * w[i];
      mean[i] += last[i] / static_cast<double>(n);
    }
  }
  const auto& wanted = GetParam().pooling == "mean" ? mean : last;
  const auto got = embed_text(*executor, ids, n);
  for (std::size_t i = 0; i < d; ++i) ASSERT_NEAR(got[i], wanted[i], 1e-5 * (1 + std::abs(wanted[i]))) << i;
}

// The sum of a mean is recurrent state: a text goes on from a copy of it.
TEST_P(Embeddings, GoOnFromACheckpoint) {
  auto o = options();
  o.state_checkpoints = 1;
  const auto executor = open_model(o);
  const auto& c = executor->config();
  const bool has_state = GetParam().pooling == "mean" || c.ssm_inner_dim > 0 || c.short_conv_width > 0;
  EXPECT_EQ(executor->info().state_bytes_per_slot > 0, has_state);
  const auto ids = prompt(60);
  const auto wanted = embed_text(*executor, ids, 60);
  TestStep begin, end;
  append(begin, ids, 0, 32, 0, pages_from(0), false);
  begin.outputs.clear();
  embed(*executor, begin);
  ASSERT_TRUE(executor->copy_state({{{0, 3}}}));
  embed_text(*executor, prompt(50, 5), 50, 1);
  ASSERT_TRUE(executor->copy_state({{{3, 2}}}));
  append(end, ids, 32, 28, 2, pages_from(0), false);
  EXPECT_TRUE(same_bits(embed(*executor, end), wanted));
}

std::vector<PoolingCase> cases() {
  std::vector<PoolingCase> all;
  for (const auto& model : own_and({"llama_spm-f32", "llama_k-Q4_K_M", "qwen2-f32", "qwen3-Q5_K_M", "qwen3moe-Q4_K_M",
                                    "qwen35-f32", "gemma3-f16", "gemma4_dense-f16", "phi3_longrope-f16"}))
    for (const char* pooling : {"mean", "last"}) all.push_back({model, pooling});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, Embeddings, ::testing::ValuesIn(cases()), [](const auto& info) {
  auto name = info.param.model + "_" + info.param.pooling;
  std::ranges::replace(name, '-', '_');
  return name;
});

struct TierPoolingCase {
  std::string tier, model, pooling;
};
void PrintTo(const TierPoolingCase& c, std::ostream* out) {
  *out << c.model << ' ' << c.pooling << " on " << c.tier;
}

// Every tier that can run here gives T-CPU's bits, or says that it gives no embeddings.
class EmbeddingTiers : public ::testing::TestWithParam<TierPoolingCase> {};

TEST_P(EmbeddingTiers, HaveTheBitsOfTheCpu) {
  auto options = small_options();
  options.pooling = find_pooling(GetParam().pooling);
  const auto cpu = open(GetParam().model, options);
  options.tier = GetParam().tier;
  auto other = RingExecutor::open(model_path(GetParam().model), options);
  if (!other) {
    EXPECT_EQ(other.error().code, StatusCode::kUnavailable);
    EXPECT_THAT(other.error().message,
                ::testing::ContainsRegex(
                    "no kernel for (POOL_MEAN: it gives no embeddings|LAYER_NORM|LINEAR_HEADS|MUL|SSM_SCAN|"
                    "SSM_CONV1D with a bias|SSM_CONV1D without silu)"));
    GTEST_SKIP() << other.error().message;
  }
  for (const std::size_t chunk : {1, 7, 70})
    EXPECT_TRUE(same_bits(embed_text(**other, prompt(70), chunk), embed_text(*cpu, prompt(70), chunk))) << chunk;
}

std::vector<TierPoolingCase> tier_pooling_cases() {
  std::vector<TierPoolingCase> all;
  for (const ring::Tier* tier : ring::tiers()) {
    if (tier->name == "t_cpu" || tier->name == "null" || !tier->unavailable_reason().empty()) continue;
    for (const auto& model : own_and({"llama_k-Q4_K_M", "qwen35-f32"}))
      for (const char* pooling : {"mean", "last"}) all.push_back({tier->name, model, pooling});
  }
  return all;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EmbeddingTiers);
INSTANTIATE_TEST_SUITE_P(Models, EmbeddingTiers, ::testing::ValuesIn(tier_pooling_cases()), [](const auto& info) {
  auto name = info.param.tier + "_" + info.param.model + "_" + info.param.pooling;
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(Pooling, IsRefusedByName) {
  const auto refused = [](Pooling pooling) {
    auto options = small_options();
    options.pooling = pooling;
    const auto executor = RingExecutor::open(model_path("llama_spm-f32"), options);
    EXPECT_FALSE(executor);
    return executor ? std::string() : executor.error().message;
  };
  EXPECT_THAT(refused(Pooling::kRank), HasSubstr("pooling rank is not there for a causal model"));
  EXPECT_THAT(refused(Pooling::kCls), HasSubstr("pooling cls is not there for a causal model"));
}

TEST(Pooling, IsTheFilesUnlessAnotherIsAskedFor) {
  ModelConfig config;
  config.architecture = "qwen3";
  config.pooling_type = 3;
  ExecutorOptions options;
  EXPECT_EQ(choose_pooling(options, config), Pooling::kLast);
  options.pooling = Pooling::kNone;
  EXPECT_EQ(choose_pooling(options, config), Pooling::kNone);
  config.pooling_type = 4;
  EXPECT_EQ(choose_pooling(options, config), Pooling::kNone);
  options.pooling.reset();
  const auto rank = choose_pooling(options, config);
  ASSERT_FALSE(rank);
  EXPECT_THAT(rank.error().message, HasSubstr("key \"qwen3.pooling_type\": 4 (rank) is not served"));
}

}  // namespace
}  // namespace zinc_rt

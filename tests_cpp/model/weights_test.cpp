// Weights by name, and every model of the fixtures.
#include "model/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "gguf_builder.h"
#include "model/config.h"
#include "tests_cpp/base/fixtures.h"

namespace zinc_rt {
namespace {

using gguf::GgufBuilder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(Weights, BorrowWhatTheyLackAndKeepTheLenderAlive) {
  const std::string own_path = testing::TempDir() + "zrt_borrows.gguf",
                    lent_path = testing::TempDir() + "zrt_lends.gguf";
  gguf::write_file(own_path, GgufBuilder().add_tensor("a", 0, {3}, 12).build());
  gguf::write_file(lent_path, GgufBuilder().add_tensor("a", 0, {5}, 20).add_tensor("b", 0, {2}, 8).build());
  auto opened = Weights::open(own_path);
  ASSERT_TRUE(opened) << opened.error().message;
  {
    auto lender = Weights::open(lent_path);
    ASSERT_TRUE(lender) << lender.error().message;
    constexpr Loan kLoans[] = {{"a", "a"}, {"b", "b"}, {"a", "lent.a"}, {"c", "c"}};
    opened->borrow(std::make_shared<const Weights>(std::move(*lender)), kLoans);
  }
  const Weights weights = std::move(*opened);
  ASSERT_EQ(weights.all().size(), 3U);
  EXPECT_EQ(weights.infos().size(), 3U);
  EXPECT_EQ(weights.find("a")->dims[0], 3U);  // its own
  ASSERT_NE(weights.find("lent.a"), nullptr);
  EXPECT_EQ(weights.find("lent.a")->dims[0], 5U);  // the lender's
  EXPECT_EQ(weights.find("lent.a")->name, "lent.a");
  const Tensor* lent = weights.find("b");
  ASSERT_NE(lent, nullptr);
  EXPECT_EQ(lent->name, "b");
  EXPECT_EQ(lent->data.size(), 8U);
  const std::byte last = lent->data[7];
  weights.release(*lent);  // its pages come back from the lender's file
  weights.release(*weights.find("lent.a"));
  EXPECT_EQ(lent->data[7], last);
  EXPECT_TRUE(weights.is_whole());
  EXPECT_EQ(weights.find("c"), nullptr);
}

TEST(Weights, FindsAndChecksTensors) {
  const std::string path = testing::TempDir() + "zrt_weights.gguf";
  GgufBuilder builder;
  builder.add_tensor("a", 0, {3, 2}, 24).add_tensor("b", 8, {32}, 34).add_tensor("c", 0, {1}, 4);
  gguf::write_file(path, builder.build());
  auto opened = Weights::open(path);
  ASSERT_TRUE(opened) << opened.error().message;
  const Weights weights = std::move(*opened);
  ASSERT_EQ(weights.all().size(), 3U);
  EXPECT_EQ(weights.all()[1].name, "b");
  EXPECT_EQ(weights.find("none"), nullptr);
  const Tensor* a = weights.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->n_elements(), 6U);
  EXPECT_EQ(a->data.size(), 24U);
  EXPECT_EQ(a->data[23], std::byte{23});
  EXPECT_EQ(weights.require("a", {3, 2}).value(), a);
  EXPECT_EQ(weights.require("a", {3, 2, 1, 1}).value(), a);
  EXPECT_EQ(weights.require("a", {2, 3}).error().message,
            "[weights] " + path + ": tensor \"a\": needs [2, 3], [3, 2] there");
  EXPECT_FALSE(weights.require("a", {3, 2, 1, 1, 1}));
  EXPECT_EQ(weights.require("none", {4}).error().code, StatusCode::kNotFound);
  EXPECT_THAT(weights.require("none", {4, 5}).error().message, HasSubstr("\"none\": needs [4, 5], not there"));
  EXPECT_EQ(weights.total_bytes(), 62U);
  EXPECT_THAT(weights.bytes_by_dtype(), ElementsAre(Pair(DType::kF32, 28), Pair(DType::kQ8_0, 34)));
  std::filesystem::remove(path);
}

TEST(Fixtures, EveryModelOpensWithAConfigThatFitsItsTensors) {
  for (const std::string& name : own_and(models_in(shared_models()))) {
    SCOPED_TRACE(name);
    const auto weights = Weights::open(model_path(name));
    ASSERT_TRUE(weights) << weights.error().message;
    const auto config = read_config(weights->metadata(), weights->infos());
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_TRUE(weights->require("token_embd.weight", {config->model_dim, config->vocab_size}));
    // Short convolutions came with another name for the last norm.
    const char* last_norm = config->short_conv_width > 0 ? "token_embd_norm.weight" : "output_norm.weight";
    EXPECT_TRUE(weights->require(last_norm, {config->model_dim}));
    EXPECT_EQ(config->tied_embeddings, weights->find("output.weight") == nullptr);
    EXPECT_EQ(config->ffn_dim_per_layer.size(), config->n_layers);
    EXPECT_EQ(config->n_kv_heads_per_layer.size(), config->n_layers);
    // Each layer has a norm before or behind attention.
    const auto has_layer = [&](std::uint32_t layer) {
      const std::string prefix = "blk." + std::to_string(layer);
      return weights->find(prefix + ".attn_norm.weight") != nullptr ||
             weights->find(prefix + ".post_attention_norm.weight") != nullptr;
    };
    EXPECT_TRUE(has_layer(config->n_layers - 1));
    EXPECT_FALSE(has_layer(config->n_layers + config->n_mtp_layers));
    EXPECT_LE(weights->total_bytes(), weights->file_bytes());
  }
}

TEST(Fixtures, HybridsSayWhichLayersAreRecurrent) {
  const std::pair<const char*, std::vector<bool>> rows[] = {{"tiny_lfm2-f16", {true, false}},
                                                            {"tiny_granitehybrid-f16", {true, false}},
                                                            {"tiny_nemotron_h-f16", {true, false, false}},
                                                            {"tiny_qwen35-f16", {true, false}},
                                                            {"tiny_llama-f32", {false, false}}};
  for (const auto& [name, is_recurrent] : rows) {
    const auto weights = Weights::open(model_path(name));
    ASSERT_TRUE(weights) << weights.error().message;
    const auto config = read_config(weights->metadata(), weights->infos());
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->is_recurrent, is_recurrent) << name;
  }
}

}  // namespace
}  // namespace zinc_rt

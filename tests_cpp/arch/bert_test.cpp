// BERT: the graph that it writes, what it refuses, and files that contradict themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/ring/ring_executor.h"
#include "ir/op_rules.h"
#include "ir/operands.h"
#include "ir/verify.h"
#include "tests_cpp/model/tiny_bert.h"

namespace zinc_rt::arch {
namespace {

using ::testing::HasSubstr;

Result<Prepared> prepare_bert(const TinyBert& model, const std::string& pooling = "", std::uint32_t max_context = 0) {
  ExecutorOptions options;
  options.max_slots = 2;
  options.max_context = max_context;
  options.pooling = find_pooling(pooling);
  return prepare(write_tiny_bert("arch_bert", model) + ".gguf", options);
}
std::string error_of_bert(const TinyBert& model, const std::string& pooling = "", std::uint32_t max_context = 0) {
  const auto p = prepare_bert(model, pooling, max_context);
  return p ? "built" : p.error().message;
}
std::size_t n_nodes(const ir::Graph& graph, ir::Op op) {
  return std::size_t(std::ranges::count(graph.nodes(), op, &ir::Node::op));
}

TEST(Bert, LayersAreNormedAfterTheirHalvesAndSeeTheWholeText) {
  for (const char* pooling : {"mean", "cls", "last"}) {
    const auto p = prepare_bert({}, pooling);
    ASSERT_TRUE(p) << p.error().message;
    EXPECT_EQ(p->family->name, "BERT");
    EXPECT_TRUE(p->family->rope_tables(p->config, *p->weights).empty());
    for (const ir::Graph* graph : {&p->prefill, &p->decode}) {
      EXPECT_EQ(n_nodes(*graph, ir::Op::LAYER_NORM), 5u);
      EXPECT_EQ(n_nodes(*graph, ir::Op::GELU), 2u);
      EXPECT_EQ(n_nodes(*graph, ir::Op::POOL_MEAN), pooling == std::string("mean") ? 1u : 0u);
      EXPECT_EQ(n_nodes(*graph, ir::Op::ROPE) + n_nodes(*graph, ir::Op::RMS_NORM) + n_nodes(*graph, ir::Op::SAMPLE),
                0u);
      const auto ends = graph->find("request.text_ends");
      ASSERT_NE(ends, ir::kNoBuffer);
      std::size_t n_attention = 0;
      for (const ir::Node& node : graph->nodes()) {
        const bool is_attention = node.op == ir::Op::FLASH_ATTN || node.op == ir::Op::FLASH_ATTN_BATCHED;
        n_attention += is_attention ? 1 : 0;
        if (is_attention) {
          EXPECT_EQ(node.inputs[operand::FlashAttn::pos], ends);
        }
        if (node.op == ir::Op::KV_WRITE_BATCHED) {
          EXPECT_EQ(node.inputs[operand::KvWriteBatched::pos], graph->find("request.positions"));
        }
      }
      EXPECT_EQ(n_attention, 2u);
    }
    EXPECT_EQ(p->sizes.max_tokens, 128u) << "a step has the longest text";
  }
}

TEST(Bert, ACrossEncoderEndsInItsClassifier) {
  for (const bool has_dense : {true, false}) {
    const auto p = prepare_bert({.pooling = 4, .n_labels = 1, .has_dense = has_dense});
    ASSERT_TRUE(p) << p.error().message;
    EXPECT_EQ(p->graph_options.pooling, Pooling::kRank);
    for (const ir::Graph* graph : {&p->prefill, &p->decode}) {
      EXPECT_EQ(n_nodes(*graph, ir::Op::SOFTCAP), has_dense ? 1u : 0u);
      const auto scores = graph->find("out.embeddings");
      ASSERT_NE(scores, ir::kNoBuffer);
      EXPECT_EQ(graph->buffer(scores).dims[1].n, 1u);
    }
  }
  EXPECT_EQ(error_of_bert({.pooling = 4, .n_labels = 1}, "mean"), "built");
}

// Rows that a layer updates in place are quantized anew for each product after that.
TEST(Bert, UpdatedRowsAreQuantizedAgain) {
  const auto p = prepare_bert({.matrix = DType::kQ8_0});
  ASSERT_TRUE(p) << p.error().message;
  EXPECT_EQ(n_nodes(p->prefill_low, ir::Op::QUANTIZE), 8u);  // a layer: for q, k and v, the mixed rows, up, down
  const auto hidden = p->prefill_low.find("act.hidden");
  std::size_t n_writes = 0, n_writes_quantized = 0;
  for (const ir::Node& node : p->prefill_low.nodes()) {
    if (node.op == ir::Op::QUANTIZE && node.inputs[0] == hidden) n_writes_quantized = n_writes;
    if (node.op == ir::Op::LINEAR &&
        p->prefill_low.buffer(node.inputs[operand::Linear::x]).name.starts_with("act.hidden")) {
      EXPECT_EQ(n_writes_quantized, n_writes) << "stale rows";
    }
    n_writes += std::ranges::find(node.outs(), hidden) != node.outs().end() ? 1 : 0;
  }
}

TEST(Bert, NamesWhatIsNotThere) {
  EXPECT_THAT(error_of_bert({.is_causal = true}),
              HasSubstr("key bert.attention.causal is true or absent, false wanted"));
  EXPECT_THAT(error_of_bert({.is_causal = {}}), HasSubstr("key bert.attention.causal is true or absent, false wanted"));
  EXPECT_THAT(error_of_bert({.pooling = 0}), HasSubstr("it generates nothing, and the file names no pooling"));
  EXPECT_THAT(error_of_bert({}, "none"), HasSubstr("it generates nothing"));
  EXPECT_THAT(error_of_bert({.pooling = 4}), HasSubstr("pooling rank wants a tensor cls.output.weight or cls.weight"));
  EXPECT_THAT(error_of_bert({}, "rank"), HasSubstr("pooling rank wants a tensor cls.output.weight or cls.weight"));
  EXPECT_THAT(error_of_bert({.pooling = 4, .n_labels = 2}),
              HasSubstr("tensor \"cls.output.weight\" has shape [2, 64], [1, 64] wanted"));
  EXPECT_THAT(error_of_bert({.context = 100, .n_positions = 100}),
              HasSubstr("a context of 112 tokens, whole pages of 16, is more than the 100 positions of the file; a "
                        "max_context of 96 fits"));
  EXPECT_EQ(error_of_bert({.context = 100, .n_positions = 100}, "", 96), "built");
  EXPECT_THAT(error_of_bert({}, "", 200), HasSubstr("max_context 200 exceeds the model's context of 128 tokens"));
}

TEST(Bert, NamesBothNumbersOfAFileThatContradictsItself) {
  EXPECT_THAT(error_of_bert({.n_embedded = 319}),
              HasSubstr("says 320 tokens, tensor \"token_embd.weight\" has 319 rows"));
  EXPECT_THAT(error_of_bert({.n_positions = 127}),
              HasSubstr("tensor \"position_embd.weight\" has shape [127, 64], [128, 64] wanted"));
  EXPECT_THAT(error_of_bert({.n_types = 3}), HasSubstr("says 2 token types, tensor \"token_types.weight\" has 3 rows"));
  EXPECT_THAT(error_of_bert({.n_types = 0}), HasSubstr("says 2 token types, tensor \"token_types.weight\" has 0 rows"));
  EXPECT_EQ(error_of_bert({.n_types = 0, .type_count = 0}), "built");
  EXPECT_EQ(error_of_bert({.type_count = {}}), "built");
  EXPECT_THAT(error_of_bert({.n_heads = 5}), HasSubstr("needs a divisor of the embedding length 64, 5 there"));
  for (const char* tensor : {"token_embd_norm.bias", "position_embd.weight", "blk.1.attn_output_norm.weight",
                             "blk.0.layer_output_norm.bias", "blk.1.ffn_up.weight", "blk.0.attn_q.weight"})
    EXPECT_THAT(error_of_bert({.left_out = tensor}), HasSubstr("tensor \"" + std::string(tensor) + "\" is missing"));
}

// Any values that the config reader lets through: an error or a graph that verifies or does not, but no crash.
TEST(Bert, SurvivesAnyConfig) {
  const auto p = prepare_bert({});
  ASSERT_TRUE(p);
  std::mt19937 rng(7);
  constexpr std::uint32_t ModelConfig::* kFields[] = {
      &ModelConfig::n_layers,   &ModelConfig::model_dim,     &ModelConfig::n_heads,        &ModelConfig::head_dim,
      &ModelConfig::v_head_dim, &ModelConfig::n_token_types, &ModelConfig::context_length, &ModelConfig::vocab_size};
  constexpr std::uint32_t kValues[] = {0, 1, 2, 3, 5, 64, 255, 1024, 1u << 14, 1u << 22};
  for (int round = 0; round < 300; ++round) {
    auto config = p->config;
    for (std::uint32_t i = 0; i <= rng() % 3; ++i) config.*kFields[rng() % std::size(kFields)] = kValues[rng() % 10];
    config.n_layers = std::min(config.n_layers, 64u);
    config.n_kv_heads_per_layer.resize(config.n_layers, rng() % 3);
    config.ffn_dim_per_layer.resize(config.n_layers, kValues[rng() % 10]);
    const auto graph = p->family->build(config, *p->weights, p->graph_options);
    if (graph)
      static_cast<void>(ir::verify(*graph));
    else
      EXPECT_FALSE(graph.error().message.empty());
  }
}

}  // namespace
}  // namespace zinc_rt::arch

// Fusion and quantization: what they make of a llama graph, and what they leave alone.
#include "lower/passes.h"

#include <gmock/gmock.h>

#include "graphs.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace zinc_rt::lower {
namespace {

using Counts = std::map<std::string, std::size_t>;
using ::testing::HasSubstr;

ir::Graph graph_of(const std::string& lines) {
  const auto graph = ir::parse("graph \"g\" stage both\n" + lines);
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
  const auto status = ir::verify(*graph);
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  return *graph;
}

TEST(Fusion, EachAloneAndTogether) {
  ZRT_NEED_SHARED_FIXTURES();
  const auto p = prepared("llama_spm-f32");
  const std::size_t n = p.config.n_layers;
  const Counts plain{{"EMBED", 1},
                     {"RMS_NORM", 2 * n + 1},
                     {"LINEAR", 7 * n},
                     {"ROPE", 2 * n},
                     {"GLU", n},
                     {"KV_WRITE_BATCHED", n},
                     {"FLASH_ATTN_BATCHED", n},
                     {"ADD", 2 * n},
                     {"LM_HEAD", 1},
                     {"GATHER_ROWS", 1},
                     {"SAMPLE", 1},
                     {"STREAM_OUT", 1}};
  EXPECT_EQ(op_counts(p.prefill), plain);
  const auto with = [&](const std::string& options) {
    const auto fused = fuse(p.prefill, *parse_fusion(options));
    const auto status = ir::verify(fused);
    EXPECT_TRUE(status) << options << ": " << (status ? "" : status.error().message);
    return op_counts(fused);
  };
  const auto changed = [&](const Counts& changes) {
    Counts counts = plain;
    for (const auto& [op, count] : changes) counts[op] = count;
    std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
    return counts;
  };
  EXPECT_EQ(with("0"), plain);
  EXPECT_EQ(with("qkv"), changed({{"RMS_NORM", n + 1}, {"LINEAR", 4 * n}, {"RMS_NORM_FUSED_QKV", n}}));
  EXPECT_EQ(with("gate_up"), changed({{"RMS_NORM", n + 1}, {"LINEAR", 5 * n}, {"RMS_NORM_FUSED_MLP_GATE_UP", n}}));
  EXPECT_EQ(with("rope_kv"), changed({{"ROPE", 0}, {"KV_WRITE_BATCHED", 0}, {"RMS_NORM_FUSED_ROPE_KV_WRITE", n}}));
  EXPECT_EQ(with("residual"), changed({{"ADD", 1}, {"RMS_NORM", 2}, {"RESIDUAL_RMS_NORM", 2 * n - 1}}));
  EXPECT_EQ(with("1"), changed({{"RMS_NORM", 1},
                                {"LINEAR", 2 * n},
                                {"ROPE", 0},
                                {"KV_WRITE_BATCHED", 0},
                                {"RMS_NORM_FUSED_QKV", n},
                                {"RMS_NORM_FUSED_MLP_GATE_UP", n},
                                {"RMS_NORM_FUSED_ROPE_KV_WRITE", n}}));
  // The last norm of all is behind the gather, so the last ADD stays.
  EXPECT_EQ(with("residual,gate_up"), changed({{"ADD", n + 1},
                                               {"RMS_NORM", 2},
                                               {"LINEAR", 5 * n},
                                               {"RESIDUAL_RMS_NORM", n - 1},
                                               {"RMS_NORM_FUSED_MLP_GATE_UP", n}}));
}

TEST(Fusion, OptionsText) {
  EXPECT_EQ(to_string(*parse_fusion("1")), "qkv,gate_up,rope_kv,moe,residual");
  EXPECT_EQ(to_string(*parse_fusion("0")), "0");
  EXPECT_EQ(to_string(*parse_fusion("residual,qkv")), "qkv,residual");
  EXPECT_THAT(parse_fusion("qkv,mlp").error().message, HasSubstr("\"mlp\""));
  EXPECT_FALSE(parse_fusion("qkv,,residual"));
}

constexpr const char* kHeadNorms = R"(
buffer request.q request f32 [tokens, 64]
buffer request.k request f32 [tokens, 32]
buffer request.v request f32 [tokens, 32]
buffer model.qn weight f32 [16] tensor "qn"
buffer model.kn weight f32 [16] tensor "kn"
buffer request.pos request i32 [tokens]
buffer request.slot request i32 [tokens]
buffer request.pages request i32 [2, 4]
buffer const.rope constant f32 [64, 16]
buffer state.k state f32 [8, 16, 32]
buffer state.v state f32 [8, 16, 32]
buffer act.qn activation f32 [tokens, 64]
buffer act.kn activation f32 [tokens, 32]
buffer act.qr activation f32 [tokens, 64]
buffer act.kr activation f32 [tokens, 32]
act.qn = RMS_NORM(request.q, model.qn) {eps=1e-06, group=16} layer 0
BARRIER
act.kn = RMS_NORM(request.k, model.kn) {eps=EPS, group=16} layer 0
BARRIER
act.qr = ROPE(act.qn, request.pos, const.rope) {head_dim=16, n_rot=16, neox=1} layer 0
BARRIER
act.kr = ROPE(act.kn, request.pos, const.rope) {head_dim=16, n_rot=16, neox=1} layer 0
BARRIER
state.k, state.v = KV_WRITE_BATCHED(act.kr, request.v, request.pos, request.slot, request.pages, state.k, state.v) {head_dim=16} layer 0 inplace
BARRIER
)";

TEST(Fusion, HeadNormsJoinWhenTheirEpsIsOne) {
  std::string same = kHeadNorms, other = kHeadNorms;
  same.replace(same.find("EPS"), 3, "1e-06");
  other.replace(other.find("EPS"), 3, "1e-05");
  const auto fused = fuse(graph_of(same), {});
  EXPECT_EQ(op_counts(fused), (Counts{{"RMS_NORM_FUSED_ROPE_KV_WRITE", 1}}));
  EXPECT_EQ(ir::attr_f32(fused.nodes()[0], "eps"), 1e-6f);
  EXPECT_TRUE(ir::verify(fused));
  EXPECT_EQ(op_counts(fuse(graph_of(other), {})), op_counts(graph_of(other)));
}

TEST(Fusion, RopeOfOtherRowsThanTheCacheStaysApart) {
  std::string text = kHeadNorms;
  text.replace(text.find("EPS"), 3, "1e-06");
  for (const std::string node : {"act.qr = ROPE(act.qn, request.pos", "act.kr = ROPE(act.kn, request.pos"})
    text.replace(text.find(node), node.size(), node.substr(0, node.size() - 3) + "rows");
  text.insert(text.find("buffer act.qn"), "buffer request.rows request i32 [tokens]\n");
  EXPECT_EQ(op_counts(fuse(graph_of(text), {})), op_counts(graph_of(text)));
}

constexpr const char* kExperts = R"(
buffer request.x request f32 [tokens, 256]
buffer request.ids request i32 [tokens, 2]
buffer request.weights request f32 [tokens, 2]
buffer model.gate weight GATE [4, 256, 256] tensor "gate"
buffer model.up weight q4_k [4, 256, 256] tensor "up"
buffer model.down weight q6_k [4, 256, 256] tensor "down"
buffer state.hidden state f32 [tokens, 256]
buffer act.gate activation f32 [tokens, 512]
buffer act.up activation f32 [tokens, 512]
buffer act.glu activation f32 [tokens, 512]
buffer act.down activation f32 [tokens, 512]
buffer act.sum activation f32 [tokens, 256]
act.gate = MOE_LINEAR(request.x, model.gate, request.ids) {rows=1} layer 0
BARRIER
act.up = MOE_LINEAR(request.x, model.up, request.ids) {rows=1} layer 0
BARRIER
act.glu = MOE_SWIGLU(act.gate, act.up) {act=0} layer 0
BARRIER
act.down = MOE_LINEAR(act.glu, model.down, request.ids) {rows=2} layer 0
BARRIER
act.sum = MOE_SUM(act.down, request.ids, request.weights, _) layer 0
BARRIER
state.hidden = ADD(state.hidden, act.sum) layer 0 inplace
BARRIER
)";

TEST(Fusion, ExpertsJoinWhereTheirRowsHaveOneType) {
  const auto with = [](std::string gate, std::string stage) {
    std::string text = kExperts;
    text.replace(text.find("GATE"), 4, gate);
    const auto graph = ir::parse("graph \"g\" stage " + stage + "\n" + text);
    EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
    const auto fused = fuse(*graph, {});
    const auto quantized = quantize_activations(fused);
    EXPECT_TRUE(quantized && ir::verify(*quantized));
    return op_counts(fused);
  };
  EXPECT_EQ(with("q5_k", "prefill"),
            (Counts{{"MOE_GATE_UP", 1}, {"MOE_SWIGLU", 1}, {"MOE_LINEAR", 1}, {"MOE_SUM", 1}, {"ADD", 1}}));
  EXPECT_EQ(with("q5_k", "decode"), (Counts{{"MOE_GATE_UP", 1}, {"MOE_SWIGLU", 1}, {"MOE_DOWN_ACC", 1}}));
  EXPECT_EQ(with("q8_0", "decode"), (Counts{{"MOE_LINEAR", 2}, {"MOE_SWIGLU", 1}, {"MOE_DOWN_ACC", 1}}));
}

constexpr const char* kTwoReaders = R"(
buffer request.x request f32 [tokens, 256]
buffer model.n weight f32 [256] tensor "n"
buffer model.a weight q4_k [8, 256] tensor "a"
buffer model.b weight q6_k [8, 256] tensor "b"
buffer model.c weight q8_0 [8, 256] tensor "c"
buffer act.h activation f32 [tokens, 256]
buffer act.a activation f32 [tokens, 8]
buffer act.b activation f32 [tokens, 8]
buffer act.c activation f32 [tokens, 8]
buffer act.d activation f32 [tokens, 8]
act.h = RMS_NORM(request.x, model.n) {eps=1e-05, group=256}
BARRIER
act.a = LINEAR(act.h, model.a, _)
BARRIER
act.b = LINEAR(act.h, model.b, _)
BARRIER
act.c = LINEAR(act.h, model.c, _)
BARRIER
)";

TEST(Fusion, NotWhenSomebodyElseReadsTheNorm) {
  const std::string fourth = std::string(kTwoReaders) + "act.d = LINEAR(act.h, model.a, _)\n";
  EXPECT_EQ(op_counts(fuse(graph_of(kTwoReaders), {})), (Counts{{"RMS_NORM_FUSED_QKV", 1}}));
  EXPECT_EQ(op_counts(fuse(graph_of(fourth), {})), op_counts(graph_of(fourth)));
}

TEST(Quantize, SharedUntilTheSourceIsWrittenAgain) {
  const auto shared = quantize_activations(graph_of(kTwoReaders));
  ASSERT_TRUE(shared);
  EXPECT_TRUE(ir::verify(*shared));
  EXPECT_EQ(op_counts(*shared)["QUANTIZE"], 2u);  // one for both K-quants, one for q8_0
  EXPECT_NE(shared->find("act.h/q8a256"), ir::kNoBuffer);
  EXPECT_NE(shared->find("act.h/q8a32"), ir::kNoBuffer);
  const auto again =
      quantize_activations(graph_of(std::string(kTwoReaders) + "act.h = ADD(act.h, request.x) inplace\nBARRIER\n"
                                                               "act.d = LINEAR(act.h, model.a, _)\n"));
  ASSERT_TRUE(again);
  const auto status = ir::verify(*again);
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  EXPECT_EQ(op_counts(*again)["QUANTIZE"], 3u);
  EXPECT_NE(again->find("act.h/q8a256/1"), ir::kNoBuffer);
}

// Whatever stands between the node that writes the rows and the one that wants them quantized.
TEST(Quantize, StandsBehindWhatWritesTheRows) {
  const auto graph = quantize_activations(graph_of(R"(
buffer request.x request f32 [tokens, 256]
buffer model.n weight f32 [256] tensor "n"
buffer model.a weight f32 [8, 256] tensor "a"
buffer model.b weight q6_k [8, 256] tensor "b"
buffer act.h activation f32 [tokens, 256]
buffer act.a activation f32 [tokens, 8]
buffer act.b activation f32 [tokens, 8]
act.h = RMS_NORM(request.x, model.n) {eps=1e-05, group=256}
BARRIER
act.a = LINEAR(act.h, model.a, _)
BARRIER
act.b = LINEAR(act.h, model.b, _)
BARRIER
)"));
  ASSERT_TRUE(graph);
  std::vector<ir::Op> ops;
  for (const auto& node : graph->nodes())
    if (node.op != ir::Op::BARRIER) ops.push_back(node.op);
  EXPECT_EQ(ops, (std::vector{ir::Op::RMS_NORM, ir::Op::QUANTIZE, ir::Op::LINEAR, ir::Op::LINEAR}));
}

TEST(Quantize, FloatWeightsAndQuantizedInputsAreLeft) {
  ZRT_NEED_SHARED_FIXTURES();
  const auto p = prepared("llama_spm-f32", "0");
  EXPECT_EQ(op_counts(p.prefill_low), op_counts(p.prefill));
  const auto k = prepared("llama_k-Q4_K_M", "0");
  const std::size_t n = k.config.n_layers;
  EXPECT_EQ(op_counts(k.prefill)["QUANTIZE"], 0u);
  EXPECT_GE(op_counts(k.prefill_low)["QUANTIZE"], 4 * n + 1);  // attention in and out, ffn in and out, head
  const auto twice = quantize_activations(k.prefill_low);
  EXPECT_EQ(ir::print(*twice), ir::print(k.prefill_low));
  EXPECT_EQ(op_counts(prepared("llama_k-Q4_K_M", "0", Activations::kF32).prefill_low)["QUANTIZE"], 0u);
}

TEST(Quantize, MixedActivationTypesOfOneNodeAreRefused) {
  const auto mixed = quantize_activations(graph_of(R"(
buffer request.x request f32 [tokens, 256]
buffer model.g weight q4_k [2, 8, 256] tensor "g"
buffer model.u weight q8_0 [2, 8, 256] tensor "u"
buffer request.ids request i32 [tokens, 1]
buffer act.g activation f32 [tokens, 8]
buffer act.u activation f32 [tokens, 8]
act.g, act.u = MOE_GATE_UP(request.x, model.g, model.u, request.ids)
)"));
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, StatusCode::kUnavailable);
  EXPECT_THAT(mixed.error().message, HasSubstr("model.u"));
}

}  // namespace
}  // namespace zinc_rt::lower

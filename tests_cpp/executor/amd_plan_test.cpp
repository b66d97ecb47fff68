// What the tiers of AMD GPUs launch for a layer of real models, planned without a GPU, and what that costs by the model
// of docs/amd.md: computed, no card has run it.
#include <gmock/gmock.h>

#include "ring/amd/plan.h"
#include "tests_cpp/lower/planning.h"

namespace zinc_rt {
namespace {

using ::testing::ElementsAre;

struct AmdPlanned {
  std::vector<std::string> launches;  // "| kernel workgroups threads", with a bar in front of what waits
  std::uint64_t weight_bytes = 0;     // of whole matrices; of experts those that are chosen
  std::size_t barriers = 0;
};

// A step of `rows` tokens of a layer, each buffer in memory of its own. chosen: of experts, a token's.
AmdPlanned plan_layer(std::string_view text, std::uint32_t rows, std::uint32_t chosen = 0) {
  constexpr auto kTarget = kernel::Target::kGfx1201;
  const auto read = [](std::span<const std::byte> zrt) { return ring::read_amd_kernel(zrt, kTarget); };
  PlanningRing<ring::AmdKernel> ring(ring::make_amd_table(kTarget), read, ring::amd_join_patterns());
  const auto step = lowered(text, rows, ring);
  if (!step) return {};
  AmdPlanned planned;
  for (const ir::Buffer& buffer : step->graph.buffers())
    if (buffer.buffer_class == ir::BufferClass::kWeight)
      planned.weight_bytes += lower::buffer_bytes(buffer, {rows, rows}) / (buffer.rank == 3 ? buffer.dims[0].n : 1) *
                              (buffer.rank == 3 ? std::min(buffer.dims[0].n, rows * chosen) : 1);
  std::vector<ring::AmdLaunch> launches;
  ring::plan_submission(
      {&step->batch, 0, static_cast<std::uint32_t>(step->batch.packets.size()), {rows, rows}}, ring.loaded,
      [](const ring::Binding& binding) -> std::uint64_t { return binding.bo; }, 0, launches);
  launches.front().waits = true;  // for the layer before
  for (const auto& launch : launches) {
    planned.barriers += launch.waits ? 1 : 0;
    planned.launches.push_back(fmt::format("{}{} {}x{}x{} {}", launch.waits ? "| " : "", launch.function,
                                           launch.groups[0], launch.groups[1], launch.groups[2], launch.threads));
  }
  return planned;
}

constexpr std::string_view kLayerAttention = R"(graph "layer" stage both
buffer act.hidden activation f32 [tokens, 4096]
buffer model.an weight f32 [4096] tensor "an"
buffer model.q weight q4_k [4096, 4096] tensor "q"
buffer model.k weight q4_k [1024, 4096] tensor "k"
buffer model.v weight q6_k [1024, 4096] tensor "v"
buffer act.q activation f32 [tokens, 4096]
buffer act.k activation f32 [tokens, 1024]
buffer act.v activation f32 [tokens, 1024]
buffer act.roped activation f32 [tokens, 4096]
buffer model.qn weight f32 [128] tensor "qn"
buffer model.kn weight f32 [128] tensor "kn"
buffer request.pos request i32 [tokens]
buffer request.slot request i32 [tokens]
buffer request.rope request f32 [4096, 128]
buffer request.pages request i32 [4, 256]
buffer state.k state f16 [1024, 16, 1024]
buffer state.v state f16 [1024, 16, 1024]
buffer act.y activation f32 [tokens, 4096]
buffer act.yq activation q8a256 [tokens, 4096]
buffer model.o weight q4_k [4096, 4096] tensor "o"
buffer act.o activation f32 [tokens, 4096]
)";
constexpr std::string_view kLayerAttentionNodes =
    R"(act.q, act.k, act.v = RMS_NORM_FUSED_QKV(act.hidden, model.an, model.q, model.k, model.v, _, _, _) {eps=1e-06, quantize=1}
act.roped, state.k, state.v = RMS_NORM_FUSED_ROPE_KV_WRITE(act.q, act.k, act.v, model.qn, model.kn, request.pos, request.slot, request.rope, request.pages, state.k, state.v) {eps=1e-06, head_dim=128, n_rot=128, neox=1}
act.y = FLASH_ATTN(act.roped, state.k, state.v, request.pos, request.slot, request.pages, _) {n_heads=32, n_kv_heads=8, head_dim=128, v_head_dim=128, scale=0.088, window=0, softcap=0}
act.yq = QUANTIZE(act.y)
act.o = LINEAR(act.yq, model.o, _)
act.hidden = ADD(act.hidden, act.o) inplace
)";
// Of Qwen3-8B in Q4_K_M, where half of the matrices of v and down are Q6_K: here those.
constexpr std::string_view kLayerFeedForward = R"(buffer model.fn weight f32 [4096] tensor "fn"
buffer model.gate weight q4_k [12288, 4096] tensor "g"
buffer model.up weight q4_k [12288, 4096] tensor "u"
buffer model.down weight q6_k [4096, 12288] tensor "d"
buffer act.gate activation f32 [tokens, 12288]
buffer act.up activation f32 [tokens, 12288]
buffer act.glu activation f32 [tokens, 12288]
buffer act.gq activation q8a256 [tokens, 12288]
buffer act.d activation f32 [tokens, 4096]
)";
constexpr std::string_view kLayerFeedForwardNodes =
    R"(act.gate, act.up = RMS_NORM_FUSED_MLP_GATE_UP(act.hidden, model.fn, model.gate, model.up) {eps=1e-06, quantize=1}
act.glu = GLU(act.gate, act.up) {act=0}
act.gq = QUANTIZE(act.glu)
act.d = LINEAR(act.gq, model.down, _)
act.hidden = ADD(act.hidden, act.d) inplace
)";
std::string dense_layer() {
  return std::string(kLayerAttention) + std::string(kLayerFeedForward) + std::string(kLayerAttentionNodes) +
         std::string(kLayerFeedForwardNodes);
}

// Seconds of a step by the model: weights at 95 % of 640 GB/s, 2.5 us a barrier.
double computed_seconds(double bytes, double barriers) {
  return bytes / (0.95 * 640e9) + barriers * 2.5e-6;
}

TEST(AmdPlan, OfOneTokenOfADenseLayer) {
  const AmdPlanned planned = plan_layer(dense_layer(), 1);
  EXPECT_THAT(planned.launches,
              ElementsAre("| norm_rows 1x1x1 256", "| product_q4_k_8x1 320x1x1 128", "product_q6_k_8x1 64x1x1 128",
                          "| rope_kv_write 1x48x1 32", "| flash_attn 1x32x16 128", "| attention_merge 1x16x1 256",
                          "| product_q4_k_8x1 256x1x1 128", "| norm_rows 1x1x1 256", "| product_q4_k_8x1 1536x1x1 128",
                          "| glu_quantize 1x6x1 256", "| product_q6_k_8x1 256x1x1 128"));
  // 36 layers, then the norm, the head and the choice of a token; v and down of half of the layers are Q4_K.
  const double v_and_down = 1024.0 * 4096 + 4096.0 * 12288, head = 151936.0 * 4096 * 210 / 256;
  const double bytes = 36.0 * double(planned.weight_bytes) - 18 * v_and_down * (210 - 144) / 256 + head,
               tokens = 1 / computed_seconds(bytes, 36.0 * double(planned.barriers) + 5);
  std::printf("Qwen3-8B Q4_K_M, computed, no card: %.2f GB, %zu launches and %zu barriers a layer, %.1f tokens/s\n",
              bytes / 1e9, planned.launches.size(), planned.barriers, tokens);
  EXPECT_GE(tokens, 115.0);
}

TEST(AmdPlan, OfManyTokensOfADenseLayer) {
  EXPECT_THAT(
      plan_layer(dense_layer(), 512).launches,
      ElementsAre("| norm_rows 512x1x1 256", "| product_q4_k_tile4 40x8x1 256", "product_q6_k_tile4 8x8x1 256",
                  "| rope_kv_write 512x48x1 32", "| flash_attn 512x32x1 128", "| quantize 512x2x1 256",
                  "| product_q4_k_tile4 32x8x1 256", "| norm_rows 512x1x1 256", "| product_q4_k_tile4 192x8x1 256",
                  "| glu_quantize 512x6x1 256", "| product_q6_k_tile4 32x8x1 256"));
}

// Cells of integers, the default: attention by tiles of 16 tokens.
TEST(AmdPlan, OfManyTokensOverIntegers) {
  std::string text = dense_layer();
  for (const char* name : {"state.k", "state.v"}) {
    const std::string cells = std::string("buffer ") + name + " state f16 [1024, 16, 1024]";
    text.replace(text.find(cells), cells.size(), std::string("buffer ") + name + " state i16 [1024, 16, 1032]");
  }
  EXPECT_THAT(plan_layer(text, 512).launches, ::testing::Contains("| flash_attn_integer_tile 32x32x1 128"));
}

// Behind the attention of Qwen3-30B-A3B: a router of 128 experts, of which a token has 8.
constexpr std::string_view kLayerExperts = R"(graph "experts" stage both
buffer act.hidden activation f32 [tokens, 2048]
buffer model.fn weight f32 [2048] tensor "fn"
buffer act.x activation f32 [tokens, 2048]
buffer act.q activation q8a256 [tokens, 2048]
buffer model.router weight f32 [128, 2048] tensor "r"
buffer model.gate weight q4_k [128, 768, 2048] tensor "g"
buffer model.up weight q4_k [128, 768, 2048] tensor "u"
buffer model.down weight q6_k [128, 2048, 768] tensor "d"
buffer act.logits activation f32 [tokens, 128]
buffer act.ids activation i32 [tokens, 8]
buffer act.weights activation f32 [tokens, 8]
buffer act.gate activation f32 [tokens, 6144]
buffer act.up activation f32 [tokens, 6144]
buffer act.glu activation f32 [tokens, 6144]
buffer act.gq activation q8a256 [tokens, 6144]
act.x = RMS_NORM(act.hidden, model.fn) {eps=1e-06, group=2048}
act.q = QUANTIZE(act.x)
act.logits, act.ids, act.weights = MOE_GATE_TOPK(act.x, model.router, _, _) {n_used=8, renormalize=1, scale=1, gating=0, groups=1, groups_used=1}
act.gate, act.up = MOE_GATE_UP(act.q, model.gate, model.up, act.ids)
act.glu = MOE_SWIGLU(act.gate, act.up) {act=0}
act.gq = QUANTIZE(act.glu)
act.hidden = MOE_DOWN_ACC(act.gq, model.down, act.ids, act.weights, _, act.hidden) inplace
)";

TEST(AmdPlan, OfExperts) {
  EXPECT_THAT(plan_layer(kLayerExperts, 1, 8).launches,
              ElementsAre("| norm_rows 1x1x1 256", "| product_f32_8x1 8x1x1 128", "| moe_gate_topk 1x1x1 32",
                          "| product_q4_k_8x1 96x8x1 128", "| glu_quantize 1x3x1 256", "| product_q6_k_4x1 64x8x1 128",
                          "| choice_sum 1x8x1 256"));
  EXPECT_THAT(plan_layer(kLayerExperts, 64, 8).launches,
              ElementsAre("| norm_rows 64x1x1 256", "| product_f32_8x4 8x16x1 128", "| moe_gate_topk 64x1x1 32",
                          "| moe_items 1x1x1 256", "| product_q4_k_tile1 24x161x1 128", "| glu_quantize 64x3x1 256",
                          "| moe_items 1x1x1 256", "| product_q6_k_tile1 32x161x1 128", "| choice_sum 64x8x1 256"));
}

// Formats that this tier has not are refused by their names, and no other tier takes their place.
TEST(AmdPlan, RefusesWeightsWithoutKernelsByTheirType) {
  for (const DType type : {DType::kNVFP4, DType::kIQ3_S, DType::kIQ3_XXS, DType::kIQ2_S, DType::kIQ2_XS,
                           DType::kIQ2_XXS, DType::kTQ2_0, DType::kTQ1_0, DType::kIQ1_S, DType::kIQ1_M}) {
    const auto graph = ir::parse(fmt::format(R"(graph "product" stage both
buffer act.x activation {1} [tokens, 256]
buffer model.w weight {0} [16, 256] tensor "output.weight"
buffer act.y activation f32 [tokens, 16]
act.y = LINEAR(act.x, model.w, _)
)",
                                             to_string(type), to_string(act_dtype(type))));
    ASSERT_TRUE(graph);
    PlanningRing<ring::AmdKernel> ring(
        ring::make_amd_table(kernel::Target::kGfx1201),
        [](std::span<const std::byte> zrt) { return ring::read_amd_kernel(zrt, kernel::Target::kGfx1201); });
    lower::KernelCache cache;
    const auto batch = lower::lower(
        *graph, ring, [](ir::BufferId) -> Result<lower::Location> { return lower::Location{{1, 0, 64}, 64}; }, cache);
    ASSERT_FALSE(batch);
    EXPECT_EQ(
        batch.error().message,
        fmt::format("[lower] the tier has no kernel for LINEAR of type {} (tensor output.weight)", to_string(type)));
  }
}

}  // namespace
}  // namespace zinc_rt

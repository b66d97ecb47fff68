// What T-CUDA launches, planned without a GPU: graphs of a few ops at the shapes of real models, lowered as an engine
// does, and the kernels, grids and scratch memory that come of it.
#include <gmock/gmock.h>

#include "ring/cuda/plan/kernels.h"
#include "tests_cpp/lower/planning.h"

namespace zinc_rt {
namespace {

using ring::DeviceProfile;

// The profile's thresholds as they are.
DeviceProfile h200(bool fast = false) {
  DeviceProfile profile;
  profile.multiprocessors = 132;
  profile.most_shared = 227u << 10;
  profile.has_wgmma = true;
  profile.is_fast = fast;
  return profile;
}

struct Planned {
  std::vector<std::string> launches;  // "image/function grid threads +shared bytes"
  std::uint64_t scratch_bytes = 0;
};

// A step of `rows` tokens, each buffer in memory of its own. positions: StepDims::n_positions.
Planned plan(std::string_view text, std::uint32_t rows, const DeviceProfile& device = h200(),
             std::uint32_t positions = 0) {
  PlanningRing<ring::LoadedKernel> ring(ring::make_cuda_table(), ring::read_kernel, ring::cuda_join_patterns());
  const auto step = lowered(text, rows, ring);
  if (!step) return {};
  const ring::PacketBatch& batch = step->batch;
  const ring::StepDims bucket{rows, rows, positions};
  std::vector<ring::OpCall> calls;
  for (const ring::Packet& packet : batch.packets) calls.push_back(call_of(batch, packet, ring.loaded, bucket));
  const auto part = plan_part(batch, 0, calls, device);
  Planned planned{{}, part.scratch_bytes};
  for (const ring::Launch& launch : part.launches)
    planned.launches.push_back(fmt::format("{}/{} {}x{}x{} {} +{}", launch.image, launch.function, launch.grid[0],
                                           launch.grid[1], launch.grid[2], launch.block, launch.shared));
  return planned;
}

// QUANTIZE and LINEAR with the sum behind it, as down and the output projection are.
std::string product_text(std::string_view type, std::string_view act, int rows_of_w, int k) {
  return fmt::format(R"(graph "product" stage both
buffer act.x activation f32 [tokens, {3}]
buffer act.q activation {1} [tokens, {3}]
buffer model.w weight {0} [{2}, {3}] tensor "w"
buffer act.y activation f32 [tokens, {2}]
buffer act.hidden activation f32 [tokens, {2}]
act.q = QUANTIZE(act.x)
act.y = LINEAR(act.q, model.w, _)
act.hidden = ADD(act.hidden, act.y) inplace
)",
                     type, act, rows_of_w, k);
}

// The same of float weights.
std::string float_product_text(std::string_view type, int rows_of_w, int k) {
  return fmt::format(R"(graph "product" stage both
buffer act.x activation f32 [tokens, {2}]
buffer model.w weight {0} [{1}, {2}] tensor "w"
buffer act.y activation f32 [tokens, {1}]
act.y = LINEAR(act.x, model.w, _)
)",
                     type, rows_of_w, k);
}

// Gate, up and GLU, and down's rows, of 2,048 by 6,144 values.
constexpr std::string_view kFeedForward = R"(graph "feed forward" stage both
buffer act.hidden activation f32 [tokens, 2048]
buffer model.norm weight f32 [2048] tensor "n"
buffer model.gate weight q4_k [6144, 2048] tensor "g"
buffer model.up weight q4_k [6144, 2048] tensor "u"
buffer model.down weight q6_k [2048, 6144] tensor "d"
buffer act.gate activation f32 [tokens, 6144]
buffer act.up activation f32 [tokens, 6144]
buffer act.glu activation f32 [tokens, 6144]
buffer act.q activation q8a256 [tokens, 6144]
buffer act.y activation f32 [tokens, 2048]
act.gate, act.up = RMS_NORM_FUSED_MLP_GATE_UP(act.hidden, model.norm, model.gate, model.up) {eps=1e-06, quantize=1}
act.glu = GLU(act.gate, act.up) {act=0}
act.q = QUANTIZE(act.glu)
act.y = LINEAR(act.q, model.down, _)
act.hidden = ADD(act.hidden, act.y) inplace
)";

// A router of 128 experts, of which each token has 8, and the products by gate and up.
constexpr std::string_view kExperts = R"(graph "experts" stage both
buffer act.x activation f32 [tokens, 2048]
buffer model.router weight f32 [128, 2048] tensor "r"
buffer model.gate weight q4_k [128, 768, 2048] tensor "g"
buffer model.up weight q4_k [128, 768, 2048] tensor "u"
buffer act.q activation q8a256 [tokens, 2048]
buffer act.logits activation f32 [tokens, 128]
buffer act.ids activation i32 [tokens, 8]
buffer act.weights activation f32 [tokens, 8]
buffer act.gate activation f32 [tokens, 6144]
buffer act.up activation f32 [tokens, 6144]
act.q = QUANTIZE(act.x)
act.logits, act.ids, act.weights = MOE_GATE_TOPK(act.x, model.router, _, _) {n_used=8, renormalize=1, scale=1, gating=0, groups=1, groups_used=1}
act.gate, act.up = MOE_GATE_UP(act.q, model.gate, model.up, act.ids)
)";

// 32 heads of 128 values, 8 of K and V, in contexts of 4,096 tokens; what writes the cache before, the output
// projection's rows behind.
constexpr std::string_view kAttention = R"(graph "attention" stage both
buffer act.q activation f32 [tokens, 4096]
buffer act.roped activation f32 [tokens, 4096]
buffer act.k activation f32 [tokens, 1024]
buffer act.v activation f32 [tokens, 1024]
buffer model.qn weight f32 [128] tensor "qn"
buffer model.kn weight f32 [128] tensor "kn"
buffer request.pos request i32 [tokens]
buffer request.slot request i32 [tokens]
buffer request.rope request f32 [4096, 128]
buffer request.pages request i32 [64, 256]
buffer state.k state f16 [8192, 16, 1024]
buffer state.v state f16 [8192, 16, 1024]
buffer act.y activation f32 [tokens, 4096]
buffer act.yq activation q8a256 [tokens, 4096]
act.roped, state.k, state.v = RMS_NORM_FUSED_ROPE_KV_WRITE(act.q, act.k, act.v, model.qn, model.kn, request.pos, request.slot, request.rope, request.pages, state.k, state.v) {eps=1e-06, head_dim=128, n_rot=128, neox=1}
act.y = OP(act.roped, state.k, state.v, request.pos, request.slot, request.pages, _) {n_heads=32, n_kv_heads=8, head_dim=128, v_head_dim=128, scale=0.088, window=0, softcap=0}
act.yq = QUANTIZE(act.y)
)";
// pages: of a slot. CacheText: of the cache, type and values of a token.
struct CacheText {
  std::string_view type = "f16";
  int width = 1024;
};
std::string attention_text(std::string_view op, std::string_view pages = "256", const CacheText& cache = {}) {
  std::string text(kAttention);
  const auto replace_all = [&](std::string_view from, std::string_view to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  replace_all("OP(", fmt::format("{}(", op));
  replace_all("[64, 256]", fmt::format("[64, {}]", pages));
  replace_all("state f16 [8192, 16, 1024]", fmt::format("state {} [8192, 16, {}]", cache.type, cache.width));
  return text;
}

struct PlanCase {
  const char* what;
  std::string graph;
  std::uint32_t rows;
  std::vector<std::string> launches;
  std::uint64_t scratch_bytes;
  DeviceProfile device = h200();
  std::uint32_t positions = 0;  // of the longest history; 0: not known
};
void PrintTo(const PlanCase& c, std::ostream* out) {
  *out << c.what << ", " << c.rows << " rows";
}

class CudaPlan : public ::testing::TestWithParam<PlanCase> {};

TEST_P(CudaPlan, Launches) {
  const PlanCase& c = GetParam();
  const Planned planned = plan(c.graph, c.rows, c.device, c.positions);
  EXPECT_EQ(planned.launches, c.launches);
  EXPECT_EQ(planned.scratch_bytes, c.scratch_bytes);
}

// A GPU without sm_90a code and with the shared memory of a GeForce card.
DeviceProfile geforce() {
  DeviceProfile profile;
  profile.multiprocessors = 82;
  profile.most_shared = 99u << 10;
  return profile;
}

std::vector<PlanCase> plan_cases() {
  const std::string q4k = product_text("q4_k", "q8a256", 4096, 4096), q80 = product_text("q8_0", "q8a32", 4096, 4096),
                    fixed16 = product_text("fixed16", "q16a256", 2048, 2048),
                    bf16 = float_product_text("bf16", 2048, 2048), decode = attention_text("FLASH_ATTN"),
                    prefill = attention_text("FLASH_ATTN_BATCHED");
  return {
      {"Q4_K", q4k, 1, {"linear.q4_k/linear_1_floats 256x1x1 288 +38144"}, 0},
      {"Q4_K",
       q4k,
       16,
       {"quantize/quantize 16x2x1 256 +0", "digit_rows/digit_rows 16x4x1 32 +0",
        "linear_digits.q4_k/linear_digits_2x16 128x1x1 768 +214784"},
       74752},
      {"Q4_K",
       q4k,
       64,
       {"quantize/quantize 64x2x1 256 +0", "digit_rows/digit_rows 16x16x1 32 +0",
        "linear_digits.q4_k/linear_digits_32 64x2x1 768 +231168"},
       299008},
      {"Q4_K",
       q4k,
       2048,
       {"quantize/quantize 2048x2x1 256 +0", "digit_rows/digit_rows 16x512x1 32 +0",
        "linear_digits.q4_k/linear_digits_128 132x1x1 384 +226560"},
       9568256},
      {"Q4_K on a GeForce", q4k, 1, {"linear.q4_k/linear_1_floats 246x1x1 288 +38144"}, 0, geforce()},
      {"Q4_K on a GeForce",
       q4k,
       64,
       {"quantize/quantize 64x2x1 256 +0", "linear.q4_k/linear_tile_32 128x1x1 256 +50688"},
       0,
       geforce()},
      {"Q4_K, fast",
       q4k,
       256,
       {"quantize/quantize 256x2x1 256 +0", "bf16_rows/bf16_rows_q8a256 256x1x1 128 +0",
        "linear_wgmma.q4_k/linear_wgmma_128_128 2x32x1 384 +169216"},
       2097152,
       h200(true)},
      {"Q8_0", q80, 1, {"linear.q8_0/linear_1_floats 256x1x1 288 +70912"}, 0},
      {"Q8_0", q80, 16, {"quantize/quantize 16x2x1 256 +0", "linear.q8_0/linear_16 256x1x1 320 +90112"}, 0},
      {"Q8_0", q80, 2048, {"quantize/quantize 2048x2x1 256 +0", "linear.q8_0/linear_tile_128 32x16x1 512 +159744"}, 0},
      {"FIXED16", fixed16, 1, {"linear_fixed_row.fixed16/linear_row_floats 256x1x1 256 +4640"}, 0},
      {"FIXED16",
       fixed16,
       4,
       {"quantize/quantize 4x1x1 256 +0", "digit_rows/fixed_rows 8x1x1 32 +0",
        "linear_digits.fixed16/linear_digits_4x8 128x1x1 768 +212736"},
       33024},
      {"FIXED16",
       fixed16,
       16,
       {"quantize/quantize 16x1x1 256 +0", "digit_rows/fixed_rows 8x4x1 32 +0",
        "linear_digits.fixed16/linear_digits_4x16 128x1x1 640 +217088"},
       66048},
      {"FIXED16",
       fixed16,
       64,
       {"quantize/quantize 64x1x1 256 +0", "digit_rows/fixed_rows 8x16x1 32 +0",
        "linear_digits.fixed16/linear_digits_2x32 64x2x1 640 +229376"},
       264192},
      {"FIXED16",
       fixed16,
       2048,
       {"quantize/quantize 2048x1x1 256 +0", "digit_rows/fixed_rows 8x512x1 32 +0",
        "linear_fixed.fixed16/linear_fixed_128 132x1x1 384 +232096"},
       8454144},
      {"FIXED16 on a GeForce",
       fixed16,
       64,
       {"quantize/quantize 64x1x1 256 +0", "linear.fixed16/linear_tile_32 64x1x1 256 +100992"},
       0,
       geforce()},
      {"FIXED16 on a GeForce",
       fixed16,
       4,
       {"quantize/quantize 4x1x1 256 +0", "linear.fixed16/linear_tile_32 64x1x1 256 +100992"},
       0,
       geforce()},
      {"BF16", bf16, 1, {"linear.bf16/linear_4 256x1x1 256 +0"}, 0},
      {"BF16", bf16, 8, {"linear.bf16/linear_columns_8 128x1x1 256 +74576"}, 0},
      {"BF16", bf16, 64, {"linear.bf16/linear_columns_16 32x4x1 256 +203520"}, 0},
      {"BF16, fast",
       bf16,
       64,
       {"bf16_rows/bf16_rows_f32 64x1x1 128 +0", "linear_wgmma.bf16/linear_wgmma_128_128 1x16x1 384 +197888"},
       524288,
       h200(true)},
      {"feed forward",
       std::string(kFeedForward),
       1,
       {"linear.q4_k/linear_1_norm_glu 264x1x1 288 +78720", "linear.q6_k/linear_1_floats 128x1x1 288 +55040"},
       0},
      {"feed forward",
       std::string(kFeedForward),
       4,
       {"rms_norm/norm_rows 4x1x1 512 +8256", "linear_digits.q4_k/linear_digits_2x8 132x1x1 768 +182784",
        "quantize/glu_quantize 4x6x1 128 +230912", "linear_digits.q6_k/linear_digits_4x8 128x1x1 768 +224000"},
       56064},
      {"feed forward",
       std::string(kFeedForward),
       256,
       {"rms_norm/norm_rows 256x1x1 512 +8256", "linear_digits.q4_k/linear_digits_64 33x4x1 640 +226304",
        "quantize/glu_quantize 256x6x1 128 +0", "linear_digits.q6_k/linear_digits_64 32x4x1 640 +218112"},
       1794048},
      {"feed forward",
       std::string(kFeedForward),
       1024,
       {"rms_norm/norm_rows 1024x1x1 512 +8256", "linear_digits.q4_k/linear_digits_128 132x1x1 384 +226560",
        "quantize/glu_quantize 1024x6x1 128 +0", "linear_digits.q6_k/linear_digits_128 128x1x1 384 +194816"},
       7176192},
      {"experts",
       std::string(kExperts),
       1,
       {"quantize/quantize 1x1x1 256 +0", "linear.f32/linear_4 16x1x1 256 +0",
        "moe_gate_topk/moe_gate_topk_128 1x1x1 32 +0", "linear.q4_k/linear_1_of_2 264x1x1 288 +76288"},
       0},
      {"experts",
       std::string(kExperts),
       8,
       {"quantize/quantize 8x1x1 256 +0", "linear.f32/linear_columns_8 16x1x1 256 +70088",
        "moe_gate_topk/moe_gate_topk_sorted_128 1x1x1 256 +1288", "linear.q4_k/linear_8_by_warp 396x1x1 256 +55296"},
       1280},
      {"experts",
       std::string(kExperts),
       512,
       {"quantize/quantize 512x1x1 256 +0", "linear.f32/linear_columns_16 4x32x1 256 +167616",
        "moe_gate_topk/moe_gate_topk_128 512x1x1 32 +0", "moe_gate_topk/moe_group 1x1x1 1024 +1032",
        "digit_rows/digit_rows_of_items 8x161x1 256 +0", "linear_digits.q4_k/linear_digits_128 132x1x1 384 +226560"},
       48158720},
      {"attention of decoding slots",
       decode,
       1,
       {"flash_attn_staged/flash_attn_1_f16_128 1x8x32 256 +71680", "flash_attn/flash_attn_merge_few 1x16x1 256 +0"},
       540672},
      {"attention of decoding slots",
       decode,
       16,
       {"flash_attn_staged/flash_attn_1_f16_128 16x8x5 256 +71680", "flash_attn/flash_attn_merge_few 16x16x1 256 +0"},
       8650752},
      {"attention of decoding slots in 32k",
       attention_text("FLASH_ATTN", "2048"),
       1,
       {"flash_attn_staged/flash_attn_1_f16_128 1x8x66 256 +71680", "flash_attn/flash_attn_merge 1x16x1 256 +200704"},
       4325376},
      {"attention of decoding slots in 32k behind 1,000",
       attention_text("FLASH_ATTN", "2048"),
       1,
       {"flash_attn_staged/flash_attn_1_f16_128 1x8x8 256 +71680", "flash_attn/flash_attn_merge_few 1x16x1 256 +0"},
       135168,
       h200(),
       1024},
      {"attention of decoding slots over integers in 32k behind 1,000",
       attention_text("FLASH_ATTN", "2048", {"i16", 1032}),
       1,
       {"flash_attn_integer/flash_attn_1_i16_4_128 1x8x8 128 +1040", "flash_attn/flash_attn_merge_few 1x16x1 256 +0"},
       135168,
       h200(),
       1024},
      {"attention of decoding slots in 32k on a GeForce",
       attention_text("FLASH_ATTN", "2048"),
       1,
       {"flash_attn_staged/flash_attn_1_f16_128 1x8x41 256 +71680",
        "flash_attn/flash_attn_merge_small 1x16x1 256 +69632"},
       4325376,
       geforce()},
      {"attention of prompts",
       prefill,
       64,
       {"kv_write_batched/rope_kv_write_heads 64x11x1 128 +0", "flash_attn_staged/flash_attn_f16_128 64x8x2 256 +69632",
        "flash_attn_runs/flash_attn_runs_f16_128 528x1x1 128 +102400",
        "flash_attn/flash_attn_merge_few 64x16x1 256 +0"},
       34603008},
      {"attention of prompts",
       prefill,
       512,
       {"kv_write_batched/rope_kv_write_heads 512x11x1 128 +0",
        "flash_attn_tile/flash_attn_tile_f16_128 8x40x1 128 +102400", "quantize/quantize 512x2x1 256 +0"},
       0},
      {"attention of prompts, fast",
       prefill,
       512,
       {"kv_write_batched/rope_kv_write_heads 512x11x1 128 +0", "flash_attn_mma/flash_attn_mma_128 8x24x1 128 +104448",
        "quantize/quantize 512x2x1 256 +0"},
       0,
       h200(true)},
  };
}
INSTANTIATE_TEST_SUITE_P(Ops, CudaPlan, ::testing::ValuesIn(plan_cases()));

// Formats that this tier has not are refused by their names, and no other tier takes their place.
TEST(CudaPlan, RefusesWeightsWithoutKernelsByTheirType) {
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
    PlanningRing<ring::LoadedKernel> ring(ring::make_cuda_table(), ring::read_kernel);
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

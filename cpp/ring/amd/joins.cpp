// Lists the patterns of packets that the AMD tiers run as one, each with the function that plans the launches. A new
// join is a row here.
#include "ring/amd/plan.h"

namespace zinc_rt::ring {

std::span<const AmdJoin> amd_joins() {
  static constexpr AmdJoin kJoins[] = {
      {"LINEAR y:p; ADD x:h y:p z:h'", plan_linear_sum},
      {"MOE_SUM z:s; ADD x:h y:s z:h'", plan_moe_sum_add},
      {"GLU|MOE_SWIGLU gate:a up:b y:row; QUANTIZE x:row y:q; keep a b", plan_glu_quantize},
      // q is kept, because some workgroups still read q while others already write quantized rows.
      {"FLASH_ATTN|FLASH_ATTN_BATCHED q:q y:row; QUANTIZE x:row y:n; keep q", plan_attention_quantize},
      {"RMS_NORM x:h w:g y:row; QUANTIZE x:row y:q; keep h", plan_norm_quantize},
      {"RESIDUAL_RMS_NORM residual:h x:p y:row sum:h'; QUANTIZE x:row y:q; keep p h'", plan_norm_quantize},
  };
  return kJoins;
}

std::span<const std::string_view> amd_join_patterns() {
  static const auto kPatterns = gpu::patterns_of(amd_joins());
  return kPatterns;
}

}  // namespace zinc_rt::ring

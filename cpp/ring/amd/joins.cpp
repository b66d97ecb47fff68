// What these tiers carry out as one: patterns of packets, and how each is planned. A new join is a row here.
#include <cstddef>

#include "kernels/common/push.h"
#include "ring/amd/plan.h"

namespace zinc_rt::ring {
namespace {

using Calls = std::span<const AmdCall>;

std::size_t linear_sum(AmdPlanner& p, Calls calls, std::size_t) {
  plan_linear_op(p, calls[0], calls[1].buffer(operand::Add::x));
  return 2;
}

// GLU and MOE_SWIGLU are planned by the names of the first.
static_assert(sizeof(push::Glu) == sizeof(push::MoeSwiglu));
static_assert(std::string_view(operand::Glu::kText) == operand::MoeSwiglu::kText);
std::size_t glu_quantize(AmdPlanner& p, Calls calls, std::size_t) {
  constexpr auto kSymbols = amd_symbols::kQuantize;
  const auto o = calls[0].operands<operand::Glu>();
  plan_glu_quantize(p,
                    {calls[1].buffer(operand::Quantize::y), calls[1].dtype(kSymbols["dtype:y"]), calls[1].rows(),
                     calls[1].dim(kSymbols["dim:k"])},
                    {o.gate, o.up, o.y, calls[0].constants<push::Glu>().act});
  return 2;
}

}  // namespace

std::span<const AmdJoin> amd_joins() {
  static constexpr AmdJoin kJoins[] = {
      {"LINEAR y:p; ADD x:h y:p z:h'", linear_sum},
      {"MOE_SUM z:s; ADD x:h y:s z:h'", plan_moe_sum_add},
      {"GLU|MOE_SWIGLU gate:a up:b y:row; QUANTIZE x:row y:q; keep a b", glu_quantize},
      // Other workgroups read q while rows are quantized.
      {"FLASH_ATTN|FLASH_ATTN_BATCHED q:q y:row; QUANTIZE x:row y:n; keep q", plan_attention_quantize},
      {"RMS_NORM x:h w:g y:row; QUANTIZE x:row y:q; keep h", plan_norm_quantize},
      {"RESIDUAL_RMS_NORM residual:h x:p y:row sum:h'; QUANTIZE x:row y:q; keep p h'", plan_norm_quantize},
  };
  return kJoins;
}

}  // namespace zinc_rt::ring

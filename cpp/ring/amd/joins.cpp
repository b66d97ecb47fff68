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

}  // namespace

std::span<const AmdJoin> amd_joins() {
  static constexpr AmdJoin kJoins[] = {
      {"LINEAR y:p; ADD x:h y:p z:h'", linear_sum},
      {"MOE_SUM z:s; ADD x:h y:s z:h'", plan_moe_sum_add},
      {"RMS_NORM x:h w:g y:row; QUANTIZE x:row y:q; keep h", plan_norm_quantize},
      {"RESIDUAL_RMS_NORM residual:h x:p y:row sum:h'; QUANTIZE x:row y:q; keep p h'", plan_norm_quantize},
  };
  return kJoins;
}

}  // namespace zinc_rt::ring

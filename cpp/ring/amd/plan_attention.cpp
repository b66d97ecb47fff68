// Attention and what is in front of it.
#include <bit>

#include "base/kv_type.h"
#include "kernels/common/push.h"
#include "ring/amd/plan.h"

namespace zinc_rt::ring {

void plan_rope_kv_write(AmdPlanner& p, const AmdCall& c) {
  constexpr auto kSymbols = amd_symbols::kRopeKvWrite;
  const std::uint32_t head_dim = c.constants<push::RmsNormFusedRopeKvWrite>().head_dim;
  const bool is_integer = find_kv_cell(c.dtype(kSymbols["dtype:kv_k"]))->layout == KvLayout::kIntegers;
  auto args = c.args;
  args.push[4] = std::bit_cast<std::uint32_t>(1.0f / static_cast<float>(head_dim));
  p.launch(is_integer ? "rope_kv_write_integer" : "rope_kv_write", 32, c.rows(),
           (c.dim(kSymbols["dim:nq"]) + 2 * c.dim(kSymbols["dim:nk"])) / head_dim, 1, args);
}

}  // namespace zinc_rt::ring

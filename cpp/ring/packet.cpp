#include "ring/packet.h"

namespace zinc_rt::ring {

std::uint32_t GridExtent::count(const StepDims& dims) const {
  std::uint32_t n = extent.n;
  if (extent.kind == ir::Dim::Kind::kTokens) n = dims.n_tokens;
  if (extent.kind == ir::Dim::Kind::kOutputs) n = dims.n_outputs;
  return n / tile + (n % tile != 0);
}

}  // namespace zinc_rt::ring

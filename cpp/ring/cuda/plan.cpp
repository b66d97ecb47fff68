#include "ring/cuda/plan.h"

#include <algorithm>

namespace zinc_rt::ring {

void* Planner::scratch(std::uint64_t bytes) {
  void* at = scratch_ + used_;
  used_ += (bytes + 255) / 256 * 256;
  most_used_ = std::max(most_used_, used_);
  return at;
}

cuda::OpArgs Planner::args(const OpCall& call, const std::vector<std::uint32_t>& symbols) const {
  cuda::OpArgs args{};
  std::ranges::copy(call.buffers, args.buffers);
  args.symbols[0] = call.rows_symbol;
  std::ranges::copy(symbols, args.symbols + 1);
  std::ranges::copy(call.push, reinterpret_cast<std::byte*>(args.push));
  args.step = header_;
  args.scratch = scratch_;
  return args;
}

}  // namespace zinc_rt::ring

#include "ring/amd/plan.h"

#include <algorithm>

namespace zinc_rt::ring {

std::uint64_t AmdPlanner::scratch(std::uint64_t bytes) {
  const std::uint64_t at = used_;
  used_ += (bytes + 255) / 256 * 256;
  most_used_ = std::max(most_used_, used_);
  return scratch_ + at;
}

std::size_t AmdPlanner::plan(std::span<const AmdCall> calls, std::span<const Joined> joins) {
  used_ = 0;
  waits_ = false;
  for (const Joined& join : joins) {
    const std::size_t n = std::min<std::size_t>(join.count, calls.size());
    if (n < join.least) continue;
    if (const std::size_t planned = amd_joins()[join.pattern].plan(*this, calls, n); planned > 0) return planned;
  }
  const AmdCall& call = calls.front();
  const AmdOp& op = *call.kernel->op;
  if (op.plan != nullptr)
    op.plan(*this, call);
  else
    launch(call.kernel->function, op.threads, call.groups[0], call.groups[1], call.groups[2], call.args);
  return 1;
}

}  // namespace zinc_rt::ring

#include "ring/amd/plan.h"

#include <algorithm>

namespace zinc_rt::ring {
namespace {

AmdCall call_of(const Submission& submission, const Packet& packet, std::span<const AmdKernel> kernels,
                const AddressOf& address) {
  const auto& batch = *submission.batch;
  AmdCall call{&kernels[packet.kernel.id - 1], {}, {}, submission.dims};
  for (std::uint32_t b = 0; b < packet.n_bindings; ++b)
    call.args.buffers[b] = address(batch.bindings[packet.first_binding + b]);
  std::ranges::copy(call.kernel->symbols, call.args.symbols);
  std::memcpy(call.args.push, batch.push.data() + packet.first_push, packet.push_bytes);
  call.args.n_tokens = submission.dims.n_tokens;
  call.args.n_outputs = submission.dims.n_outputs;
  for (int axis = 0; axis < 3; ++axis) call.groups[axis] = packet.grid[axis].count(submission.dims);
  return call;
}

}  // namespace

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

// A barrier stands in front of what waits for a packet since the last one, or takes scratch memory that such a packet
// has. What is planned as one is one packet here: edges within it are the plan's own to keep.
std::uint64_t plan_submission(const Submission& submission, std::span<const AmdKernel> kernels,
                              const AddressOf& address, std::uint64_t scratch, std::vector<AmdLaunch>& launches) {
  const auto& batch = *submission.batch;
  launches.clear();
  AmdPlanner planner(launches, scratch);
  std::vector<AmdCall> calls;
  for (std::uint32_t i = 0; i < submission.count; ++i)
    calls.push_back(call_of(submission, batch.packets[submission.first + i], kernels, address));
  const auto end = submission.first + submission.count;
  auto joined = std::ranges::lower_bound(batch.joined, submission.first, {}, &Joined::first);
  auto edge = std::ranges::lower_bound(batch.edges, submission.first, {}, &Edge::to);
  std::uint32_t since = submission.first;  // the first packet behind the last barrier
  bool is_scratch_used = false;
  for (std::uint32_t at = submission.first; at < end;) {
    while (joined != batch.joined.end() && joined->first < at) ++joined;
    const auto here = std::ranges::upper_bound(joined, batch.joined.end(), at, {}, &Joined::first);
    const std::size_t first_launch = launches.size();
    const auto n = static_cast<std::uint32_t>(
        planner.plan(std::span(calls).subspan(at - submission.first), std::span(joined, here)));
    bool waits = is_scratch_used && planner.used() > 0;
    for (; edge != batch.edges.end() && edge->to < at + n; ++edge) waits |= edge->from >= since && edge->from < at;
    if (waits && at > submission.first) {
      launches[first_launch].waits = true;
      since = at;
      is_scratch_used = false;
    }
    // A barrier of its own waits for all before it, too.
    if (std::ranges::any_of(std::span(launches).subspan(first_launch + 1), &AmdLaunch::waits))
      since = at, is_scratch_used = false;
    is_scratch_used |= planner.used() > 0;
    at += n;
  }
  return planner.most_used();
}

std::span<const std::string_view> amd_join_patterns() {
  static const std::vector<std::string_view> patterns = [] {
    std::vector<std::string_view> list;
    for (const AmdJoin& join : amd_joins()) list.push_back(join.pattern);
    return list;
  }();
  return patterns;
}

}  // namespace zinc_rt::ring

#include "ring/amd/plan.h"

#include <algorithm>

namespace zinc_rt::ring {

rdna::OpArgs AmdPlanner::args(const AmdCall& call) const {
  rdna::OpArgs args{};
  std::copy_n(call.buffers, call.n_buffers, args.buffers);
  std::copy_n(call.numbers, call.n_symbols, args.symbols);
  std::memcpy(args.push, call.push.data(), call.push.size());
  args.n_tokens = call.dims.n_tokens;
  args.n_outputs = call.dims.n_outputs;
  return args;
}

// A launch gets a barrier before it if it waits for a packet since the last barrier, or if it reuses scratch memory of
// such a packet. Packets that are planned together count as one packet here; the plan sets the barriers between their
// launches.
std::uint64_t plan_submission(const Submission& submission, std::span<const AmdKernel> kernels,
                              const AddressOf& address, std::uint64_t scratch, std::vector<AmdLaunch>& launches) {
  const auto& batch = *submission.batch;
  launches.clear();
  AmdPlanner planner(launches, scratch);
  std::vector<AmdCall> calls;
  calls.reserve(submission.count);
  for (const Packet& packet : std::span(batch.packets).subspan(submission.first, submission.count)) {
    const AmdKernel& kernel = kernels[packet.kernel.id - 1];
    calls.push_back({gpu::call_of<std::uint64_t>(batch, packet, kernel, submission.dims, address), &kernel});
  }
  auto edge = std::ranges::lower_bound(batch.edges, submission.first, {}, &Edge::to);
  std::uint32_t since = submission.first;  // the first packet after the last barrier
  bool is_scratch_used = false;
  std::size_t first_launch = 0;  // index of the first launch of the packets that are planned next
  const auto plan_op = [&](const AmdCall& call) { call.kernel->op->plan(planner, call); };
  gpu::plan_packets(planner, batch, submission.first, std::span<const AmdCall>(calls), amd_joins(), plan_op,
                    [&](std::uint32_t i, std::uint32_t n) {
                      const std::uint32_t at = submission.first + i;
                      bool waits = is_scratch_used && planner.has_scratch();
                      for (; edge != batch.edges.end() && edge->to < at + n; ++edge)
                        waits |= edge->from >= since && edge->from < at;
                      if (waits && at > submission.first) {
                        launches[first_launch].waits = true;
                        since = at;
                        is_scratch_used = false;
                      }
                      // A barrier between the launches of these packets also waits for everything before it.
                      if (std::ranges::any_of(std::span(launches).subspan(first_launch + 1), &AmdLaunch::waits))
                        since = at, is_scratch_used = false;
                      is_scratch_used |= planner.has_scratch();
                      first_launch = launches.size();
                      planner.end_packets();
                    });
  return planner.scratch_bytes();
}

}  // namespace zinc_rt::ring

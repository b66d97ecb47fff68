#include "ring/cuda/plan/plan.h"

#include <algorithm>

namespace zinc_rt::ring {

const Planner::SortedAt* Planner::find(const Sorted& sorted) const {
  return sorted == sorted_ ? &sorted_at_ : nullptr;
}

// Sorted choices are kept only if they are first in scratch memory. Otherwise everything before them would have to be
// kept too.
Planner::SortedAt Planner::make(const Sorted& sorted, std::uint32_t n_items, std::uint32_t n_choices) {
  if (scratch_.used() == kept_) scratch_.free_behind(kept_ = 0);
  known_ids_ = {};  // the new choices may overwrite the memory of those that were known
  const bool is_first = scratch_.used() == 0;
  const SortedAt at{scratch((1 + 3 * std::uint64_t{n_items}) * 4), scratch(std::uint64_t{n_choices} * 4)};
  if (is_first) sorted_ = sorted, sorted_at_ = at, kept_ = scratch_.used();
  return at;
}

cuda::OpArgs Planner::args_of_op(const OpCall& call) const {
  cuda::OpArgs args = args_without_symbols(call);
  args.set_symbols<cuda::symbol::Rows>({call.rows_symbol});
  std::copy_n(call.numbers, call.n_symbols, args.symbols + cuda::symbol::Rows::kCount);
  return args;
}

cuda::OpArgs Planner::args_without_symbols(const OpCall& call) const {
  cuda::OpArgs args{};
  std::copy_n(call.buffers, call.n_buffers, args.buffers);
  std::ranges::copy(call.push, reinterpret_cast<std::byte*>(args.push));
  args.step = header();
  args.scratch = place_of(PlaceKind::kScratch, kept_);
  args.has_places = call.has_places ? 1 : 0;
  return args;
}

PartPlan plan_part(const PacketBatch& batch, std::uint32_t first, std::span<const OpCall> calls,
                   const DeviceProfile& device) {
  PartPlan plan;
  Planner planner(device, plan.launches);
  const auto plan_op = [&](const OpCall& call) {
    std::ranges::find(cuda_ops(), call.op, &CudaOp::op)->plan(planner, call);
  };
  gpu::plan_packets(planner, batch, first, calls, cuda_joins(), plan_op, [&](std::uint32_t i, std::uint32_t n) {
    const std::uint32_t next = first + i + n;
    planner.end_packets([&](Place value) { return batch.values[number_of(value)].last_use >= next; });
  });
  plan.scratch_bytes = planner.scratch_bytes();
  return plan;
}

}  // namespace zinc_rt::ring

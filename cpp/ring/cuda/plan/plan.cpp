#include "ring/cuda/plan/plan.h"

#include <algorithm>

#include "ir/op_rules.h"

namespace zinc_rt::ring {

Place Planner::scratch(std::uint64_t bytes) {
  const Place at = place_of(PlaceKind::kScratch, used_);
  used_ += (bytes + 255) / 256 * 256;
  most_used_ = std::max(most_used_, used_);
  return at;
}

const Planner::SortedAt* Planner::find(const Sorted& sorted) const {
  return sorted == sorted_ ? &sorted_at_ : nullptr;
}

// It is kept only where it is the first in scratch memory: else all that lies in front of it would be kept too.
Planner::SortedAt Planner::make(const Sorted& sorted, std::uint32_t n_items, std::uint32_t n_choices) {
  if (used_ == kept_) used_ = kept_ = 0;
  known_ids_ = {};  // what was known may lie where this comes to lie
  const bool is_first = used_ == 0;
  const SortedAt at{scratch((1 + 3 * std::uint64_t{n_items}) * 4), scratch(std::uint64_t{n_choices} * 4)};
  if (is_first) sorted_ = sorted, sorted_at_ = at, kept_ = used_;
  return at;
}

cuda::OpArgs Planner::args_of_op(const OpCall& call) const {
  cuda::OpArgs args = args_without_symbols(call);
  args.set_symbols<cuda::symbol::Rows>({call.rows_symbol});
  std::ranges::copy(call.symbols, args.symbols + cuda::symbol::Rows::kCount);
  return args;
}

cuda::OpArgs Planner::args_without_symbols(const OpCall& call) const {
  cuda::OpArgs args{};
  std::ranges::copy(call.buffers, args.buffers);
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
  auto joined = std::ranges::lower_bound(batch.joined, first, {}, &Joined::first);
  for (std::uint32_t i = 0; i < calls.size();) {
    const auto left = static_cast<std::uint32_t>(calls.size()) - i;
    std::size_t n = 0;
    for (; joined != batch.joined.end() && joined->first <= first + i; ++joined)
      if (n == 0 && joined->first == first + i && joined->least <= left)
        n = cuda_joins()[joined->pattern].plan(planner, calls.subspan(i), std::min(joined->count, left));
    if (n == 0) find_cuda_op(calls[i].op)->plan(planner, calls[i]), n = 1;
    i += static_cast<std::uint32_t>(n);
    planner.end_packets([&](Place value) { return batch.values[number_of(value)].last_use >= first + i; });
  }
  plan.scratch_bytes = planner.scratch_bytes();
  return plan;
}

}  // namespace zinc_rt::ring

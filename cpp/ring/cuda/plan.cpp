#include "ring/cuda/plan.h"

#include <algorithm>

#include "ir/op_rules.h"

namespace zinc_rt::ring {

void* Planner::scratch(std::uint64_t bytes) {
  void* at = scratch_ + used_;
  used_ += (bytes + 255) / 256 * 256;
  most_used_ = std::max(most_used_, used_);
  return at;
}

void Planner::end_packets(std::span<const OpCall> calls) {
  for (const OpCall& call : calls)
    for (const void* written : std::span(call.buffers).subspan(ir::rule(call.op).inputs.size())) {
      if (written == known_ids_) known_ids_ = nullptr;
      if (written == sorted_.ids && !is_sorted_here_) sorted_ = {}, kept_ = 0;
    }
  is_sorted_here_ = false;
  used_ = kept_;
}

const Planner::SortedAt* Planner::find(const Sorted& sorted) const {
  return sorted == sorted_ ? &sorted_at_ : nullptr;
}

// Kept where it is the first in scratch memory: else all that lies before it would be.
Planner::SortedAt Planner::make(const Sorted& sorted, std::uint32_t n_items, std::uint32_t n_choices) {
  if (used_ == kept_) used_ = kept_ = 0;
  known_ids_ = nullptr;  // what was known may lie where this comes to lie
  const bool is_first = used_ == 0;
  const SortedAt at{static_cast<std::int32_t*>(scratch((1 + 3 * std::uint64_t{n_items}) * 4)),
                    static_cast<std::int32_t*>(scratch(std::uint64_t{n_choices} * 4))};
  if (is_first) {
    sorted_ = sorted, sorted_at_ = at, kept_ = used_, is_sorted_here_ = true;
    most_kept_ = std::max(most_kept_, kept_);
  }
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
  args.step = header_;
  args.scratch = scratch_ + kept_;
  args.has_places = call.has_places ? 1 : 0;
  return args;
}

}  // namespace zinc_rt::ring

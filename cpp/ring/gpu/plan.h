// Turns the packets of a part of a batch into launches. It chooses which packets are planned together, and by which
// plan. All GPU tiers use it.
// Thread rule: plain values; a planner belongs to one thread.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "ring/packet.h"

namespace zinc_rt::ring::gpu {

// Join is a pattern of packets that are planned together (lower/join.h explains the syntax). Its launches write
// everything that later packets read.
template <class Planner, class Call>
struct Join {
  std::string_view pattern;
  // Plans the first n of `calls`, which match the pattern; the packets after them follow in `calls`. Returns how many
  // of the n calls were planned, or 0 if the function cannot plan these rows and types.
  std::size_t (*plan)(Planner& planner, std::span<const Call> calls, std::size_t n);
};

// Returns what a tier's Ring::joins returns. REQUIRES: `joins` live as long as the process.
template <class Join>
std::vector<std::string_view> patterns_of(std::span<const Join> joins) {
  std::vector<std::string_view> list;
  for (const Join& join : joins) list.push_back(join.pattern);
  return list;
}

// Plans the calls of the packets from `first` on. The first join that accepts a packet is used. If none does,
// plan_op(call) plans the packet's op alone. After each of these it calls is_planned(i, n), because calls[i] to calls[i
// + n - 1] are planned.
template <class Planner, class Call, class PlanOp, class IsPlanned>
void plan_packets(Planner& planner, const PacketBatch& batch, std::uint32_t first, std::span<const Call> calls,
                  std::span<const Join<Planner, Call>> joins, const PlanOp& plan_op, const IsPlanned& is_planned) {
  auto joined = std::ranges::lower_bound(batch.joined, first, {}, &Joined::first);
  for (std::size_t i = 0; i < calls.size();) {
    const auto left = calls.subspan(i);
    std::size_t n = 0;
    for (; joined != batch.joined.end() && joined->first <= first + i; ++joined)
      if (n == 0 && joined->first == first + i && joined->least <= left.size())
        n = joins[joined->pattern].plan(planner, left, std::min<std::size_t>(joined->count, left.size()));
    if (n == 0) plan_op(left.front()), n = 1;
    is_planned(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(n));
    i += n;
  }
}

// Hands out the scratch memory in which the launches of packets pass data to each other, as offsets that are aligned to
// 256 bytes.
class Scratch {
 public:
  std::uint64_t take(std::uint64_t bytes) {
    const std::uint64_t at = used_;
    used_ += (bytes + 255) / 256 * 256;
    most_ = std::max(most_, used_);
    return at;
  }
  // Frees everything after the first `bytes` bytes.
  void free_behind(std::uint64_t bytes) { used_ = bytes; }
  std::uint64_t used() const { return used_; }
  std::uint64_t most() const { return most_; }  // the largest value of used() so far

 private:
  std::uint64_t used_ = 0, most_ = 0;
};

}  // namespace zinc_rt::ring::gpu

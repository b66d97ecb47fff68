// From the packets of a part of a batch to launches: which packets are planned together, and by which plan.
// Thread rule: plain values; a planner is one thread's.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "ring/packet.h"

namespace zinc_rt::ring::gpu {

// A pattern of packets that are planned as one (lower/join.h says how patterns are written). The launches write all that
// later packets read.
template <class Planner, class Call>
struct Join {
  std::string_view pattern;
  // The first n of `calls` match; the packets behind them follow. Returns how many of the n it has planned. 0: it does
  // not take these rows and types, and has planned nothing.
  std::size_t (*plan)(Planner& planner, std::span<const Call> calls, std::size_t n);
};

// What Ring::joins gives. REQUIRES: joins live as long as the process.
template <class Join>
std::vector<std::string_view> patterns_of(std::span<const Join> joins) {
  std::vector<std::string_view> list;
  for (const Join& join : joins) list.push_back(join.pattern);
  return list;
}

// Plans the calls of the packets from `first` on. At each packet the first of the joins that takes it is taken, else its
// op is planned alone: plan_op(call). After each, is_planned(i, n) hears that calls[i] to calls[i + n - 1] are planned.
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

// Memory that the launches of packets hand on within these packets: offsets, each aligned to 256 bytes.
class Scratch {
 public:
  std::uint64_t take(std::uint64_t bytes) {
    const std::uint64_t at = used_;
    used_ += (bytes + 255) / 256 * 256;
    most_ = std::max(most_, used_);
    return at;
  }
  // All behind `bytes` is free again.
  void free_behind(std::uint64_t bytes) { used_ = bytes; }
  std::uint64_t used() const { return used_; }
  std::uint64_t most() const { return most_; }  // that was ever used

 private:
  std::uint64_t used_ = 0, most_ = 0;
};

}  // namespace zinc_rt::ring::gpu

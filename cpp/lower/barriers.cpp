#include "lower/barriers.h"

#include <algorithm>

namespace zinc_rt::lower {
namespace {

bool overlap(const ring::Binding& a, const ring::Binding& b) {
  return a.bo != 0 && a.bo == b.bo && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

void elide_barriers(ring::PacketBatch& batch, const std::vector<Access>& accesses) {
  std::vector<ring::Packet> kept;
  std::vector<std::uint32_t> new_index(batch.packets.size() + 1);
  std::vector<ring::Binding> reads, writes;  // since the last kept barrier
  bool pending = false;                      // a barrier since the last kept one that has not yet proved its use
  ring::Packet barrier;
  const auto any_overlap = [](const std::vector<ring::Binding>& list, const ring::Binding& one) {
    return std::ranges::any_of(list, [&](const ring::Binding& other) { return overlap(one, other); });
  };
  for (std::size_t i = 0; i < batch.packets.size(); ++i) {
    const ring::Packet& packet = batch.packets[i];
    new_index[i] = static_cast<std::uint32_t>(kept.size());
    if (packet.kind == ring::PacketKind::kBarrier) {
      pending = true;
      barrier = packet;
      continue;
    }
    const auto bindings = std::span(batch.bindings).subspan(packet.first_binding, packet.n_bindings);
    const auto ins = bindings.first(accesses[i].n_inputs), outs = bindings.subspan(accesses[i].n_inputs);
    const bool hazard =
        std::ranges::any_of(ins, [&](const auto& b) { return any_overlap(writes, b); }) ||
        std::ranges::any_of(outs, [&](const auto& b) { return any_overlap(writes, b) || any_overlap(reads, b); });
    // A part of the batch may be submitted on its own and again, so its first packet always stands behind a barrier.
    const bool part_begins = i == batch.body_end;
    if (pending && (hazard || part_begins)) {
      kept.push_back(barrier);
      pending = false;
      reads.clear();
      writes.clear();
      if (part_begins) new_index[i] = static_cast<std::uint32_t>(kept.size());
    }
    reads.insert(reads.end(), ins.begin(), ins.end());
    writes.insert(writes.end(), outs.begin(), outs.end());
    kept.push_back(packet);
  }
  new_index[batch.packets.size()] = static_cast<std::uint32_t>(kept.size());
  for (auto& end : batch.layer_end) end = new_index[end];
  batch.body_end = new_index[batch.body_end];
  batch.packets = std::move(kept);
}

}  // namespace zinc_rt::lower

// Prints packets as text, one per line, and counts them. `zinc-rt replay` uses it to show packet logs.
// Thread rule: plain functions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "zinc_rt/status.h"

namespace zinc_rt::ring {

// Returns the name of what is at a device address: a kernel or a region.
using NameOf = std::function<std::string(std::uint64_t va)>;
// Returns the packets as text. Errors: kCorrupt for dwords that are not packets.
Result<std::string> packet_text(std::span<const std::uint32_t> packets, const NameOf& name_of);

struct PacketCounts {
  std::uint64_t dwords = 0, dispatches = 0, barriers = 0;
  // The most dwords that a dispatch takes, together with the registers that are set for it. The first dispatch is not
  // counted, because it sets all registers.
  std::uint64_t most_of_a_dispatch = 0, most_of_a_barrier = 0;
};
Result<PacketCounts> count_packets(std::span<const std::uint32_t> packets);

}  // namespace zinc_rt::ring

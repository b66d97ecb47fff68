// Runs a packet log again, on a device where memory has other addresses than in the log.
// Thread rule: one thread at a time, as for Ring.
#pragma once

#include <vector>

#include "ring/amd/packet_log.h"
#include "ring/amd/proven_device.h"
#include "ring/diagnostics.h"

namespace zinc_rt::ring {

// Returns one check per submission. A check compares the memory after the submission with the log. Errors: kCorrupt for
// a log that contradicts itself; kUnavailable for the log of another target; the errors of the device.
Result<std::vector<DeviceCheck>> replay_packets(std::span<const std::byte> log, ProvenDevice& proven);

}  // namespace zinc_rt::ring

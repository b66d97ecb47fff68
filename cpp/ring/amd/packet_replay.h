// Runs a log of packets on another device, where memory lies elsewhere.
// Thread rule: as Ring.
#pragma once

#include <vector>

#include "ring/amd/packet_log.h"
#include "ring/amd/proven_device.h"
#include "ring/diagnostics.h"

namespace zinc_rt::ring {

// One check a submission: what memory holds after it. Errors: kCorrupt for a log that does not fit together,
// kUnavailable for one of another target, those of the device.
Result<std::vector<DeviceCheck>> replay_packets(std::span<const std::byte> log, ProvenDevice& proven);

}  // namespace zinc_rt::ring

// Tests every kind of packet that the AMD tiers use, on a device and without a kernel.
// Thread rule: as Ring.
#pragma once

#include <vector>

#include "ring/amd/proven_device.h"
#include "ring/diagnostics.h"

namespace zinc_rt::ring {

// Stops at the first packet that kills the queue.
std::vector<DeviceCheck> check_packets(ProvenDevice& proven);
// Checks that a ring continues at its start after its end.
DeviceCheck check_many_buffers(ProvenDevice& proven);

}  // namespace zinc_rt::ring

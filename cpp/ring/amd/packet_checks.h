// Diagnostics: tests every kind of packet that the AMD tiers use, on a device and without a kernel.
// Thread rule: one thread at a time, as for Ring.
#pragma once

#include <vector>

#include "ring/amd/proven_device.h"
#include "ring/diagnostics.h"

namespace zinc_rt::ring {

// Returns the results of the tests. Stops at the first packet that kills the queue.
std::vector<DeviceCheck> check_packets(ProvenDevice& proven);
// Submits so many buffers that the queue's ring must continue at its start, and checks that all buffers have run.
DeviceCheck check_many_buffers(ProvenDevice& proven);

}  // namespace zinc_rt::ring

// Diagnostics: runs one of the AMD tiers' kernels on a device, and checks code, registers, arguments and the order of
// dispatches.
#pragma once

#include <vector>

#include "ring/diagnostics.h"
#include "ring/ring.h"

namespace zinc_rt::ring {

// Returns the results of the checks. Stops at the first check that kills the queue.
std::vector<DeviceCheck> check_dispatches(Ring& ring);

}  // namespace zinc_rt::ring

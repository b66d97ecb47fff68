// Lists the tiers of this build that have a ring. Thread rule: any thread.
#pragma once

#include <span>
#include <string_view>

#include "ring/tier.h"

namespace zinc_rt::ring {

// Returns all tiers of this build, highest priority first. CMake generates the list from the folders of ring/.
std::span<const Tier* const> tiers();

// Returns the tiers that this build left out although their folder exists, with the reasons.
std::span<const LeftOutTier> left_out_tiers();

// Returns the tier (the hardware back end) with this name. Only tiers that have a ring are searched;
// executor/registry.h chooses among the tiers of all executors. Errors: kUnavailable if the tier cannot run on this
// machine, with what to do about it; kInvalidArgument if this build has no such tier.
Result<const Tier*> find_tier(std::string_view name);

}  // namespace zinc_rt::ring

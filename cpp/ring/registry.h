// The tiers that were built in. Thread rule: any thread.
#pragma once

#include <span>
#include <string_view>

#include "ring/tier.h"

namespace zinc_rt::ring {

// All tiers of this build, highest priority first. The list is written by CMake from the folders of ring/.
std::span<const Tier* const> tiers();

// Tiers whose folder is there and that this build left out, and why.
std::span<const LeftOutTier> left_out_tiers();

// The tier of that name. Errors: kUnavailable where it cannot run here, with the fix; kInvalidArgument for a name that
// no tier of this build has. The choice among the tiers of all executors is executor/registry.h's.
Result<const Tier*> find_tier(std::string_view name);

}  // namespace zinc_rt::ring

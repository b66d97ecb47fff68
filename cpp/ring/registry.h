// The tiers that were built in, and the choice among them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ring/tier.h"

namespace zinc_rt::ring {

// All tiers of this build, highest priority first. The list is written by CMake from the folders of ring/.
std::span<const Tier* const> tiers();

// Names of the design that this build may lack; a forced one gives an error that says so.
std::span<const std::string_view> known_tier_names();

struct TierChoice {
  const Tier* tier = nullptr;
  std::string why;                    // why this one
  std::vector<std::string> rejected;  // "t1: no /dev/kfd ..." for each better or other tier
};

// "auto" picks the available tier of the highest priority; a name forces that tier, and one that cannot run here is an
// error with the fix, never another tier.
Result<TierChoice> pick_tier(std::string_view wanted);

}  // namespace zinc_rt::ring

// Finds tiers that have diagnostics, and prints the results of their checks.
// Thread rule: plain functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ring/registry.h"
#include "tools/command.h"

namespace zinc_rt::tools {

// Returns the tier named `wanted` or, if that is empty, all tiers with diagnostics that can run on this machine.
// Errors: kUnavailable, kInvalidArgument.
Result<std::vector<const ring::Tier*>> tiers_with_diagnostics(const std::string& wanted);
// Prints one row per check, or a JSON array. Returns true if no check has an error.
bool show_checks(std::span<const ring::DeviceCheck> checks, bool json);

}  // namespace zinc_rt::tools

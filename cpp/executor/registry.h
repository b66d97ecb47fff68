// The executors in this build, their tiers, and the choice of a tier.
// Thread rule: any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/kind.h"

namespace zinc_rt {

// All executors of this build. CMake writes the list from the folders of executor/.
std::span<const ExecutorKind* const> executor_kinds();

struct TierEntry {
  const ExecutorKind* executor = nullptr;
  ExecutorTier tier;
};
// The tiers of all executors, highest priority first.
std::vector<TierEntry> executor_tiers();

// The tiers of this build, then those of other builds and those that are planned. Naming one of the latter gives an
// error that says so.
std::vector<std::string> known_tier_names();

struct TierChoice {
  TierEntry entry;
  std::string why;                    // why this one
  std::vector<std::string> rejected;  // "t1: not in this build": why each of the others was not taken
};

// The backends of this build: kOwnBackend, then peers, including those that were left out.
std::vector<std::string> backend_names();

// Picks the tier. "auto" takes the available tier of the highest priority; with a peer's `backend`, that peer's tier. A
// name takes that tier or fails: a tier that cannot run, or does not belong to `backend`, gives an error with the fix
// and never another tier. With an empty `backend`, "auto" takes no peer. Errors: kUnavailable; kInvalidArgument for an
// unknown name.
Result<TierChoice> pick_tier(std::string_view wanted, std::string_view backend = {});

// A line of advice for people whose GPU `auto` did not take: how a peer backend would use it, or how a build would have
// one. `makers`: as gpu_makers() gives them. Empty if there is no such GPU, if the tier that was taken runs on a GPU,
// or if NVIDIA made it, because `zinc-rt tiers` has a line about that tier.
std::string advice_on_gpus(std::span<const std::string> makers, std::string_view taken_tier);

}  // namespace zinc_rt

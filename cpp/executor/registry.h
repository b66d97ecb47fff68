// Lists the executors and tiers of this build, and picks the tier on which a model is opened.
// Thread rule: any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/kind.h"

namespace zinc_rt {

// Returns all executors of this build. CMake generates the list from the folders of executor/.
std::span<const ExecutorKind* const> executor_kinds();

struct TierEntry {
  const ExecutorKind* executor = nullptr;
  ExecutorTier tier;
};
// Returns the tiers of all executors, highest priority first.
std::vector<TierEntry> executor_tiers();

// Returns the tiers of this build, then the tiers that only other builds contain, then the planned tiers. Opening a
// model on a tier of the last two kinds fails with an error that names the kind.
std::vector<std::string> known_tier_names();

struct TierChoice {
  TierEntry entry;
  std::string why;                    // why this tier was taken
  std::vector<std::string> rejected;  // why each other tier was not taken, such as "t1: not in this build"
};

// Returns the backends of this build: kOwnBackend, then peers, including those that were left out of the build.
std::vector<std::string> backend_names();

// Picks the tier. `wanted` is "auto" or the name of a tier. `backend` is empty or the name of a backend; a peer is a
// backend other than kOwnBackend (kind.h).
// - "auto" takes the available tier with the highest priority. It takes a peer's tier only if `backend` is that peer.
// - A name takes that tier or fails. No other tier is taken instead. If the tier cannot run or does not belong to
//   `backend`, the error says what to do.
// Errors: kUnavailable if no tier, or not the wanted tier, can run; kInvalidArgument for an unknown name or for a tier
// that does not belong to `backend`.
Result<TierChoice> pick_tier(std::string_view wanted, std::string_view backend = {});

// Returns a line of advice for users whose GPU `auto` did not take: how to use the GPU with a peer backend, or how to
// build this backend. `makers`: the result of gpu_makers(). Returns an empty text if there is no GPU, if the tier that
// was taken runs on a GPU, or if all GPUs are NVIDIA's, because `zinc-rt tiers` already has a line about that tier.
std::string advice_on_gpus(std::span<const std::string> makers, std::string_view taken_tier);

}  // namespace zinc_rt

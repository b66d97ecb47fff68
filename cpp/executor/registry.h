// The executors that were built in, their tiers, and the choice among these.
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

// The tiers of this build, and those that other builds have or that are planned: naming one of these gives an error
// that says so.
std::vector<std::string> known_tier_names();

struct TierChoice {
  TierEntry entry;
  std::string why;                    // why this one
  std::vector<std::string> rejected;  // "t1: not in this build": why each of the others was not taken
};

// The backends of this build: kOwnBackend, then peers, also those that were left out.
std::vector<std::string> backend_names();

// "auto" picks the available tier of the highest priority, of a peer backend its tier. A name forces that tier; where it
// cannot run, or is not of the backend that is named too, the answer is an error with the fix and never another tier. An
// empty backend is that of the tier; `auto` takes no peer then. Errors: kUnavailable, kInvalidArgument for a name that
// nobody knows.
Result<TierChoice> pick_tier(std::string_view wanted, std::string_view backend = {});

// A line for people whose machine has a GPU that no tier of `auto` took, of the makers that gpu_makers() gives: how a peer
// backend takes it, or how this build would have had one. Empty where there is nothing to say: there is no such GPU, the
// tier that was taken runs on a GPU, or NVIDIA made it, of whose tier `zinc-rt tiers` has a line.
std::string advice_on_gpus(std::span<const std::string> makers, std::string_view taken_tier);

}  // namespace zinc_rt

// Describes the executors of a build. Each executor's folder defines one constant of type ExecutorKind in its kind.cpp,
// and registry.h lists them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/executor.h"

namespace zinc_rt {

// A tier on which an executor runs models. The ring executor has one tier per ring; most other executors have one tier.
struct ExecutorTier {
  std::string name;         // the value of ZINC_RT_TIER that selects it; unique among all executors
  std::string description;  // one line for display
  int priority = 0;  // `auto` takes the available tier with the highest priority; negative: only if the user names it
  // Returns an empty text if the tier can run on this machine, else the reason and what to do about it.
  std::string (*unavailable_reason)();
  // Returns the number of devices on this machine, for ExecutorOptions::device. Null: one device.
  std::uint32_t (*n_devices)() = nullptr;
  // Returns one line for display: what was found on this machine, and what of it is used. Null: nothing to report.
  std::string (*details)() = nullptr;
  // Returns one line for display: what this build contains of the tier, on any machine. Null: nothing to report.
  std::string (*built_with)() = nullptr;
};

// A backend is a set of executors that share graphs and kernels. kOwnBackend is the name of this project's own backend,
// which uses the graphs of ir/ and rings. Every other backend, such as Vulkan, is called a peer and has its own graphs
// and kernels.
inline constexpr std::string_view kOwnBackend = "zinc_rt";

// A tier that this build could contain, but that was switched off or whose requirements were missing.
struct LeftOutExecutorTier {
  std::string name, why;
};

struct ExecutorKind {
  std::string name;         // "ring"
  std::string description;  // one line for display
  // The backend to which this executor's tiers belong: kOwnBackend, or a peer's name. A peer is used only if a user
  // asks for it.
  std::string backend = std::string(kOwnBackend);
  std::vector<ExecutorTier> (*tiers)();
  // Opens a model on the tier options.tier, which must be one of tiers() and available. Errors: those of
  // open_executor().
  Result<std::unique_ptr<Executor>> (*open)(const std::string& path, const ExecutorOptions& options);
  // Returns the tiers that this build lacks although the source has them. Null if no tier was left out.
  std::vector<LeftOutExecutorTier> (*left_out)() = nullptr;
};

}  // namespace zinc_rt

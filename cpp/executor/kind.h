// What an executor says about itself. An executor's folder defines one constant of this type in its kind.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/executor.h"

namespace zinc_rt {

// A tier on which an executor runs models. The ring executor has one per ring; most others have a single tier.
struct ExecutorTier {
  std::string name;         // as in ZINC_RT_TIER; no two executors have one of the same name
  std::string description;  // one line for people
  int priority = 0;         // `auto` takes the highest that is available; negative: only when forced
  // Empty if the tier can run here, else the reason and what to do about it.
  std::string (*unavailable_reason)();
  // The number of devices here, for ExecutorOptions::device. Null: one.
  std::uint32_t (*n_devices)() = nullptr;
  // One line for people: what was found on this machine, and what of it is used. Null: nothing to report.
  std::string (*details)() = nullptr;
  // One line for people: what this build contains of the tier, on any machine. Null: nothing to report.
  std::string (*built_with)() = nullptr;
};

// The backend with graphs and rings. Peers beside it bring everything of their own.
inline constexpr std::string_view kOwnBackend = "zinc_rt";

// A tier that this build could have, but that was switched off or lacked something.
struct LeftOutExecutorTier {
  std::string name, why;
};

struct ExecutorKind {
  std::string name;         // "ring"
  std::string description;  // one line for people
  // The backend that its tiers belong to: kOwnBackend, or a peer's name. A peer is used only if a user asks for it.
  std::string backend = std::string(kOwnBackend);
  std::vector<ExecutorTier> (*tiers)();
  // Opens a model on the tier options.tier, which is one of tiers() and available. Errors as open_executor.
  Result<std::unique_ptr<Executor>> (*open)(const std::string& path, const ExecutorOptions& options);
  // Null: none was left out.
  std::vector<LeftOutExecutorTier> (*left_out)() = nullptr;
};

}  // namespace zinc_rt

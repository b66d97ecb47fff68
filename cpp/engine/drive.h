// Drive says which threads run an engine's work, that is, its steps and the delivery of events: its own threads, or
// those of its callers.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <functional>

#include "base/platform/threads.h"

namespace zinc_rt {

enum class Drive : std::uint8_t {
  kThreads,  // one thread per device, and one for the drainer
  kPump,     // the threads that call EngineCore::pump(), which all waiting calls do
};

// An engine has threads unless the system has none or its opener says otherwise.
inline constexpr Drive kUsualDrive = kHasThreads ? Drive::kThreads : Drive::kPump;

// Runs the engine's work until `done` returns true. Returns false if timeout_ms passes before that; a negative timeout
// means no limit. The function object is empty if the engine has threads.
using Waiter = std::function<bool(double timeout_ms, const std::function<bool()>& done)>;

}  // namespace zinc_rt

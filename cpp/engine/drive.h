// Who runs an engine's work (its steps and the delivery of events): its own threads, or the threads of callers.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <functional>

namespace zinc_rt {

enum class Drive : std::uint8_t {
  kThreads,  // a thread for each device, and one for the drainer
  kPump,     // the callers of EngineCore::pump(), among them all calls that wait for the engine
};

// Runs the engine's work until `done` returns true. Returns false if timeout_ms passes before that; a negative timeout
// means no limit. The function object is empty if the engine has threads.
using Waiter = std::function<bool(double timeout_ms, const std::function<bool()>& done)>;

}  // namespace zinc_rt

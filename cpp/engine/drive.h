// What does an engine's work (its steps and the delivery of events): threads, or the callers. Thread rule: plain
// values.
#pragma once

#include <cstdint>
#include <functional>

namespace zinc_rt {

enum class Drive : std::uint8_t {
  kThreads,  // a thread for each device, and the drainer
  kPump,     // whoever calls EngineCore::pump(), as those do who wait for the engine
};

// Does the engine's work until `done` is true. Returns false if timeout_ms passed first; negative: no limit. The
// function is empty if threads do the work.
using Waiter = std::function<bool(double timeout_ms, const std::function<bool()>& done)>;

}  // namespace zinc_rt

// Who does the work of an engine: its steps, and handing out what they gave. Thread rule: plain values.
#pragma once

#include <cstdint>
#include <functional>

namespace zinc_rt {

enum class Drive : std::uint8_t {
  kThreads,  // a thread for each device, and the drainer
  kPump,     // whoever calls EngineCore::pump(), as those do who wait for the engine
};

// Does the engine's work until `done`; false: timeout_ms have passed first. Negative: it waits for ever. Empty where
// threads do the work.
using Waiter = std::function<bool(double timeout_ms, const std::function<bool()>& done)>;

}  // namespace zinc_rt

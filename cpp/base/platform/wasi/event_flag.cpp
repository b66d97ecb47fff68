#include "base/platform/event_flag.h"

namespace zinc_rt {

EventFlag::~EventFlag() = default;

// WASI has no descriptor that a program can make readable itself.
bool EventFlag::open() {
  return false;
}

void EventFlag::raise() {}

void EventFlag::lower() {}

}  // namespace zinc_rt

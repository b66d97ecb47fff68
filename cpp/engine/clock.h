// The engine's clock: microseconds of a steady clock, which never jumps. All times of the scheduler come from it.
// Thread rule: any thread.
#pragma once

#include <chrono>

#include "sched/types.h"

namespace zinc_rt {

inline sched::Micros now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace zinc_rt

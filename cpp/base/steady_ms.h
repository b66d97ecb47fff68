// Returns milliseconds on the steady clock, for measuring durations. Zero is some moment before the process began.
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace zinc_rt {

inline std::int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace zinc_rt

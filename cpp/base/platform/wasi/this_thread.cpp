#include "base/platform/this_thread.h"

#include <wasi/api.h>

namespace zinc_rt {

// There is one thread, which has no name and no priority.
void name_this_thread(const char*) {}

void yield_to_others() {}

// A host without a clock of processor time has that of the time that passes, which is never less.
std::chrono::nanoseconds thread_time() {
  __wasi_timestamp_t now = 0;
  auto error = __wasi_clock_time_get(__WASI_CLOCKID_THREAD_CPUTIME_ID, 1, &now);
  if (error != __WASI_ERRNO_SUCCESS) error = __wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 1, &now);
  if (error != __WASI_ERRNO_SUCCESS) __builtin_trap();  // every host has this clock
  return std::chrono::nanoseconds(now);
}

}  // namespace zinc_rt

// Sets the name and priority of the calling thread, and returns its processor time. `top -H`, debuggers and profilers
// show the name. Thread rule: any thread; each call concerns the calling thread only.
#pragma once

#include <chrono>
#include <cstddef>

namespace zinc_rt {

// Names the calling thread. The system shows 15 characters.
void name_this_thread(const char* name);
template <std::size_t n>
void name_thread(const char (&name)[n]) {
  static_assert(n <= 16, "15 characters at most");
  name_this_thread(name);
}

// Lowers the calling thread's priority. On a processor that other threads of the process also want, it then gets about
// a tenth of the time. On an idle processor it still runs at full speed.
void yield_to_others();

// Returns the processor time that the calling thread has used since it began.
std::chrono::nanoseconds thread_time();

}  // namespace zinc_rt

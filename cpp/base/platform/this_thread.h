// The calling thread: its name, as `top -H`, debuggers and profilers show it, and how it shares processors.
// Thread rule: each call is about its own thread.
#pragma once

#include <chrono>
#include <cstddef>

namespace zinc_rt {

// The system keeps 15 characters of a name.
void name_this_thread(const char* name);
template <std::size_t n>
void name_thread(const char (&name)[n]) {
  static_assert(n <= 16, "15 characters at most");
  name_this_thread(name);
}

// From now on the thread gets about a tenth of a processor that other threads of the process want too, and the whole of
// one that nobody wants.
void yield_to_others();

// The processor time that the thread has used since it began.
std::chrono::nanoseconds thread_time();

}  // namespace zinc_rt

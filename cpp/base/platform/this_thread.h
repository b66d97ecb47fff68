// The calling thread: its name, which `top -H`, debuggers and profilers show, and its priority among other threads.
// Thread rule: each call is about its own thread.
#pragma once

#include <chrono>
#include <cstddef>

namespace zinc_rt {

// Names the calling thread. The system keeps 15 characters.
void name_this_thread(const char* name);
template <std::size_t n>
void name_thread(const char (&name)[n]) {
  static_assert(n <= 16, "15 characters at most");
  name_this_thread(name);
}

// From now on the thread gets about a tenth of a processor that other threads of the process want too. A processor that
// nobody else wants it has to itself.
void yield_to_others();

// The processor time that the thread has used since it began.
std::chrono::nanoseconds thread_time();

}  // namespace zinc_rt

// Names of threads, as `top -H`, debuggers and profilers show them. Thread rule: names the calling thread.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace zinc_rt {

template <std::size_t n>
void name_thread(const char (&name)[n]) {
  static_assert(n <= 16, "the kernel keeps 15 characters");
  pthread_setname_np(pthread_self(), name);
}

}  // namespace zinc_rt

// The calling thread: its name, as `top -H`, debuggers and profilers show it, and how it shares processors.
// Thread rule: each call is about its own thread.
#pragma once

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>

namespace zinc_rt {

template <std::size_t n>
void name_thread(const char (&name)[n]) {
  static_assert(n <= 16, "the kernel keeps 15 characters");
  pthread_setname_np(pthread_self(), name);
}

// From now on the thread gets about a tenth of a processor that other threads of the process want too, and the whole of
// one that nobody wants.
inline void yield_to_others() {
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);  // Linux: of this thread alone
}

}  // namespace zinc_rt

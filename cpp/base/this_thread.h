// The calling thread: its name, as `top -H`, debuggers and profilers show it, and how it shares processors.
// Thread rule: each call is about its own thread.
#pragma once

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
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

// The processor time that the thread has used since it began.
inline std::chrono::nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace zinc_rt

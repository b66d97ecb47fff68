#include "base/platform/this_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

namespace zinc_rt {

void name_this_thread(const char* name) {
  pthread_setname_np(pthread_self(), name);
}

void yield_to_others() {
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);  // on Linux this sets one thread, not the process
}

std::chrono::nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace zinc_rt

#include "base/platform/this_thread.h"

#include <pthread.h>
#include <pthread/qos.h>
#include <time.h>

namespace zinc_rt {

void name_this_thread(const char* name) {
  pthread_setname_np(name);
}

void yield_to_others() {
  pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0);
}

std::chrono::nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace zinc_rt

#include "calls.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace zinc_rt::python {
namespace {

struct Calls {
  std::mutex mutex;
  std::condition_variable none;
  bool is_over = false;
  int n = 0;
};
std::atomic<Calls*> present_calls{new Calls};  // never destroyed, because threads use it until the process ends

}  // namespace

bool enter_call() {
  Calls& c = *present_calls.load();
  const std::lock_guard lock(c.mutex);
  if (!c.is_over) ++c.n;
  return !c.is_over;
}

void leave_call() {
  Calls& c = *present_calls.load();
  const std::lock_guard lock(c.mutex);
  if (--c.n == 0) c.none.notify_all();
}

bool end_calls(double timeout_ms) {
  Calls& c = *present_calls.load();
  std::unique_lock lock(c.mutex);
  c.is_over = true;
  return c.none.wait_for(lock, std::chrono::duration<double, std::milli>(timeout_ms), [&] { return c.n == 0; });
}

void forget_calls() {
  present_calls.store(new Calls);
}

}  // namespace zinc_rt::python

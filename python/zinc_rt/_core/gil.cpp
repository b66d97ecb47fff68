#include "gil.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace zinc_rt::python {
namespace {

struct Returns {
  std::mutex mutex;
  std::condition_variable none;
  int n_under_way = 0, n_workers = 0;
  bool is_over = false;
  std::thread::id last;  // the thread that ends the interpreter
};
std::atomic<Returns*> present{new Returns};  // never destroyed, because threads use it until the process ends
Returns& returns() {
  return *present.load();
}

}  // namespace

WithoutGil::~WithoutGil() {
  Returns& r = returns();
  {
    std::unique_lock lock(r.mutex);
    if (r.is_over && r.last != std::this_thread::get_id()) {
      lock.unlock();
      for (;;) ::pause();  // until the process ends
    }
    ++r.n_under_way;
  }
  PyEval_RestoreThread(state_);
  const std::lock_guard lock(r.mutex);
  if (--r.n_under_way == 0) r.none.notify_all();
}

Worker::Worker() {
  Returns& r = returns();
  const std::lock_guard lock(r.mutex);
  ++r.n_workers;
}
Worker::~Worker() {
  Returns& r = returns();
  const std::lock_guard lock(r.mutex);
  if (--r.n_workers == 0) r.none.notify_all();
}

void forget_waits() {
  present.store(new Returns);
}

void end_waits() {
  Returns& r = returns();
  PyThreadState* const state = PyEval_SaveThread();
  {
    std::unique_lock lock(r.mutex);
    r.is_over = true;
    r.last = std::this_thread::get_id();
    r.none.wait(lock, [&] { return r.n_under_way == 0 && r.n_workers == 0; });
  }
  PyEval_RestoreThread(state);
}

}  // namespace zinc_rt::python

#include "held.h"

#include <pthread.h>

#include <atomic>

#include "bindings.h"
#include "calls.h"

namespace zinc_rt::python {
namespace {

std::atomic<unsigned> forks{0};

}  // namespace

unsigned n_forks() {
  return forks.load(std::memory_order_relaxed);
}

void count_forks() {
  // A lock that another thread of the parent held during the fork stays locked in the child for ever, so the child
  // forgets such waits and calls.
  pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1, std::memory_order_relaxed);
    forget_waits();
    forget_calls();
  });
}

void raise_forked() {
  raise(
      {StatusCode::kUnavailable,
       "[engine] this process was forked, and the engine's threads are in its parent: open an engine in the child, or "
       "start children with multiprocessing's \"spawn\"",
       0});
}

}  // namespace zinc_rt::python

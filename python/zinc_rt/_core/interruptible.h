// Runs long computations of the engine so that Ctrl-C stops them.
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "bindings.h"
#include "gil.h"
#include "zinc_rt/stop.h"

namespace zinc_rt::python {

// Runs call(StopAsked) on a new thread and waits for its Result. Python's signal handlers run while it waits. If a
// handler raises, as Ctrl-C's does, StopAsked reports that, and the exception is raised at once, without waiting for
// the running step.
// REQUIRES: the GIL; `call` owns all that it uses and does not call Python.
template <class Call>
auto interruptible(Call call) {
  using Returned = decltype(call(StopAsked()));
  struct Shared {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<Returned> returned;
    std::exception_ptr thrown;
    bool is_stopped = false;
  };
  if (is_processing()) raise_processing();
  const auto shared = std::make_shared<Shared>();
  std::thread([shared, call = std::make_unique<Call>(std::move(call)), worker = std::make_unique<Worker>()]() mutable {
    const auto is_stopped = [shared] {
      const std::lock_guard lock(shared->mutex);
      return shared->is_stopped;
    };
    std::optional<Returned> returned;
    std::exception_ptr thrown;
    try {
      returned = (*call)(is_stopped);
    } catch (...) {
      thrown = std::current_exception();
    }
    call.reset();  // releases its references to the engine before the waiting thread is notified
    const std::lock_guard lock(shared->mutex);
    shared->returned = std::move(returned);
    shared->thrown = thrown;
    shared->ended.notify_all();
  }).detach();
  for (bool has_ended = false; !has_ended;) {
    {
      const WithoutGil release;
      std::unique_lock lock(shared->mutex);
      constexpr std::chrono::duration<double, std::milli> kPoll(kSignalPollMs);
      has_ended = shared->ended.wait_for(lock, kPoll, [&] { return shared->returned || shared->thrown; });
    }
    if (has_ended || PyErr_CheckSignals() == 0) continue;
    const std::lock_guard lock(shared->mutex);
    shared->is_stopped = true;
    throw py::error_already_set();
  }
  if (shared->thrown) std::rethrow_exception(shared->thrown);
  return unwrap(std::move(*shared->returned));
}

}  // namespace zinc_rt::python

// OutputPort collects the output events of all step threads of an engine in one ring, from which the drainer reads.
// Thread rule: any thread may call push(). The drainer, and the thread that stops the drainer, may call ring(). use()
// must be called before the first push().
#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include "engine/output_ring.h"

namespace zinc_rt {

class OutputPort {
 public:
  explicit OutputPort(std::uint32_t capacity) : ring_(capacity) {}
  // Called for an engine without a drainer thread. If the ring is full, push() then calls `take_some` to make room.
  void use(std::function<void()> take_some) { take_some_ = std::move(take_some); }
  // Appends an event. Waits if the ring is full, which does not last long, because the drainer never waits for a sink.
  // The ring allows only one producer, so the mutex admits one caller at a time.
  void push(const OutputEvent& event) {
    const std::lock_guard lock(mutex_);
    while (!ring_.push(event)) {
      if (take_some_)
        take_some_();
      else
        ring_.wait_for_space(std::chrono::milliseconds(100));
    }
  }
  OutputRing& ring() { return ring_; }

 private:
  std::mutex mutex_;
  OutputRing ring_;
  std::function<void()> take_some_;
};

}  // namespace zinc_rt

// Collects the output events of all step threads of an engine in one ring, which one drainer reads.
// Thread rule: push() from any thread; ring() from the drainer and from the thread that ends it; use() before the first
// push().
#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include "engine/output_ring.h"

namespace zinc_rt {

class OutputPort {
 public:
  explicit OutputPort(std::uint32_t capacity) : ring_(capacity) {}
  // For an engine without a drainer thread: push() calls `take_some` when the ring is full.
  void use(std::function<void()> take_some) { take_some_ = std::move(take_some); }
  // Waits if the ring is full. It has room soon, because the drainer never waits for a sink. The mutex makes the
  // callers one producer.
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

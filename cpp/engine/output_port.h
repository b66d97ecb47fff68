// Collects the output events of all step threads of an engine in one ring, for one drainer. Thread rule: push() any
// thread; ring() the drainer, and the thread that ends it; use() before the first push().
#pragma once

#include <functional>
#include <mutex>
#include <utility>

#include "engine/output_ring.h"

namespace zinc_rt {

class OutputPort {
 public:
  explicit OutputPort(std::uint32_t capacity) : ring_(capacity) {}
  // For engines without a thread that empties the ring: `take_some` is called when the ring is full.
  void use(std::function<void()> take_some) { take_some_ = std::move(take_some); }
  // A full ring soon has room, because the drainer never waits for a sink. The ring has one producer at a time.
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

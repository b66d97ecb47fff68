// QueueSink is the sink behind a Stream: a queue of events. Its reader blocks until the next event, or waits until a
// file descriptor becomes readable.
// Thread rule: any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/platform/event_flag.h"
#include "engine/drive.h"
#include "zinc_rt/sink.h"

namespace zinc_rt {

class QueueSink final : public Sink {
 public:
  // capacity: the largest number of events in the queue. The stream is over after n_generations calls of end().
  QueueSink(std::size_t capacity, std::uint32_t n_generations, Waiter on_wait)
      : on_wait_(std::move(on_wait)), capacity_(capacity), n_open_(n_generations) {}

  SinkResult push(const StreamEvent& event) override;
  void end(std::uint32_t index) override;

  // Waits for the next event and returns it. Returns nullopt once all generations have ended and all events were taken.
  // If no event comes within timeout_ms (negative: no limit), returns nullopt and sets is_there to false.
  std::optional<StreamEvent> pop(double timeout_ms, bool& is_there);
  bool is_over() const;
  int readable_fd();

 private:
  void signal();
  bool is_ready() const { return !events_.empty() || n_open_ == 0; }  // REQUIRES: mutex_

  const Waiter on_wait_;
  mutable std::mutex mutex_;
  std::condition_variable there_;
  std::deque<StreamEvent> events_;
  std::size_t capacity_;
  std::uint32_t n_open_;
  EventFlag flag_;  // opened at the first call of readable_fd()
};

}  // namespace zinc_rt

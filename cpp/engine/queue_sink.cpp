#include "engine/queue_sink.h"

#include <chrono>
#include <thread>

namespace zinc_rt {

// Wakes the readers: threads that block in a call, and event loops that wait for the file descriptor. REQUIRES: the
// caller holds mutex_.
void QueueSink::signal() {
  there_.notify_all();
  flag_.raise();
}

SinkResult QueueSink::push(const StreamEvent& event) {
  const std::lock_guard lock(mutex_);
  if (events_.size() >= capacity_) return SinkResult::kFull;
  events_.push_back(event);
  signal();
  return SinkResult::kTaken;
}

void QueueSink::end(std::uint32_t) {
  const std::lock_guard lock(mutex_);
  if (n_open_ > 0) --n_open_;
  signal();
}

bool QueueSink::is_over() const {
  const std::lock_guard lock(mutex_);
  return n_open_ == 0;
}

std::optional<StreamEvent> QueueSink::pop(double timeout_ms, bool& is_there) {
  const auto is_there_now = [this] {
    const std::lock_guard lock(mutex_);
    return is_ready();
  };
  is_there = !on_wait_ || on_wait_(timeout_ms, is_there_now);
  if (!is_there) return std::nullopt;
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return is_ready(); };
  if (timeout_ms < 0) {
    there_.wait(lock, ready);
  } else if (!there_.wait_for(lock, std::chrono::duration<double, std::milli>(timeout_ms), ready)) {
    is_there = false;
    return std::nullopt;
  }
  if (events_.empty()) return std::nullopt;
  auto event = std::move(events_.front());
  events_.pop_front();
  if (events_.empty() && n_open_ > 0) flag_.lower();
  return event;
}

int QueueSink::readable_fd() {
  const std::lock_guard lock(mutex_);
  if (flag_.fd() < 0 && flag_.open() && is_ready()) flag_.raise();
  return flag_.fd();
}

namespace {

// Callbacks holds what a callback sink and its thread share. The thread may outlive the sink while a callback runs,
// because the drainer releases the sink and must not wait for the thread.
struct Callbacks {
  std::function<void(const StreamEvent&)> callback;
  std::size_t capacity;
  std::mutex mutex;
  std::condition_variable there, delivered;
  std::deque<StreamEvent> events;
  bool stop = false, failed = false, is_calling = false;
  std::thread::id caller;

  void run() {
    std::unique_lock lock(mutex);
    caller = std::this_thread::get_id();
    for (;;) {
      there.wait(lock, [&] { return stop || !events.empty(); });
      if (events.empty()) return;  // returns only when no event is left, so that queued events are still delivered
      const StreamEvent event = std::move(events.front());
      events.pop_front();
      is_calling = true;
      lock.unlock();
      bool threw = false;
      try {
        callback(event);
      } catch (...) {
        threw = true;
      }
      lock.lock();
      is_calling = false;
      if (threw) {
        failed = true;
        events.clear();
      }
      if (events.empty()) delivered.notify_all();
    }
  }

  bool wait_delivered(double timeout_ms) {
    std::unique_lock lock(mutex);
    if (caller == std::this_thread::get_id()) return true;
    const auto had_all = [&] { return events.empty() && !is_calling; };
    if (timeout_ms < 0) return delivered.wait(lock, had_all), true;
    return delivered.wait_for(lock, std::chrono::duration<double, std::milli>(timeout_ms), had_all);
  }
};

class CallbackSink final : public Sink {
 public:
  explicit CallbackSink(std::shared_ptr<Callbacks> shared) : shared_(std::move(shared)) {
    std::thread([shared = shared_] { shared->run(); }).detach();
  }
  ~CallbackSink() override {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
    shared_->there.notify_all();
  }
  SinkResult push(const StreamEvent& event) override {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->failed) return SinkResult::kFailed;
    if (shared_->events.size() >= shared_->capacity) return SinkResult::kFull;
    shared_->events.push_back(event);
    shared_->there.notify_all();
    return SinkResult::kTaken;
  }
  void end(std::uint32_t) override {}
  bool wait_delivered(double timeout_ms) override { return shared_->wait_delivered(timeout_ms); }

 private:
  std::shared_ptr<Callbacks> shared_;
};

// For systems without threads: the caller of EngineCore::pump() calls the callback.
class DirectSink final : public Sink {
 public:
  explicit DirectSink(std::function<void(const StreamEvent&)> callback) : callback_(std::move(callback)) {}
  SinkResult push(const StreamEvent& event) override {
    callback_(event);
    return SinkResult::kTaken;
  }
  void end(std::uint32_t) override {}

 private:
  const std::function<void(const StreamEvent&)> callback_;
};

}  // namespace

std::shared_ptr<Sink> make_callback_sink(std::function<void(const StreamEvent&)> callback, std::size_t capacity) {
  if constexpr (!kHasThreads) return std::make_shared<DirectSink>(std::move(callback));
  auto shared = std::make_shared<Callbacks>();
  shared->callback = std::move(callback);
  shared->capacity = capacity == 0 ? 1 : capacity;
  return std::make_shared<CallbackSink>(std::move(shared));
}

}  // namespace zinc_rt

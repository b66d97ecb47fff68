#include "engine/queue_sink.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace zinc_rt {

QueueSink::~QueueSink() {
  if (fd_ >= 0) ::close(fd_);
}

// The descriptor is readable while there is something to take.
void QueueSink::signal() {
  there_.notify_all();
  if (fd_ >= 0) ::eventfd_write(fd_, 1);
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
  std::unique_lock lock(mutex_);
  const auto ready = [&] { return !events_.empty() || n_open_ == 0; };
  is_there = true;
  if (timeout_ms < 0) {
    there_.wait(lock, ready);
  } else if (!there_.wait_for(lock, std::chrono::duration<double, std::milli>(timeout_ms), ready)) {
    is_there = false;
    return std::nullopt;
  }
  if (events_.empty()) return std::nullopt;
  auto event = std::move(events_.front());
  events_.pop_front();
  if (fd_ >= 0 && events_.empty() && n_open_ > 0) {
    ::eventfd_t value = 0;
    ::eventfd_read(fd_, &value);
  }
  return event;
}

int QueueSink::readable_fd() {
  const std::lock_guard lock(mutex_);
  if (fd_ < 0) {
    fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd_ >= 0 && (!events_.empty() || n_open_ == 0)) ::eventfd_write(fd_, 1);
  }
  return fd_;
}

namespace {

class CallbackSink final : public Sink {
 public:
  CallbackSink(std::function<void(const StreamEvent&)> callback, std::size_t capacity)
      : callback_(std::move(callback)), capacity_(capacity), thread_([this] { run(); }) {}
  ~CallbackSink() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    there_.notify_all();
    // The last reference may be dropped by the callback's own thread.
    thread_.get_id() == std::this_thread::get_id() ? thread_.detach() : thread_.join();
  }

  SinkResult push(const StreamEvent& event) override {
    const std::lock_guard lock(mutex_);
    if (failed_) return SinkResult::kFailed;
    if (events_.size() >= capacity_) return SinkResult::kFull;
    events_.push_back(event);
    there_.notify_all();
    return SinkResult::kTaken;
  }
  void end(std::uint32_t) override {}

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      there_.wait(lock, [&] { return stop_ || !events_.empty(); });
      if (events_.empty()) return;  // what is queued is still delivered
      const StreamEvent event = std::move(events_.front());
      events_.pop_front();
      lock.unlock();
      bool failed = false;
      try {
        callback_(event);
      } catch (...) {
        failed = true;
      }
      lock.lock();
      if (!failed) continue;
      failed_ = true;
      events_.clear();
    }
  }

  std::function<void(const StreamEvent&)> callback_;
  std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<StreamEvent> events_;
  bool stop_ = false, failed_ = false;
  std::thread thread_;
};

}  // namespace

std::shared_ptr<Sink> make_callback_sink(std::function<void(const StreamEvent&)> callback, std::size_t capacity) {
  return std::make_shared<CallbackSink>(std::move(callback), capacity == 0 ? 1 : capacity);
}

}  // namespace zinc_rt

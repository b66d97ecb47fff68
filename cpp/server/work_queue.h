// A few threads that run what may block: parsing, templates, tokenization, submitting, reading the engine's counters.
// Thread rule: any thread. A task that throws is logged; what it held is let go.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/thread_name.h"

namespace zinc_rt::server {

class WorkQueue {
 public:
  explicit WorkQueue(int n_threads) {
    for (int i = 0; i < n_threads; ++i)
      threads_.emplace_back([this] {
        name_thread("zrt-work");
        run();
      });
  }
  ~WorkQueue() { stop(); }

  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    there_.notify_one();
  }
  // Runs what was posted, then ends the threads. Not from a task.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    there_.notify_all();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      there_.wait(lock, [&] { return is_stopped_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      try {
        task();
      } catch (const std::exception& error) {
        log().error("a request ended by an exception: {}", error.what());
      }
      task = nullptr;
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  bool is_stopped_ = false;
};

}  // namespace zinc_rt::server

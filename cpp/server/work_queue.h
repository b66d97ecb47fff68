// A few threads that run tasks which may block: parsing, templates, tokenization, submitting, loading of models. The
// owners of tasks take turns, so that the tasks of one owner do not wait behind all those of another. The tasks of one
// owner start in order of arrival.
// Thread rule: any thread. A task that throws is logged and destroyed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/this_thread.h"

namespace zinc_rt::server {

class WorkQueue {
 public:
  using Task = std::function<void()>;

  // kBehindSteps: on a CPU that is busy, the threads leave it to those that compute, so that a long text of one client
  // does not slow the tokens of others. Threads that a task starts inherit it.
  enum class Priority : std::uint8_t { kNormal, kBehindSteps };

  // most_of_owner: how many tasks of one owner may run at once. Fewer than n_threads leaves threads for other owners.
  WorkQueue(int n_threads, int most_of_owner, Priority priority = Priority::kNormal) : most_of_owner_(most_of_owner) {
    for (int i = 0; i < n_threads; ++i)
      threads_.emplace_back([this, priority] {
        name_thread("zrt-work");
        if (priority == Priority::kBehindSteps) yield_to_others();
        run();
      });
  }
  explicit WorkQueue(int n_threads) : WorkQueue(n_threads, n_threads) {}
  ~WorkQueue() { stop(); }

  void post(Task task) { post({}, std::move(task)); }
  void post(const std::string& owner, Task task) {
    {
      const std::lock_guard lock(mutex_);
      Owner& mine = owners_[owner];
      if (mine.tasks.empty() && mine.n_running == 0) mine.turn = ++last_turn_;  // after the owners that wait already
      mine.tasks.push_back(std::move(task));
    }
    there_.notify_one();
  }
  // Runs all posted tasks, then ends the threads. Must not be called from a task.
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
  struct Owner {
    std::deque<Task> tasks;
    int n_running = 0;
    std::uint64_t turn = 0;  // the owner with the least is next
  };
  using Owners = std::map<std::string, Owner>;

  // The owner whose task is next; end(): no task may run now. REQUIRES: mutex_.
  Owners::iterator next() {
    auto best = owners_.end();
    for (auto it = owners_.begin(); it != owners_.end(); ++it) {
      if (it->second.tasks.empty() || it->second.n_running >= most_of_owner_) continue;
      if (best == owners_.end() || it->second.turn < best->second.turn) best = it;
    }
    return best;
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      auto it = owners_.end();
      there_.wait(lock, [&] { return (it = next()) != owners_.end() || (is_stopped_ && owners_.empty()); });
      if (it == owners_.end()) return;
      Owner& owner = it->second;
      auto task = std::move(owner.tasks.front());
      owner.tasks.pop_front();
      owner.turn = ++last_turn_;
      ++owner.n_running;
      lock.unlock();
      try {
        task();
      } catch (const std::exception& error) {
        log().error("a request ended by an exception: {}", error.what());
      }
      task = nullptr;
      lock.lock();
      const bool was_at_bound = owner.n_running-- == most_of_owner_;
      if (owner.n_running == 0 && owner.tasks.empty()) owners_.erase(it);
      if (was_at_bound || is_stopped_) there_.notify_all();
    }
  }

  const int most_of_owner_;
  std::mutex mutex_;
  std::condition_variable there_;
  Owners owners_;  // owners that have tasks, waiting or running
  std::uint64_t last_turn_ = 0;
  std::vector<std::thread> threads_;
  bool is_stopped_ = false;
};

}  // namespace zinc_rt::server

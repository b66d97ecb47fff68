// A few threads that run long tasks: parsing, templates, tokenization, compiling grammars, masks, loading models. Each
// task has an owner, such as a tenant. The next task is one of the owner that has used the least processor time, so one
// owner's long tasks do not delay another's. The tasks of one owner start in order of arrival.
// Thread rule: any thread. A task that throws is logged and destroyed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt {

class WorkQueue {
 public:
  using Task = std::function<void()>;

  // kBehindSteps: the threads give way to threads that compute steps, so that on a busy CPU one client's long text does
  // not slow the tokens of others. Threads that a task starts inherit this.
  enum class Priority : std::uint8_t { kNormal, kBehindSteps };

  // The processor time that an owner may use through run(): `burst` at once, then `per_second` seconds per second.
  struct Budget {
    const char* what = "";               // for messages: what it is spent on
    std::chrono::milliseconds burst{0};  // 0: no bound
    double per_second = 0;
  };

  // most_of_owner: how many tasks of one owner may run at once. A number below n_threads keeps threads for other
  // owners.
  WorkQueue(int n_threads, int most_of_owner, Priority priority = Priority::kNormal);
  WorkQueue(int n_threads, int most_of_owner, Priority priority, Budget budget);
  explicit WorkQueue(int n_threads) : WorkQueue(n_threads, n_threads) {}
  ~WorkQueue() { stop(); }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void post(Task task) { post({}, std::move(task)); }
  void post(const std::string& owner, Task task);
  // Runs the task and returns when it has ended. A caller that is itself a task of another queue does not occupy that
  // queue: it goes on with another thread meanwhile. A task that has begun is never abandoned, so it checks `cancel`
  // itself. Errors: kCancelled if cancel came before the task began; kExhausted with retry_after_s if the owner has
  // used its budget; kUnavailable after stop(); kInternal if the task threw.
  Status run(const std::string& owner, const Task& task, const std::stop_token& cancel);
  // Runs all posted tasks, refuses those of run() that have not begun, then ends the threads. Must not be called from a
  // task.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Owner {
    std::deque<Task> tasks;
    int n_running = 0;
    std::uint64_t turn = 0;   // among owners that have used the same, the one with the least is next
    std::uint64_t ticks = 0;  // of processor time; who comes back from idleness begins at the level of the others
    std::chrono::nanoseconds spent{0};  // of the budget, as of `seen`
    Clock::time_point seen{};
  };
  using Owners = std::map<std::string, Owner>;

  // Tells that the calling thread waits for something else. If it belongs to a queue, that queue uses another thread.
  class Absence {
   public:
    Absence();
    ~Absence();
    Absence(const Absence&) = delete;
    Absence& operator=(const Absence&) = delete;

   private:
    WorkQueue* const queue_;
  };

  bool is_stopping();
  void charge(const std::string& owner, std::chrono::nanoseconds used);
  // REQUIRES of all below: mutex_.
  Owners::iterator next();  // the owner whose task is next; end(): no task may run now
  void add(const std::string& owner, Task task);
  void add_thread();
  void settle(Owner& owner, Clock::time_point now) const;  // gives back what has come back of its budget
  bool is_forgotten(const Owner& owner) const;
  void run_tasks();

  static constexpr int kMostAbsent = 64;  // threads that take the place of those that wait
  // A short task counts as one tick. An owner that was served while nobody else waited owes at most kMostOwed.
  static constexpr std::chrono::milliseconds kTick{4};
  static constexpr std::uint64_t kMostOwed = 250;

  const int n_threads_, most_of_owner_;
  const Priority priority_;
  const Budget budget_;
  std::mutex mutex_;
  std::condition_variable there_;
  Owners owners_;  // that have tasks, waiting or running, or have used more than others
  std::uint64_t last_turn_ = 0;
  std::uint64_t level_ = 0;  // ticks of the owner that was served last
  std::size_t n_waiting_ = 0;
  int n_running_ = 0, n_absent_ = 0;
  bool is_stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace zinc_rt

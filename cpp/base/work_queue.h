// WorkQueue is a few threads that run long tasks: parsing, templates, tokenization, compiling grammars, masks, loading
// models. Each task has an owner, such as a tenant. The next task to start is the oldest one of the owner that has used
// the least processor time, so one owner's long tasks do not delay another's. On a system without threads, and in a
// queue of 0 threads, post() and run() run the task themselves.
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

  // Sets the priority of the queue's threads. With kBehindSteps they get a low priority, so that on a busy CPU they do
  // not slow the threads that compute steps of the model. Threads that a task starts inherit this.
  enum class Priority : std::uint8_t { kNormal, kBehindSteps };

  // Limits the processor time that the tasks of an owner may use through run(). An owner may use `burst` at once. After
  // that, the owner's budget refills by per_second seconds of processor time per second.
  struct Budget {
    const char* what = "";               // name of the kind of work, for error messages
    std::chrono::milliseconds burst{0};  // processor time that may be used at once; 0 means no limit
    double per_second = 0;
  };

  // Starts the threads; on a system without threads, none. At most most_of_owner tasks of one owner run at once. A
  // number below n_threads keeps threads free for other owners.
  WorkQueue(int n_threads, int most_of_owner, Priority priority = Priority::kNormal);
  WorkQueue(int n_threads, int most_of_owner, Priority priority, Budget budget);
  explicit WorkQueue(int n_threads) : WorkQueue(n_threads, n_threads) {}
  ~WorkQueue() { stop(); }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void post(Task task) { post({}, std::move(task)); }
  void post(const std::string& owner, Task task);
  // Runs the task on a thread of the queue and returns when it has ended. If the caller is itself a task of a queue,
  // that queue uses another thread while the caller waits. A task that has begun is not interrupted, so it must check
  // `cancel` itself. Errors: kCancelled if `cancel` was requested before the task began; kExhausted with retry_after_s
  // if the owner has used its budget; kUnavailable after stop(); kInternal if the task threw.
  Status run(const std::string& owner, const Task& task, const std::stop_token& cancel);
  // Runs all tasks of post(), refuses tasks of run() that have not begun, then joins the threads. Must not be called
  // from a task.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Owner {
    std::deque<Task> tasks;
    int n_running = 0;
    // Increases when a task of the owner starts; among owners with equal ticks, the smallest turn is next.
    std::uint64_t turn = 0;
    std::uint64_t ticks = 0;  // processor time used, in units of kTick; at least level_ when an idle owner gets a task
    std::chrono::nanoseconds spent{0};  // part of the budget that is used, at time `seen`
    Clock::time_point seen{};
  };
  using Owners = std::map<std::string, Owner>;

  // Marks the calling thread as waiting while this object exists. If the thread belongs to a queue, that queue may run
  // a task on another thread instead.
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
  void run_here(const Task& task);                                 // runs a task of post() on the caller's thread
  Status run_charged(const std::string& owner, const Task& task);  // runs a task of run() on the caller's thread
  void charge(const std::string& owner, std::chrono::nanoseconds used);
  // The functions below require that the caller holds mutex_.
  Status check_budget(const std::string& owner);
  Owners::iterator next();  // returns the owner whose task is next; end() if no task may run now
  void add(const std::string& owner, Task task);
  void add_thread();
  void settle(Owner& owner, Clock::time_point now) const;  // reduces `spent` by the time that passed times per_second
  bool is_forgotten(const Owner& owner) const;
  void run_tasks();

  static constexpr int kMostAbsent = 64;  // most extra threads, which replace threads that wait in run()
  // A task counts at least one tick. An owner's ticks exceed level_ by at most kMostOwed, so that an owner who ran
  // alone for long does not wait too long when other owners get tasks.
  static constexpr std::chrono::milliseconds kTick{4};
  static constexpr std::uint64_t kMostOwed = 250;

  const int n_threads_, most_of_owner_;
  const Priority priority_;
  const Budget budget_;
  std::mutex mutex_;
  std::condition_variable there_;
  Owners owners_;  // owners that have tasks, have more ticks than level_, or have used budget
  std::uint64_t last_turn_ = 0;
  std::uint64_t level_ = 0;  // the largest ticks that an owner had when one of its tasks started
  std::size_t n_waiting_ = 0;
  int n_running_ = 0, n_absent_ = 0;
  bool is_stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace zinc_rt

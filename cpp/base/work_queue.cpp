#include "base/work_queue.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/platform/this_thread.h"
#include "base/platform/threads.h"

namespace zinc_rt {
namespace {

thread_local WorkQueue* own_queue = nullptr;  // the queue that the calling thread belongs to, if any

}  // namespace

WorkQueue::WorkQueue(int n_threads, int most_of_owner, Priority priority)
    : WorkQueue(n_threads, most_of_owner, priority, Budget{}) {}

WorkQueue::WorkQueue(int n_threads, int most_of_owner, Priority priority, Budget budget)
    : n_threads_(kHasThreads ? n_threads : 0), most_of_owner_(most_of_owner), priority_(priority), budget_(budget) {
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < n_threads_; ++i) add_thread();
}

void WorkQueue::add_thread() {
  threads_.emplace_back([this] {
    name_thread("zrt-work");
    if (priority_ == Priority::kBehindSteps) yield_to_others();
    own_queue = this;
    run_tasks();
  });
}

void WorkQueue::add(const std::string& owner, Task task) {
  const auto [it, is_new] = owners_.try_emplace(owner);
  Owner& mine = it->second;
  if (is_new) mine.seen = Clock::now();
  if (mine.tasks.empty() && mine.n_running == 0) {
    mine.turn = ++last_turn_;  // after all owners that wait already
    mine.ticks = std::clamp(mine.ticks, level_, level_ + kMostOwed);
  }
  mine.tasks.push_back(std::move(task));
  ++n_waiting_;
}

void WorkQueue::run_here(const Task& task) {
  try {
    task();
  } catch (const std::exception& error) {
    log().error("a request ended by an exception: {}", error.what());
  }
}

void WorkQueue::post(const std::string& owner, Task task) {
  if (n_threads_ == 0) return run_here(task);
  {
    const std::lock_guard lock(mutex_);
    add(owner, std::move(task));
  }
  there_.notify_one();
}

void WorkQueue::settle(Owner& owner, Clock::time_point now) const {
  const std::chrono::duration<double> passed = now - owner.seen;
  const std::chrono::duration<double> back(passed.count() * budget_.per_second);
  owner.spent -= std::min(owner.spent, std::chrono::duration_cast<std::chrono::nanoseconds>(back));
  owner.seen = now;
}

void WorkQueue::charge(const std::string& owner, std::chrono::nanoseconds used) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const auto [it, is_new] = owners_.try_emplace(owner);  // new only in a queue without threads
  Owner& mine = it->second;
  if (is_new) mine.seen = now;
  settle(mine, now);
  mine.spent += used;
  if (n_threads_ > 0) return;  // else next() forgets owners
  for (auto& [name, one] : owners_) settle(one, now);
  std::erase_if(owners_, [this](const auto& one) { return is_forgotten(one.second); });
}

bool WorkQueue::is_forgotten(const Owner& owner) const {
  const bool owes = budget_.burst.count() > 0 && owner.spent.count() > 0;
  return owner.tasks.empty() && owner.n_running == 0 && owner.ticks <= level_ && !owes;
}

Status WorkQueue::check_budget(const std::string& owner) {
  const auto it = owners_.find(owner);
  if (it == owners_.end() || budget_.burst.count() == 0) return {};
  settle(it->second, Clock::now());
  const auto over = it->second.spent - budget_.burst;
  if (over.count() <= 0) return {};
  auto error = fail(StatusCode::kExhausted,
                    "[work] tenant \"{}\" has used {:.1f} s of a processor for {}, {:.1f} s at once and {:.1f} s a "
                    "minute allowed",
                    owner, std::chrono::duration<double>(it->second.spent).count(), budget_.what,
                    std::chrono::duration<double>(budget_.burst).count(), 60 * budget_.per_second);
  error.error().retry_after_s = std::ceil(std::chrono::duration<double>(over).count() / budget_.per_second);
  return error;
}

Status WorkQueue::run_charged(const std::string& owner, const Task& task) {
  const auto begin = thread_time();
  Status status;
  try {
    if (is_stopping())
      status = fail(StatusCode::kUnavailable, "[work] no more work is taken");
    else
      task();
  } catch (const std::exception& error) {
    status = fail(StatusCode::kInternal, "[work] {}", error.what());
  }
  charge(owner, thread_time() - begin);
  return status;
}

Status WorkQueue::run(const std::string& owner, const Task& task, const std::stop_token& cancel) {
  struct Call {
    std::mutex mutex;
    std::condition_variable_any changed;
    bool has_begun = false, is_over = false;
    Status status;
  };
  const auto call = std::make_shared<Call>();
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return fail(StatusCode::kUnavailable, "[work] no more work is taken");
    ZRT_CHECK_OK(check_budget(owner));
    if (n_threads_ > 0)
      add(owner, [this, call, &owner, &task] {
        {
          const std::lock_guard begin(call->mutex);
          if (call->is_over) return;
          call->has_begun = true;
        }
        Status status = run_charged(owner, task);
        const std::lock_guard end(call->mutex);
        call->status = std::move(status);
        call->is_over = true;
        call->changed.notify_all();
      });
  }
  if (n_threads_ == 0) {
    if (cancel.stop_requested()) return fail(StatusCode::kCancelled, "[work] the request was taken back");
    return run_charged(owner, task);
  }
  there_.notify_one();
  const Absence absence;
  std::unique_lock lock(call->mutex);
  call->changed.wait(lock, cancel, [&] { return call->is_over; });
  if (!call->has_begun) {
    call->is_over = true;
    return fail(StatusCode::kCancelled, "[work] the request was taken back");
  }
  call->changed.wait(lock, [&] { return call->is_over; });
  return call->status;
}

bool WorkQueue::is_stopping() {
  const std::lock_guard lock(mutex_);
  return is_stopped_;
}

void WorkQueue::stop() {
  std::unique_lock lock(mutex_);
  is_stopped_ = true;
  there_.notify_all();
  while (!threads_.empty()) {  // a task that waits may add a thread while this loop joins others
    auto threads = std::exchange(threads_, {});
    lock.unlock();
    for (auto& thread : threads) thread.join();
    lock.lock();
  }
}

WorkQueue::Owners::iterator WorkQueue::next() {
  auto best = owners_.end();
  if (n_running_ - n_absent_ >= n_threads_) return best;
  for (auto it = owners_.begin(); it != owners_.end();) {
    const Owner& one = it->second;
    if (one.tasks.empty() && one.n_running == 0) {
      settle(it->second, Clock::now());
      it = is_forgotten(one) ? owners_.erase(it) : std::next(it);
      continue;
    }
    const bool may_run = !one.tasks.empty() && one.n_running < most_of_owner_;
    const auto rank = [](const Owner& owner) { return std::pair(owner.ticks, owner.turn); };
    if (may_run && (best == owners_.end() || rank(one) < rank(best->second))) best = it;
    ++it;
  }
  return best;
}

void WorkQueue::run_tasks() {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto it = owners_.end();
    const auto is_done = [&] { return is_stopped_ && n_waiting_ == 0 && n_running_ == 0; };
    there_.wait(lock, [&] { return (it = next()) != owners_.end() || is_done(); });
    if (it == owners_.end()) return;
    Owner& owner = it->second;
    auto task = std::move(owner.tasks.front());
    owner.tasks.pop_front();
    --n_waiting_;
    owner.turn = ++last_turn_;
    level_ = std::max(level_, owner.ticks);
    ++owner.n_running;
    ++n_running_;
    lock.unlock();
    const auto begin = thread_time();
    run_here(task);
    task = nullptr;
    const auto used = thread_time() - begin;
    lock.lock();
    const std::uint64_t ticks = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(used / kTick));
    owner.ticks = std::min(owner.ticks + ticks, level_ + kMostOwed);
    const bool was_at_bound = owner.n_running-- == most_of_owner_;
    const bool were_all_busy = n_running_-- - n_absent_ >= n_threads_;
    if (n_waiting_ == 0 && n_running_ == 0) {  // idle, so all owners' shares start from 0
      level_ = 0;
      for (auto& [name, one] : owners_) {
        one.ticks = 0;
        settle(one, Clock::now());
      }
      std::erase_if(owners_, [this](const auto& one) { return is_forgotten(one.second); });
    } else if (is_forgotten(owner)) {
      owners_.erase(it);
    }
    if (was_at_bound || were_all_busy || is_stopped_) there_.notify_all();
  }
}

WorkQueue::Absence::Absence() : queue_(own_queue) {
  if (queue_ == nullptr) return;
  const std::lock_guard lock(queue_->mutex_);
  ++queue_->n_absent_;
  const auto wanted = static_cast<std::size_t>(queue_->n_threads_ + std::min(queue_->n_absent_, kMostAbsent));
  if (queue_->threads_.size() < wanted) {
    try {
      queue_->add_thread();
    } catch (const std::system_error& error) {
      log().warn("a thread that waits is not replaced: {}", error.what());
    }
  }
  queue_->there_.notify_one();
}

WorkQueue::Absence::~Absence() {
  if (queue_ == nullptr) return;
  const std::lock_guard lock(queue_->mutex_);
  --queue_->n_absent_;
}

}  // namespace zinc_rt

#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace zinc_rt {
namespace {

constexpr int kSpins = 2000;

inline void pause_once() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns once `value` differs from `old`.
template <class T>
void wait_for_change(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_once();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int n_threads) {
  for (int i = 1; i < n_threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::take_items(int worker) {
  std::uint64_t done = 0;
  for (auto left = unclaimed_.load(std::memory_order_acquire); left > 0;) {
    if (!unclaimed_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) continue;
    call_(context_, n_ - left, worker);
    ++done;
    left = unclaimed_.load(std::memory_order_acquire);
  }
  if (done > 0 && unfinished_.fetch_sub(done, std::memory_order_acq_rel) == done) unfinished_.notify_all();
}

void ThreadPool::run(std::uint64_t n, Call call, void* context) {
  if (n <= 1 || workers_.empty()) {
    for (std::uint64_t i = 0; i < n; ++i) call(context, i, 0);
    return;
  }
  n_ = n;
  call_ = call;
  context_ = context;
  unfinished_.store(n, std::memory_order_relaxed);
  unclaimed_.store(n, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  take_items(0);
  for (auto left = unfinished_.load(std::memory_order_acquire); left != 0;
       left = unfinished_.load(std::memory_order_acquire))
    wait_for_change(unfinished_, left);
}

void ThreadPool::work(int worker) {
  std::uint32_t seen = 0;
  for (;;) {
    wait_for_change(epoch_, seen);
    seen = epoch_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    take_items(worker);
  }
}

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                       : static_cast<int>(std::thread::hardware_concurrency());
  std::ifstream file("/sys/fs/cgroup/cpu.max");  // "quota period", quota "max" when unlimited
  std::string quota;
  double period = 0;
  if (file >> quota >> period && quota != "max" && period > 0) {
    const double limit = std::strtod(quota.c_str(), nullptr) / period;
    if (limit > 0) n = std::min(n, std::max(1, static_cast<int>(limit + 0.5)));
  }
  return std::max(n, 1);
}

}  // namespace zinc_rt

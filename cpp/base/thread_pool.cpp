#include "base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <climits>

#include "base/platform/address_wait.h"
#include "base/platform/this_thread.h"
#include "base/processors.h"

namespace zinc_rt {
namespace {

// A thread spins for this long before it sleeps. This is longer than the gaps between the parallel ranges of a step,
// and far shorter than a time slice of the system's scheduler.
constexpr double kSpinMicros = 20;

inline void pause_once() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Returns how many iterations of spin_while take kSpinMicros. A pause takes about 10 to 150 cycles, depending on the
// processor. The fastest of several measurements counts, because other threads did not interrupt it.
int calibrated_spins() {
  using Clock = std::chrono::steady_clock;
  constexpr int kTurns = 200;
  const std::atomic<std::uint32_t> value{0};
  double least = 1e9;
  for (int i = 0; i < 8; ++i) {
    const auto begin = Clock::now();
    for (int turn = 0; turn < kTurns && value.load(std::memory_order_acquire) == 0; ++turn) pause_once();
    least = std::min(least, std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return static_cast<int>(kSpinMicros * kTurns / std::max(least, 0.1));
}

// Spins while `value` is `old`. Returns false if `value` did not change within n_spins iterations.
bool spin_while(const std::atomic<std::uint32_t>& value, std::uint32_t old, int n_spins) {
  for (int i = 0; i < n_spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return true;
    pause_once();
  }
  return value.load(std::memory_order_acquire) != old;
}

}  // namespace

ThreadPool::ThreadPool(int n_threads) : blocks_(new Block[static_cast<std::size_t>(std::max(n_threads, 1))]) {
  // If there are more threads than usable processors, a spinning thread would take a processor from a thread that has
  // work. Then no thread spins (n_spins_ stays 0).
  static const int n_spins = calibrated_spins();
  if (n_threads <= find_processors().n_usable()) n_spins_ = n_spins;
  workers_.reserve(static_cast<std::size_t>(std::max(n_threads - 1, 0)));
  for (int i = 1; i < n_threads; ++i)
    workers_.emplace_back([this, i] {
      name_thread("zrt-worker");
      work(i);
    });
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  wake(epoch_, INT_MAX);
  for (auto& worker : workers_) worker.join();
}

// Claims indices of a block and calls the body for each. Returns how many it claimed. The range cannot end before the
// caller subtracts that number from unfinished_.
std::uint64_t ThreadPool::take_block(int block, int worker) {
  auto& unclaimed = blocks_[static_cast<std::size_t>(block)].unclaimed;
  std::uint64_t done = 0, end = 0;
  for (auto left = unclaimed.load(std::memory_order_acquire); left > 0;) {
    if (!unclaimed.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) continue;
    if (done++ == 0) end = block_begin(static_cast<std::uint64_t>(block) + 1);
    call_(context_, end - left, worker);
    left = unclaimed.load(std::memory_order_acquire);
  }
  return done;
}

void ThreadPool::take_items(int worker) {
  const int n = n_threads();
  std::uint64_t done = 0;
  for (int i = 0; i < n; ++i) done += take_block(worker + i < n ? worker + i : worker + i - n, worker);
  if (done == 0) return;
  const auto range = range_;  // cannot change before unfinished_ is decreased below
  if (unfinished_.fetch_sub(done, std::memory_order_acq_rel) != done) return;
  ended_.store(range, std::memory_order_seq_cst);
  if (caller_sleeps_.load(std::memory_order_seq_cst)) wake(ended_, 1);
}

void ThreadPool::run(std::uint64_t n, Call call, void* context) {
  if (n <= 1 || workers_.empty()) {
    for (std::uint64_t i = 0; i < n; ++i) call(context, i, 0);
    return;
  }
  n_ = n;
  n_blocks_ = std::min(n, static_cast<std::uint64_t>(n_threads()));
  call_ = call;
  context_ = context;
  ++range_;
  unfinished_.store(n, std::memory_order_relaxed);
  for (std::uint64_t b = 0; b < n_blocks_; ++b)
    blocks_[b].unclaimed.store(block_begin(b + 1) - block_begin(b), std::memory_order_release);
  epoch_.store(range_, std::memory_order_seq_cst);
  // A worker cannot miss this wake-up. If it is about to sleep, it is either counted in n_asleep_ already or reads the
  // new epoch.
  if (const auto asleep = n_asleep_.load(std::memory_order_seq_cst); asleep > 0)
    wake(epoch_, static_cast<int>(std::min<std::uint64_t>(asleep, n - 1)));
  take_items(0);
  wait_for_end();
}

void ThreadPool::wait_for_end() {
  const auto before = range_ - 1;
  if (spin_while(ended_, before, n_spins_)) return;
  caller_sleeps_.store(true, std::memory_order_seq_cst);
  while (ended_.load(std::memory_order_seq_cst) == before) sleep_while(ended_, before);
  caller_sleeps_.store(false, std::memory_order_relaxed);
}

// Waits until the epoch differs from `seen`. Returns the new epoch.
std::uint32_t ThreadPool::wait_for_range(std::uint32_t seen) {
  if (!spin_while(epoch_, seen, n_spins_)) {
    n_asleep_.fetch_add(1, std::memory_order_seq_cst);
    while (epoch_.load(std::memory_order_seq_cst) == seen) sleep_while(epoch_, seen);
    n_asleep_.fetch_sub(1, std::memory_order_relaxed);
  }
  return epoch_.load(std::memory_order_acquire);
}

void ThreadPool::work(int worker) {
  for (std::uint32_t seen = 0;;) {
    seen = wait_for_range(seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    take_items(worker);
  }
}

int usable_threads() {
  return find_processors().n_threads();
}

}  // namespace zinc_rt

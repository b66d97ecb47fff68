#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <random>
#include <thread>

namespace zinc_rt {
namespace {

class Pool : public ::testing::TestWithParam<int> {};

TEST_P(Pool, EachIndexOnceByAKnownWorker) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.n_threads(), GetParam());
  for (const std::uint64_t n : {0u, 1u, 2u, 3u, 17u, 10000u}) {
    std::vector<std::atomic<int>> calls(n);
    std::atomic<bool> bad_worker{false};
    pool.parallel_for(n, [&](std::uint64_t i, int worker) {
      calls[i].fetch_add(1, std::memory_order_relaxed);
      if (worker < 0 || worker >= pool.n_threads()) bad_worker = true;
    });
    for (const auto& count : calls) ASSERT_EQ(count.load(), 1);
    EXPECT_FALSE(bad_worker);
  }
}

// The end of a range is seen by the caller with plain memory, and the next range sees what it wrote.
TEST_P(Pool, ReuseWithPlainMemory) {
  ThreadPool pool(GetParam());
  std::vector<int> values(64, 0);
  for (int round = 0; round < 300; ++round) {
    pool.parallel_for(values.size(), [&](std::uint64_t i, int) { values[i] += 1; });
    if (round % 2 == 0) values[0] += 1;
  }
  EXPECT_EQ(values[0], 450);
  EXPECT_EQ(std::accumulate(values.begin() + 1, values.end(), 0), 63 * 300);
}

// One worker at a time holds a worker number, so scratch memory a worker needs no lock.
TEST_P(Pool, WorkerNumbersAreNotShared) {
  ThreadPool pool(GetParam());
  std::vector<long> scratch(static_cast<std::size_t>(GetParam()), 0);
  for (int round = 0; round < 100; ++round)
    pool.parallel_for(200, [&](std::uint64_t, int worker) { ++scratch[static_cast<std::size_t>(worker)]; });
  EXPECT_EQ(std::accumulate(scratch.begin(), scratch.end(), 0L), 20000);
}

TEST_P(Pool, SleepsAndWakes) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // long past the spinning
    std::atomic<int> calls{0};
    pool.parallel_for(50, [&](std::uint64_t, int) { ++calls; });
    EXPECT_EQ(calls, 50);
  }
}

// Many short ranges, of changing lengths: a worker that wakes late meets a later range.
TEST_P(Pool, LateWorkersMeetLaterRanges) {
  ThreadPool pool(GetParam());
  std::vector<int> values(7, 0);
  for (std::uint64_t round = 0; round < 20000; ++round) {
    const std::uint64_t n = 2 + round % 6;
    pool.parallel_for(n, [&, round](std::uint64_t i, int) { values[i] += static_cast<int>(round % 3); });
  }
  std::vector<int> expected(7, 0);
  for (std::uint64_t round = 0; round < 20000; ++round)
    for (std::uint64_t i = 0; i < 2 + round % 6; ++i) expected[i] += static_cast<int>(round % 3);
  EXPECT_EQ(values, expected);
}

// Ranges of all lengths while workers fall asleep, are late or hold their block up: what is left of it goes to others.
TEST_P(Pool, RandomRangesWithLateAndSlowWorkers) {
  ThreadPool pool(GetParam());
  std::mt19937 rng(7);
  std::vector<std::uint32_t> values(200, 0);  // plain: a call too many or at the wrong time is a race
  std::uint32_t expected = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::uint64_t n = 1 + rng() % (round % 3 == 0 ? values.size() : 5);
    const auto slow = rng() % 64 == 0 ? rng() % n : n;
    pool.parallel_for(n, [&](std::uint64_t i, int) {
      if (i == slow) std::this_thread::sleep_for(std::chrono::microseconds(100));
      values[i] += 1;
    });
    if (rng() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(60));  // some sleep, some spin
    expected += static_cast<std::uint32_t>(n);
  }
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0u), expected);
}

// Who is held up in the first call of its block cannot take the others: they are done all the same.
TEST_P(Pool, ABlockIsNotHeldUpByItsWorker) {
  if (GetParam() == 1) GTEST_SKIP() << "one thread has nobody to help it";
  ThreadPool pool(GetParam());
  std::atomic<std::uint64_t> n_done{0};
  constexpr std::uint64_t kCalls = 100;
  std::atomic<bool> all_others{false};
  pool.parallel_for(kCalls, [&](std::uint64_t i, int) {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
         i == 0 && n_done < kCalls - 1 && std::chrono::steady_clock::now() < end;)
      std::this_thread::yield();
    if (i == 0) all_others = n_done == kCalls - 1;
    ++n_done;
  });
  EXPECT_TRUE(all_others);
}

// Indices of a block belong together: a thread that works alone on its block takes them in order.
TEST_P(Pool, BlocksAreContiguousAndTheSameEachTime) {
  ThreadPool pool(GetParam());
  const auto n_threads = static_cast<std::uint64_t>(GetParam());
  for (const std::uint64_t extra : {std::uint64_t{0}, n_threads - 1}) {
    const std::uint64_t n = 8 * n_threads + extra;
    std::vector<int> worker_of(n, -1);
    std::atomic<int> n_here{0};
    pool.parallel_for(n, [&](std::uint64_t i, int worker) {
      worker_of[i] = worker;
      const auto w = static_cast<std::uint64_t>(worker), first = 8 * w + std::min(w, extra);
      if (i != first) return;  // until each has begun with its own block, none goes on
      ++n_here;
      for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
           n_here < GetParam() && std::chrono::steady_clock::now() < end;)
        std::this_thread::yield();
    });
    EXPECT_EQ(n_here, GetParam());
    for (std::uint64_t w = 0; w < n_threads; ++w) EXPECT_EQ(worker_of[8 * w + std::min(w, extra)], static_cast<int>(w));
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Pool, ::testing::Range(1, 5));

TEST(PoolEnds, WithoutWork) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(3);
  EXPECT_EQ(ThreadPool(0).n_threads(), 1);
  EXPECT_GE(usable_threads(), 1);
}

}  // namespace
}  // namespace zinc_rt

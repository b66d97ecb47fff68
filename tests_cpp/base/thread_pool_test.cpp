#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>

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

INSTANTIATE_TEST_SUITE_P(Threads, Pool, ::testing::Range(1, 5));

TEST(PoolEnds, WithoutWork) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(3);
  EXPECT_EQ(ThreadPool(0).n_threads(), 1);
  EXPECT_GE(usable_threads(), 1);
}

}  // namespace
}  // namespace zinc_rt

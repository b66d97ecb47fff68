#include "server/work_queue.h"

#include <gtest/gtest.h>

#include <semaphore>

namespace zinc_rt::server {
namespace {

// Tasks that wait until they are let go, and what ran in which order.
struct Work {
  std::counting_semaphore<1000> go{0}, begun{0};
  std::mutex mutex;
  std::vector<std::string> order;

  WorkQueue::Task task(const std::string& name) {
    return [this, name] {
      {
        const std::lock_guard lock(mutex);
        order.push_back(name);
      }
      begun.release();
      go.acquire();
    };
  }
};

TEST(WorkQueue, OneOwnerLeavesAThreadToOthers) {
  Work work;
  WorkQueue queue(3, 2);
  for (int i = 0; i < 50; ++i) queue.post("flood", work.task("flood"));
  work.begun.acquire();
  work.begun.acquire();  // as many as it may have, and none of them ends
  queue.post("other", work.task("other"));
  work.begun.acquire();
  EXPECT_EQ(work.order, (std::vector<std::string>{"flood", "flood", "other"}));
  work.go.release(51);
  queue.stop();
  EXPECT_EQ(work.order.size(), 51u);
}

TEST(WorkQueue, OwnersTakeTurns) {
  Work work;
  WorkQueue queue(1);
  queue.post("a", work.task("a"));
  work.begun.acquire();
  for (int i = 0; i < 3; ++i) queue.post("a", work.task("a"));
  for (int i = 0; i < 2; ++i) queue.post("b", work.task("b"));
  queue.post("c", work.task("c"));
  work.go.release(7);
  queue.stop();
  // The four who wait when the first ends: a was served already, b came before c; then each its turn.
  EXPECT_EQ(work.order, (std::vector<std::string>{"a", "a", "b", "c", "a", "b", "a"}));
}

TEST(WorkQueue, ATaskThatThrowsEndsNothingElse) {
  std::atomic<int> n_ran{0};
  WorkQueue queue(2);
  queue.post([] { throw std::runtime_error("as a test wants"); });
  queue.post([&] { ++n_ran; });
  queue.stop();
  EXPECT_EQ(n_ran, 1);
}

}  // namespace
}  // namespace zinc_rt::server

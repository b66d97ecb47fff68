#include "base/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <semaphore>
#include <stdexcept>
#include <thread>

#include "base/platform/this_thread.h"

namespace zinc_rt {
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
  // When the first ends, a was served already, and b came before c; then each its turn.
  EXPECT_EQ(work.order, (std::vector<std::string>{"a", "b", "c", "a", "b", "a", "a"}));
}

void use_processor(std::chrono::milliseconds time) {
  for (const auto end = thread_time() + time; thread_time() < end;) {
  }
}

TEST(WorkQueue, WhoseTasksAreLongGetsFewer) {
  Work work;
  WorkQueue queue(1);
  queue.post("first", work.task("first"));
  work.begun.acquire();
  for (int i = 0; i < 3; ++i)
    queue.post("long", [&] {
      const std::lock_guard lock(work.mutex);
      work.order.push_back("long");
      use_processor(std::chrono::milliseconds(100));
    });
  for (int i = 0; i < 5; ++i) queue.post("short", work.task("short"));
  work.go.release(6);
  queue.stop();
  EXPECT_EQ(work.order,
            (std::vector<std::string>{"first", "long", "short", "short", "short", "short", "short", "long", "long"}));
}

std::stop_token stopped() {
  std::stop_source source;
  source.request_stop();
  return source.get_token();
}

TEST(WorkQueue, ATaskThatWaitsForAnotherQueueHoldsNoThread) {
  Work work;
  WorkQueue outer(1), inner(1);
  std::counting_semaphore<10> ended{0};
  for (int i = 0; i < 4; ++i)
    outer.post("slow " + std::to_string(i), [&] {
      EXPECT_TRUE(inner.run("slow", work.task("slow"), {}).has_value());
      ended.release();
    });
  work.begun.acquire();  // one of the four waits for the inner queue's only thread, three for their turn there
  outer.post("other", [&] { ended.release(); });
  ended.acquire();
  EXPECT_EQ(work.order, std::vector<std::string>{"slow"});
  work.go.release(4);
  for (int i = 0; i < 4; ++i) ended.acquire();
  outer.stop();
  inner.stop();
}

TEST(WorkQueue, WhatIsTakenBackDoesNotBegin) {
  Work work;
  WorkQueue queue(1);
  queue.post("a", work.task("a"));
  work.begun.acquire();
  std::stop_source gone;
  Status status;
  std::thread caller([&] { status = queue.run("b", [&] { ADD_FAILURE() << "it ran"; }, gone.get_token()); });
  gone.request_stop();
  caller.join();  // though the thread of the queue is still taken
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, StatusCode::kCancelled);
  work.go.release();
  queue.stop();
  EXPECT_EQ(queue.run("b", [] {}, {}).error().code, StatusCode::kUnavailable);
}

TEST(WorkQueue, TheEndWaitsForNoTaskThatHasNotBegun) {
  Work work;
  WorkQueue queue(1);
  queue.post("a", work.task("a"));
  work.begun.acquire();
  Status status;
  std::thread caller([&] { status = queue.run("b", [&] { ADD_FAILURE() << "it ran"; }, {}); });
  std::thread ender([&] { queue.stop(); });
  // Whether b is posted before the end or after it, it does not run.
  while (queue.run("c", [] {}, stopped()).error().code != StatusCode::kUnavailable) std::this_thread::yield();
  work.go.release();
  caller.join();
  ender.join();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, StatusCode::kUnavailable);
}

TEST(WorkQueue, WhoHasUsedItsProcessorTimeIsRefused) {
  WorkQueue queue(1, 1, WorkQueue::Priority::kNormal, {"tests", std::chrono::milliseconds(20), 0.001});
  EXPECT_TRUE(queue.run("a", [] { use_processor(std::chrono::milliseconds(60)); }, {}).has_value());
  const auto refused = queue.run("a", [] {}, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, StatusCode::kExhausted);
  EXPECT_THAT(refused.error().message, testing::StartsWith("[work] tenant \"a\" has used 0."));
  EXPECT_THAT(refused.error().message,
              testing::EndsWith(" s of a processor for tests, 0.0 s at once and 0.1 s a minute allowed"));
  EXPECT_GE(refused.error().retry_after_s, 20);
  EXPECT_TRUE(queue.run("b", [] {}, {}).has_value());
}

TEST(WorkQueue, ATaskThatThrowsEndsNothingElse) {
  std::atomic<int> n_ran{0};
  WorkQueue queue(2);
  queue.post([] { throw std::runtime_error("as a test wants"); });
  queue.post([&] { ++n_ran; });
  queue.stop();
  EXPECT_EQ(n_ran, 1);
}

TEST(WorkQueue, WithoutThreadsTheCallerRunsTheTask) {
  WorkQueue queue(0, 1, WorkQueue::Priority::kNormal, {"tests", std::chrono::milliseconds(1), 0.001});
  const auto me = std::this_thread::get_id();
  std::thread::id posted, ran;
  queue.post("a", [&] { posted = std::this_thread::get_id(); });
  EXPECT_EQ(posted, me);
  EXPECT_TRUE(queue.run("a", [&] { ran = std::this_thread::get_id(); }, {}));
  EXPECT_EQ(ran, me);
  queue.post("a", [] { throw std::runtime_error("lost"); });  // logged
  EXPECT_EQ(queue.run("a", [] { throw std::runtime_error("lost"); }, {}).error().code, StatusCode::kInternal);

  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(queue.run("a", [] { ADD_FAILURE(); }, stop.get_token()).error().code, StatusCode::kCancelled);

  // An owner whose budget is used is refused, others are not.
  const auto spend = [] {
    for (const auto begin = thread_time(); thread_time() - begin < std::chrono::milliseconds(2);) {
    }
  };
  EXPECT_TRUE(queue.run("spender", spend, {}));
  const auto refused = queue.run("spender", [] { ADD_FAILURE(); }, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StatusCode::kExhausted);
  EXPECT_GT(refused.error().retry_after_s, 0);
  EXPECT_TRUE(queue.run("b", [] {}, {}));

  queue.stop();
  EXPECT_EQ(queue.run("b", [] { ADD_FAILURE(); }, {}).error().code, StatusCode::kUnavailable);
}

}  // namespace
}  // namespace zinc_rt

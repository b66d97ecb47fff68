#include "engine/output_ring.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>

#include "base/platform/this_thread.h"

namespace zinc_rt {
namespace {

using namespace std::chrono_literals;

OutputEvent numbered(std::uint32_t i) {
  OutputEvent event;
  event.token_id = static_cast<std::int32_t>(i);
  event.cached_tokens = ~i;
  event.waited_us = std::int64_t{i} * 3;
  event.time_us = std::int64_t{i} << 20;
  return event;
}

void expect_numbered(const OutputEvent& event, std::uint32_t i) {
  ASSERT_EQ(event.token_id, static_cast<std::int32_t>(i));
  ASSERT_EQ(event.cached_tokens, ~i);
  ASSERT_EQ(event.waited_us, std::int64_t{i} * 3);
  ASSERT_EQ(event.time_us, std::int64_t{i} << 20);
  ASSERT_EQ(event.sequence, std::uint64_t{i} + 1);
}

TEST(OutputRing, CapacityIsAPowerOfTwo) {
  EXPECT_EQ(OutputRing(0).capacity(), 2u);
  EXPECT_EQ(OutputRing(5).capacity(), 8u);
  EXPECT_EQ(OutputRing(64).capacity(), 64u);
}

TEST(OutputRing, AllFieldsPass) {
  OutputRing ring(4);
  Error error;
  OutputEvent in;
  in.token_id = 1;
  in.cached_tokens = 2;
  in.kind = OutputKind::kRefused;
  in.is_first = true;
  in.reason = sched::Finish::kFault;
  in.time_us = 3;
  in.waited_us = 4;
  in.error = &error;
  ASSERT_TRUE(ring.push(in));
  OutputEvent out;
  ASSERT_TRUE(ring.pop(out));
  EXPECT_EQ(out.sequence, 1u);
  out.sequence = in.sequence;
  const auto fields = [](const OutputEvent& e) {
    return std::tuple(e.token_id, e.cached_tokens, e.kind, e.is_first, e.reason, e.generation, e.time_us, e.waited_us,
                      e.details, e.error, e.sequence);
  };
  EXPECT_EQ(fields(out), fields(in));
}

TEST(OutputRing, FullRefusesAndKeepsOrderOverManyRounds) {
  OutputRing ring(8);
  OutputEvent event;
  std::uint32_t pushed = 0, popped = 0;
  for (std::uint32_t round = 0; round < 100; ++round) {
    while (ring.push(numbered(pushed))) ++pushed;
    EXPECT_EQ(ring.size(), 8u);
    EXPECT_EQ(pushed - popped, 8u);
    for (std::uint32_t i = 0; i <= round % 8; ++i) {
      ASSERT_TRUE(ring.pop(event));
      expect_numbered(event, popped++);
    }
  }
  while (ring.pop(event)) expect_numbered(event, popped++);
  EXPECT_EQ(popped, pushed);
  EXPECT_EQ(ring.size(), 0u);
}

TEST(OutputRing, WaitForSpaceEnds) {
  OutputRing ring(2);
  EXPECT_TRUE(ring.wait_for_space(0us));
  ring.push(numbered(0));
  ring.push(numbered(1));
  EXPECT_FALSE(ring.wait_for_space(0us));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(ring.wait_for_space(20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
  std::jthread consumer([&] {
    std::this_thread::sleep_for(20ms);
    OutputEvent event;
    ring.pop(event);
  });
  EXPECT_TRUE(ring.wait_for_space(60s));
  EXPECT_TRUE(ring.push(numbered(2)));
}

TEST(OutputRing, CloseWakesAProducerThatWaits) {
  OutputRing ring(2);
  while (ring.push({})) {
  }
  std::jthread closer([&] {
    std::this_thread::sleep_for(20ms);
    ring.close();
  });
  EXPECT_FALSE(ring.wait_for_space(60s));
  EXPECT_TRUE(ring.is_closed());
}

TEST(OutputRing, CloseWakesASleeperAndLeavesEventsToPop) {
  OutputRing ring(4);
  OutputEvent event;
  {
    std::jthread consumer([&] {
      OutputEvent mine;
      EXPECT_FALSE(ring.wait_pop(mine));
    });
    std::this_thread::sleep_for(20ms);  // so that it usually sleeps; right either way
    ring.close();
  }
  EXPECT_FALSE(ring.push({}));

  OutputRing other(4);
  other.push(numbered(0));
  other.push(numbered(1));
  other.close();
  EXPECT_FALSE(other.push(numbered(2)));
  ASSERT_TRUE(other.wait_pop(event));
  expect_numbered(event, 0);
  ASSERT_TRUE(other.wait_pop(event));
  expect_numbered(event, 1);
  EXPECT_FALSE(other.wait_pop(event));
}

// A million events through small and large rings; errors on the heap change hands, so a torn or doubled event is a
// wrong number, a double free or a race report.
TEST(OutputRing, TwoThreadsAMillionEvents) {
  constexpr std::pair<std::uint32_t, std::uint32_t> kRuns[] = {{4, 50'000}, {1024, 950'000}};
  for (const auto& [capacity, n_events] : kRuns) {
    OutputRing ring(capacity);
    std::jthread producer([&ring, n_events] {
      for (std::uint32_t i = 0; i < n_events; ++i) {
        OutputEvent event = numbered(i);
        if (i % 16 == 0) event.error = std::make_unique<Error>(StatusCode::kInternal, std::to_string(i), 0).release();
        while (!ring.push(event)) std::this_thread::yield();
      }
      ring.close();
    });
    OutputEvent event;
    std::uint32_t n = 0;
    for (; ring.wait_pop(event); ++n) {
      expect_numbered(event, n);
      const std::unique_ptr<Error> error(event.error);
      ASSERT_EQ(error != nullptr, n % 16 == 0);
      if (error) {
        ASSERT_EQ(error->message, std::to_string(n));
      }
    }
    EXPECT_EQ(n, n_events);
  }
}

// One event at a time, and back: each side sleeps or is about to when the other acts, so a lost wake-up hangs here.
TEST(OutputRing, NoWakeUpIsLost) {
  constexpr std::uint32_t kRounds = 20'000;
  OutputRing there(2), back(2);
  std::jthread echo([&] {
    OutputEvent event;
    while (there.wait_pop(event)) back.push(event);
    back.close();
  });
  OutputEvent event;
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    ASSERT_TRUE(there.push(numbered(i)));
    ASSERT_TRUE(back.wait_pop(event));
    expect_numbered(event, i);
  }
  there.close();
  EXPECT_FALSE(back.wait_pop(event));
}

double thread_cpu_ms() {
  return std::chrono::duration<double, std::milli>(thread_time()).count();
}

// Processor time of the thread, so a busy machine changes nothing: a consumer that spun would use all of the wait.
TEST(OutputRing, AnIdleConsumerSleeps) {
  OutputRing ring(4);
  double used_ms = -1;
  {
    std::jthread consumer([&] {
      OutputEvent event;
      const double before = thread_cpu_ms();
      EXPECT_FALSE(ring.wait_pop(event));
      used_ms = thread_cpu_ms() - before;
    });
    std::this_thread::sleep_for(400ms);
    ring.close();
  }
  EXPECT_GE(used_ms, 0);
  EXPECT_LT(used_ms, 40);
}

}  // namespace
}  // namespace zinc_rt

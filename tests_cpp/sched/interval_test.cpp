// What an interactive tenant feels of fifteen batch slots, in the time of a machine without noise: each step takes
// base + per_token * tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sched/scheduler.h"

namespace zinc_rt::sched {
namespace {

struct Machine {
  double base_us, per_token_us;
};

class Intervals : public ::testing::TestWithParam<Machine> {};

std::vector<double> interactive_intervals(const Machine& machine, std::size_t warm, std::size_t wanted) {
  Options options;
  options.n_slots = 16;
  options.n_pages = 4096;
  options.max_context = 8192;
  options.chunk_cap = 256;
  TenantBook book;
  Quota quota;
  quota.max_concurrent_slots = 15;
  quota.max_kv_pages = 4096;
  quota.decode_tokens_per_s = quota.prefill_tokens_per_s = 1e9;
  quota.qos = Qos::kInteractive;
  const TenantId fast = book.add(quota, 0);
  quota.qos = Qos::kBatch;
  const TenantId slow = book.add(quota, 0);
  Scheduler scheduler(options, book);
  std::mt19937 random(1);
  const auto submit = [&](TenantId tenant, Qos qos, std::uint32_t prompt, std::uint32_t answer, Micros now) {
    RequestParams p;
    p.tenant = tenant;
    p.qos = qos;
    for (std::uint32_t i = 0; i < prompt; ++i) p.prompt.push_back(static_cast<std::int32_t>(random() % 50000));
    p.max_tokens = answer;
    EXPECT_TRUE(scheduler.submit(std::move(p), now));
  };
  Micros now = 0, last = 0;
  submit(fast, Qos::kInteractive, 8, 4000, now);
  std::vector<double> intervals;
  for (std::size_t n = 0; n < warm + wanted;) {
    while (scheduler.n_waiting() < 16) submit(slow, Qos::kBatch, 32 + random() % 33, 128 + random() % 385, now);
    scheduler.admit(now);
    const StepPlan& plan = scheduler.plan(now);
    const double us = machine.base_us + machine.per_token_us * plan.n_tokens;
    const std::vector<std::int32_t> tokens(plan.n_outputs, 7);
    now += static_cast<Micros>(us);
    scheduler.commit(tokens, now, us);
    for (const Event& e : scheduler.events()) {
      if (e.kind != EventKind::kToken || e.tenant != fast) continue;
      if (n++ > warm) intervals.push_back(static_cast<double>(now - last));
      last = now;
    }
    scheduler.clear_events();
  }
  return intervals;
}

TEST_P(Intervals, OfAnInteractiveStreamAmongBatchSlots) {
  auto intervals = interactive_intervals(GetParam(), 1500, 2000);
  std::ranges::sort(intervals);
  const double p50 = intervals[intervals.size() / 2], p99 = intervals[intervals.size() * 99 / 100];
  RecordProperty("p99_by_p50", std::to_string(p99 / p50));
  EXPECT_LE(p99, 1.3 * p50) << p50 << " us and " << p99 << " us";
  EXPECT_LE(intervals.back(), 1.35 * p50);
}

INSTANTIATE_TEST_SUITE_P(Machines, Intervals,
                         ::testing::Values(Machine{25'000, 5'000}, Machine{120'000, 3'000}, Machine{4'000, 100}),
                         [](const auto& info) { return "base_" + std::to_string(int(info.param.base_us)); });

}  // namespace
}  // namespace zinc_rt::sched

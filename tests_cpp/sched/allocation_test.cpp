// A step of a steady state allocates nothing.
#include <gtest/gtest.h>

#include "sched/scheduler.h"
#include "tests_cpp/base/counting_allocator.h"

namespace zinc_rt::sched {
namespace {

void run_step(Scheduler& scheduler, Micros& now) {
  static const std::vector<std::int32_t> tokens(64, 5);
  scheduler.admit(now);
  const StepPlan& plan = scheduler.plan(now);
  ASSERT_FALSE(plan.empty());
  now += 1000;
  scheduler.commit(std::span(tokens).first(plan.n_outputs), now, 1000);
  scheduler.clear_events();
}

void expect_no_allocation(bool is_recurrent, std::uint32_t n_waiting) {
  ZRT_NEED_ALLOCATION_COUNT();
  Options options;
  options.n_pages = 64 * 32;
  options.max_context = 512;
  options.queue_cap = 2048;
  options.is_recurrent = is_recurrent;
  options.n_checkpoints = is_recurrent ? 96 : 0;
  TenantBook tenants;
  Quota quota;
  quota.max_concurrent_slots = 64;
  quota.decode_tokens_per_s = quota.prefill_tokens_per_s = 1e9;
  for (int i = 0; i < 4; ++i) tenants.add(quota, 0);
  Scheduler scheduler(options, tenants);
  Micros now = 0;
  for (std::uint32_t i = 0; i < 64 + n_waiting; ++i) {
    RequestParams params;
    params.tenant = i % 4;
    params.prompt = mem::SpanList(std::vector<std::int32_t>(20, static_cast<std::int32_t>(i)));
    params.max_tokens = 400;
    ASSERT_TRUE(scheduler.submit(std::move(params), now));
  }
  while (scheduler.stats().decode_tokens < 64 * 10) run_step(scheduler, now);
  const AllocationCount allocations;
  for (int i = 0; i < 100; ++i) run_step(scheduler, now);
  EXPECT_EQ(allocations.so_far(), 0u);
  EXPECT_EQ(scheduler.n_running(), 64u);
}

TEST(Allocations, NoneInASteadyState) {
  expect_no_allocation(false, 0);
}

TEST(Allocations, NoneWithRecurrentState) {
  expect_no_allocation(true, 0);
}

TEST(Allocations, NoneWhileOthersWait) {
  expect_no_allocation(false, 1000);
}

}  // namespace
}  // namespace zinc_rt::sched

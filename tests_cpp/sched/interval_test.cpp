// What streams feel of other requests, in the time of a machine without noise: of fifteen batch slots, each step taking
// base + per_token * tokens; and of long prompts of their own class.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sched/scheduler.h"

namespace zinc_rt::sched {
namespace {

struct Machine {
  double base_us, per_token_us;
};

// Of a tenant that no rate holds back.
Quota wide_quota(std::uint32_t slots, std::uint32_t pages, Qos qos) {
  Quota quota;
  quota.max_concurrent_slots = slots;
  quota.max_kv_pages = pages;
  quota.decode_tokens_per_s = quota.prefill_tokens_per_s = 1e9;
  quota.qos = qos;
  return quota;
}

class Intervals : public ::testing::TestWithParam<Machine> {};

std::vector<double> interactive_intervals(const Machine& machine, std::size_t warm, std::size_t wanted) {
  Options options;
  options.n_slots = 16;
  options.n_pages = 4096;
  options.max_context = 8192;
  options.chunk_cap = 256;
  TenantBook book;
  const TenantId fast = book.add(wide_quota(15, 4096, Qos::kInteractive), 0);
  const TenantId slow = book.add(wide_quota(15, 4096, Qos::kBatch), 0);
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

using StepCost = double (*)(const StepSize& size, std::uint32_t n_outputs);  // us

// SmolLM2 135M on two cores, roughly.
double small_model(const StepSize& size, std::uint32_t n_outputs) {
  return 4'500 + 1'000 * size.tokens + 1.2 * size.pairs + 500 * n_outputs;
}

struct BesidePrompts {
  double solo_us = 0;                 // the median step before the prompts come
  double worst_us = 0;                // the longest since; every stream decodes in every step
  double part = 0;                    // of steps with prompts, what these add to them
  std::vector<std::uint32_t> chunks;  // prompt tokens of steps
};

// A model of 8 billion weights on a large GPU, roughly.
double large_gpu(const StepSize& size, std::uint32_t n_outputs) {
  return 4'000 + 50 * size.tokens + 10 * n_outputs;
}

// Streams of one tenant decode; after 100 steps come prompts of 1,100 tokens of another, each answered by 8 tokens, and
// `again` steps later as many more.
BesidePrompts streams_beside_prompts(StepCost cost, std::uint32_t n_streams, std::uint32_t n_prompts,
                                     Qos streams_qos = Qos::kInteractive, Qos prompts_qos = Qos::kInteractive,
                                     int again = 0) {
  Options options;
  options.n_slots = 64;
  options.n_pages = 16384;
  options.max_context = 2048;
  options.chunk_cap = cost == large_gpu ? 2048 : 256;
  TenantBook book;
  const Quota quota = wide_quota(64, 16384, Qos::kInteractive);
  const TenantId streams = book.add(quota, 0), prompts = book.add(quota, 0);
  Scheduler scheduler(options, book);
  Micros now = 0;
  std::int32_t n_submitted = 0;
  const auto submit = [&](TenantId tenant, std::uint32_t n, std::uint32_t prompt, std::uint32_t answer) {
    for (std::uint32_t i = 0; i < n; ++i) {
      RequestParams p;
      p.tenant = tenant;
      p.qos = tenant == streams ? streams_qos : prompts_qos;
      p.prompt = mem::SpanList(std::vector<std::int32_t>(prompt, n_submitted++));  // none begins as another
      p.max_tokens = answer;
      EXPECT_TRUE(scheduler.submit(std::move(p), now));
    }
  };
  submit(streams, n_streams, 30, 2000);
  std::vector<double> before;
  BesidePrompts found;
  double all_us = 0, added_us = 0;
  for (int step = 0; step < 900; ++step) {
    if (step == 100 || (again > 0 && step == 100 + again)) submit(prompts, n_prompts, 1100, 8);
    scheduler.admit(now);
    const StepPlan& plan = scheduler.plan(now);
    StepSize size, decodes;
    for (const PlanItem& item : plan.items) {
      size.add(item.begin, item.n);
      if (item.is_decode) decodes.add(item.begin, item.n);
    }
    const double us = cost(size, plan.n_outputs);
    if (step >= 50 && step < 100) before.push_back(us);
    if (step >= 100) {
      found.worst_us = std::max(found.worst_us, us);
      found.chunks.push_back(plan.n_tokens - plan.n_decode);
      if (found.chunks.back() > 0) all_us += us, added_us += us - cost(decodes, plan.n_decode);
    }
    now += static_cast<Micros>(us);
    scheduler.commit(std::vector<std::int32_t>(plan.n_outputs, 7), now, us);
    scheduler.clear_events();
  }
  std::ranges::sort(before);
  found.solo_us = before[before.size() / 2];
  found.part = added_us / all_us;
  return found;
}

TEST(StreamsBesidePrompts, HaveAWorstIntervalOfThreeTimesTheUsual) {
  for (const std::uint32_t n_streams : {1, 2, 4, 16, 48}) {
    const auto found = streams_beside_prompts(small_model, n_streams, 8);
    EXPECT_LE(found.worst_us, 3 * found.solo_us) << n_streams << " streams, " << found.solo_us << " us alone";
  }
}

TEST(StreamsBesidePrompts, LeavePromptsTheirPart) {
  EXPECT_GE(streams_beside_prompts(small_model, 48, 8).part, 0.4);
  EXPECT_GE(streams_beside_prompts(small_model, 1, 8).part, 0.25);
}

TEST(StreamsBesidePrompts, OfStandardTakeWhatTheGapAllows) {
  const auto gpu = streams_beside_prompts(large_gpu, 16, 40, Qos::kStandard, Qos::kStandard);
  EXPECT_LE(gpu.worst_us, 60'000);
  EXPECT_GE(gpu.part, 0.85);
  // Where decoding alone takes long, prompts have most of the machine all the same.
  const auto cpu = streams_beside_prompts(small_model, 48, 4, Qos::kStandard, Qos::kStandard);
  EXPECT_LE(cpu.worst_us, 5 * cpu.solo_us);
  EXPECT_GE(cpu.part, 0.6);
}

TEST(StreamsBesidePrompts, OfInteractiveKeepTheirGap) {
  for (const Qos prompts : {Qos::kStandard, Qos::kBatch}) {
    const auto found = streams_beside_prompts(large_gpu, 1, 40, Qos::kInteractive, prompts);
    EXPECT_LE(found.worst_us, prompts == Qos::kBatch ? 1.2 * found.solo_us : 24'000);
    // Standard prompts are not held up by it, either.
    EXPECT_GE(found.part, prompts == Qos::kStandard ? 0.4 : 0);
  }
}

// The second burst is met as the first was left: its first step is as long as those before.
TEST(StreamsBesidePrompts, TakeTheNextBurstAtOnce) {
  const auto found = streams_beside_prompts(large_gpu, 16, 8, Qos::kStandard, Qos::kStandard, 400);
  const std::uint32_t most = *std::ranges::max_element(found.chunks);
  EXPECT_GE(most, 800u);
  EXPECT_GE(found.chunks[400], most * 9 / 10);
}

// Where a step's cost does not show what prompts cost, they are tried out.
TEST(StreamsBesidePrompts, SeeChunksThatAtMostDouble) {
  const auto free = [](const StepSize&, std::uint32_t) { return 5'000.0; };
  auto chunks = streams_beside_prompts(free, 1, 4).chunks;
  chunks.resize(7);
  EXPECT_EQ(chunks, (std::vector<std::uint32_t>{8, 16, 32, 64, 128, 255, 255}));
}

// Texts that are computed whole: none is cut, all come in, and short ones share steps; also where pages are for one long
// text alone.
class WholeTexts : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(WholeTexts, ComeInOneStepEach) {
  Options options;
  options.n_slots = 8;
  options.n_pages = GetParam();
  options.max_context = 512;
  options.chunk_cap = 512;
  options.needs_whole_texts = true;
  options.prefix_cache = false;
  TenantBook book;
  const TenantId tenants[] = {book.add(wide_quota(8, 512, Qos::kStandard), 0),
                              book.add(wide_quota(8, 512, Qos::kInteractive), 0)};
  Scheduler scheduler(options, book);
  std::mt19937 random(3);
  std::vector<std::uint32_t> lengths;
  for (std::size_t i = 0; i < 60; ++i) {
    RequestParams p;
    p.tenant = tenants[i % 2];
    p.qos = i % 2 == 0 ? Qos::kStandard : Qos::kInteractive;
    p.max_tokens = 0;
    lengths.push_back(i % 7 == 0 ? 512 : 1 + static_cast<std::uint32_t>(random() % 200));
    p.prompt = mem::SpanList(std::vector<std::int32_t>(lengths.back(), 5));
    ASSERT_TRUE(scheduler.submit(std::move(p), 0));
  }
  std::vector<std::uint32_t> computed;
  std::size_t n_finished = 0, n_steps = 0;
  for (Micros now = 0; n_finished < lengths.size() && n_steps < 500; now += 10'000, ++n_steps) {
    scheduler.admit(now);
    const StepPlan& plan = scheduler.plan(now);
    ASSERT_LE(plan.n_tokens, options.chunk_cap);
    for (const PlanItem& item : plan.items) {
      EXPECT_EQ(item.begin, 0u);
      EXPECT_EQ(item.n, scheduler.in_slot(item.slot)->n_prompt);
      computed.push_back(item.n);
    }
    scheduler.commit({}, now, 5'000.0 + plan.n_tokens * 50.0);
    for (const Event& e : scheduler.events())
      n_finished += e.kind == EventKind::kFinished && e.reason == Finish::kLength ? 1 : 0;
    scheduler.clear_events();
  }
  EXPECT_EQ(n_finished, lengths.size());
  EXPECT_LT(n_steps, lengths.size());
  EXPECT_EQ(scheduler.pages().n_free(), options.n_pages);
  EXPECT_EQ(scheduler.stats().internal_errors, 0u);
  std::ranges::sort(lengths);
  std::ranges::sort(computed);
  EXPECT_EQ(computed, lengths);
}

INSTANTIATE_TEST_SUITE_P(Pages, WholeTexts, ::testing::Values(512u, 40u, 33u));

}  // namespace
}  // namespace zinc_rt::sched

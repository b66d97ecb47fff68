// Rows behind long texts take turns where they would make each step long for the rows of others.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sched/scheduler.h"

namespace zinc_rt::sched {
namespace {

struct Streams {
  double weight = 1;
  std::uint32_t n = 1, n_prompt = 16;
  Qos qos = Qos::kStandard;
};

// SmolLM2 135M on two cores, roughly; `fixed_us` is what reading the weights takes.
struct DecodeCost {
  double fixed_us = 5'000, token_us = 500, pair_us = 2.5;
  double us(const StepSize& size) const { return fixed_us + token_us * size.tokens + pair_us * size.pairs; }
};

struct Seen {
  std::vector<double> worst_gap_us, n_tokens;      // by tenant: the longest gap of any of its streams; tokens in all
  double mean_step_us = 0, longest_of_all_us = 0;  // longest_of_all: a step of all rows would have taken so long
};

// What streams of several tenants see of each other, over 2,000 steps in which all of them decode.
Seen decode(const std::vector<Streams>& tenants, const DecodeCost& cost) {
  Options options;
  options.n_slots = 32;
  options.n_pages = 32 * 1024;
  options.max_context = 16384;
  TenantBook book;
  for (const Streams& t : tenants) {
    Quota quota;
    quota.max_concurrent_slots = 32;
    quota.max_kv_pages = options.n_pages;
    quota.decode_tokens_per_s = quota.prefill_tokens_per_s = 1e9;
    quota.weight = t.weight;
    quota.qos = t.qos;
    book.add(quota, 0);
  }
  Scheduler scheduler(options, book);
  std::uint32_t n_streams = 0;
  Micros now = 0;
  const auto submit = [&](TenantId id) {
    for (std::uint32_t i = 0; i < tenants[id].n; ++i) {
      RequestParams p;
      p.tenant = id;
      p.qos = tenants[id].qos;
      for (std::uint32_t token = 0; token < tenants[id].n_prompt; ++token)
        p.prompt.push_back(static_cast<std::int32_t>(1000 * n_streams + token % 997));
      p.max_tokens = 10000;
      ++n_streams;
      EXPECT_TRUE(scheduler.submit(std::move(p), now));
    }
  };
  submit(tenants.size() - 1);
  Seen seen;
  seen.worst_gap_us.resize(tenants.size());
  seen.n_tokens.resize(tenants.size());
  std::map<RequestId, Micros> last;
  std::uint32_t steps = 0;
  while (steps < 2000) {
    scheduler.admit(now);
    const StepPlan& plan = scheduler.plan(now);
    StepSize size, of_all;
    for (const PlanItem& item : plan.items) size.add(item.begin, item.n);
    for (std::uint32_t slot = 0; slot < options.n_slots; ++slot)
      if (const Request* r = scheduler.in_slot(slot)) of_all.add(r->n_done, 1);
    const double us = cost.us(size);
    const bool counts = last.size() == n_streams && plan.n_tokens == plan.n_decode;
    now += static_cast<Micros>(us);
    scheduler.commit(std::vector<std::int32_t>(plan.n_outputs, 7), now, us);
    for (const Event& e : scheduler.events()) {
      if (e.kind != EventKind::kToken) continue;
      const auto before = last.find(e.request);
      if (counts && steps > 50) {  // the costs are known by then
        seen.n_tokens[e.tenant] += 1;
        seen.worst_gap_us[e.tenant] = std::max(seen.worst_gap_us[e.tenant], static_cast<double>(now - before->second));
      }
      last[e.request] = now;
    }
    scheduler.clear_events();
    // The others come when the last tenant's prompts are done, so that they do not grow long meanwhile.
    if (last.size() == tenants.back().n && n_streams == tenants.back().n)
      for (TenantId id = 0; id + 1 < tenants.size(); ++id) submit(id);
    if (!counts) continue;
    ++steps;
    seen.mean_step_us += us / 2000;
    seen.longest_of_all_us = std::max(seen.longest_of_all_us, cost.us(of_all));
  }
  return seen;
}

TEST(DecodeRows, AShortStreamDoesNotWaitForFourLongOnes) {
  const DecodeCost cost;
  const auto seen = decode({{1, 1, 50}, {1, 4, 6000}}, cost);
  // Of two tenants each has half of the rows' time at most.
  EXPECT_LT(seen.worst_gap_us[0], 0.65 * seen.longest_of_all_us);
  // The long ones go on, in turns, and have most of the time.
  EXPECT_LT(seen.worst_gap_us[1], 1.8 * seen.longest_of_all_us);
  EXPECT_GT(seen.n_tokens[1], seen.n_tokens[0]);
}

TEST(DecodeRows, AllRunWhereNobodyTakesMoreThanItsShare) {
  const DecodeCost cost;
  for (const std::vector<Streams>& tenants :
       {std::vector<Streams>{{1, 2, 6000}, {1, 2, 6000}}, {{1, 6, 6000}}, {{3, 3, 6000}, {1, 1, 6000}}}) {
    const auto seen = decode(tenants, cost);
    for (std::size_t i = 0; i < tenants.size(); ++i) EXPECT_EQ(seen.n_tokens[i], tenants[i].n * 1949.0) << i;
  }
}

TEST(DecodeRows, StepsThatAreShortEnoughHaveAllRows) {
  const auto seen = decode({{1, 1, 50}, {1, 4, 6000}}, {.fixed_us = 2'000, .token_us = 50, .pair_us = 0.2});
  EXPECT_EQ(seen.n_tokens[1], 4 * seen.n_tokens[0]);
}

TEST(DecodeRows, ReadingTheWeightsIsNotPaidManyTimesMore) {
  // Eight billion weights on a processor: a step of one row takes 300 ms, whatever is done.
  const DecodeCost cost{.fixed_us = 300'000, .token_us = 5'000, .pair_us = 5};
  const auto seen = decode({{1, 1, 50}, {1, 12, 6000}}, cost);
  const double per_token = seen.mean_step_us * 1949 / (seen.n_tokens[0] + seen.n_tokens[1]);
  const double all_at_once = (300'000 + 13 * 5'000 + 5 * 12 * 7'000) / 13.0;
  EXPECT_LT(per_token, 1.5 * all_at_once);
}

TEST(DecodeRows, AMoreUrgentClassDoesNotSitOut) {
  const auto seen = decode({{1, 1, 50, Qos::kStandard}, {1, 4, 6000, Qos::kInteractive}}, {});
  EXPECT_EQ(seen.n_tokens[1], 4 * seen.n_tokens[0]);
}

TEST(DecodeRows, WeightsAreSharesOfTheTime) {
  const auto even = decode({{1, 1, 50}, {1, 6, 6000}}, {}), heavy = decode({{1, 1, 50}, {8, 6, 6000}}, {});
  EXPECT_GT(heavy.n_tokens[1] / heavy.n_tokens[0], 1.3 * even.n_tokens[1] / even.n_tokens[0]);
}

}  // namespace
}  // namespace zinc_rt::sched

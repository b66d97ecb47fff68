// The scheduler's parts alone: slot table, tenant book, cost model, request queue.
#include <gtest/gtest.h>

#include <cmath>

#include "sched/cost_model.h"
#include "sched/request_queue.h"
#include "sched/shares.h"
#include "sched/slot_table.h"
#include "sched/tenant_book.h"

namespace zinc_rt::sched {
namespace {

constexpr SlotState kStates[] = {SlotState::kFree,   SlotState::kAdmitted,  SlotState::kPrefill,
                                 SlotState::kDecode, SlotState::kPreempted, SlotState::kDone};

// By state, what may follow (rows and columns in the order of kStates).
constexpr bool kLegal[6][6] = {{0, 1, 0, 0, 0, 0}, {0, 0, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1},
                               {0, 0, 1, 0, 1, 1}, {1, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0}};

TEST(SlotTable, AllowsTheTransitionsThatHaveAMeaning) {
  for (std::size_t from = 0; from < 6; ++from)
    for (std::size_t to = 0; to < 6; ++to) {
      SlotTable table(1, 4);
      table[0].state = kStates[from];
      const auto status = table.set_state(0, kStates[to]);
      EXPECT_EQ(status.has_value(), kLegal[from][to]) << to_string(kStates[from]) << " to " << to_string(kStates[to]);
      EXPECT_EQ(table[0].state, kStates[kLegal[from][to] ? to : from]);
      if (!status) {
        EXPECT_EQ(status.error().code, StatusCode::kInternal);
      }
    }
}

TEST(SlotTable, GivesOutEachSlotOnceAndEmpty) {
  SlotTable table(3, 4);
  EXPECT_EQ(table.take(), 0u);
  EXPECT_EQ(table.take(), 1u);
  EXPECT_EQ(table.take(), 2u);
  EXPECT_EQ(table.take(), kNone);
  table.push_page(1, 7);
  table.push_page(1, 9);
  table.set_rope_variant(1, 2);
  EXPECT_EQ(table.pages(1)[1], 9u);
  EXPECT_EQ(table.page_ids()[4], 7u);
  EXPECT_EQ(table.page_counts()[1], 2u);
  EXPECT_EQ(table.pages(0).size(), 0u);
  table.clear_pages(1);
  table.give_back(1);
  EXPECT_EQ(table.n_free(), 1u);
  EXPECT_EQ(table.take(), 1u);
  EXPECT_EQ(table[1].state, SlotState::kAdmitted);
  EXPECT_EQ(table[1].page_count, 0u);
  EXPECT_EQ(table.rope_variants()[1], 0u);
}

TEST(TokenBucket, HoldsFiveSecondsAndPaysBackDebt) {
  TokenBucket bucket;
  bucket.set_rate(10, 0);
  EXPECT_DOUBLE_EQ(bucket.used(0), 0);
  EXPECT_DOUBLE_EQ(bucket.used(60'000'000), 0);  // no more than the window
  bucket.take(50, 0);
  EXPECT_FALSE(bucket.has_any(0));
  EXPECT_DOUBLE_EQ(bucket.used(0), 1);
  EXPECT_TRUE(bucket.has_any(bucket.ready_at(0)));
  bucket.take(20, 0);
  EXPECT_DOUBLE_EQ(bucket.used(0), 1.4);
  const Micros ready = bucket.ready_at(0);
  EXPECT_NEAR(static_cast<double>(ready), 2e6, 2);
  EXPECT_FALSE(bucket.has_any(ready - 10));
  EXPECT_TRUE(bucket.has_any(ready));
  EXPECT_NEAR(bucket.used(3'000'000), 0.8, 1e-9);
}

TEST(TokenBucket, KeepsThePartUsedWhenTheRateChanges) {
  TokenBucket bucket;
  bucket.set_rate(10, 0);
  bucket.take(20, 0);
  bucket.set_rate(1000, 0);
  EXPECT_DOUBLE_EQ(bucket.used(0), 0.4);
}

TEST(TokenBucket, MakesUpADebtAtTheNewRate) {
  TokenBucket bucket;
  bucket.set_rate(10, 0);
  bucket.take(75, 0);  // 25 more than there were
  bucket.set_rate(1000, 0);
  EXPECT_NEAR(static_cast<double>(bucket.ready_at(0)), 25'000, 2);
}

TEST(TenantBook, DominantShareIsTheLargestOverWeight) {
  TenantBook book;
  Quota quota;
  quota.max_concurrent_slots = 4;
  quota.max_kv_pages = 100;
  quota.decode_tokens_per_s = 10;
  quota.weight = 2;
  const TenantId id = book.add(quota, 0);
  EXPECT_DOUBLE_EQ(book.dominant_share(id, 0), 0);
  book[id].slots = 1;
  EXPECT_DOUBLE_EQ(book.dominant_share(id, 0), 0.125);
  book[id].pages = 60;
  EXPECT_DOUBLE_EQ(book.dominant_share(id, 0), 0.3);
  book.serve(id, Qos::kStandard, 0, 40, 0);
  EXPECT_DOUBLE_EQ(book.dominant_share(id, 0), 0.4);
  EXPECT_DOUBLE_EQ(book[id].service, 40);
  EXPECT_DOUBLE_EQ(book.standing(id, Qos::kBatch, 0) - 40 / TenantBook::kServiceScale, 4 * 0.4);
}

TEST(TenantBook, WhoComesBackStartsLevelWithTheLeastServed) {
  TenantBook book;
  const TenantId a = book.add({}, 0), b = book.add({}, 0);
  book[a].slots = 1;
  book.serve(a, Qos::kStandard, 1000, 0, 0);
  book.refresh();
  book.note_arrival(b);
  EXPECT_DOUBLE_EQ(book[b].service, 1000);
  book[b].waiting = 1;
  book.serve(a, Qos::kStandard, 1000, 0, 0);
  book.note_arrival(b);  // it waits already: nothing is forgiven
  EXPECT_DOUBLE_EQ(book[b].service, 1000);
}

TEST(TenantBook, CountsWhatIsReservedForOthers) {
  TenantBook book;
  Quota quota;
  quota.reserved_kv_pages = 10;
  const TenantId a = book.add(quota, 0), b = book.add(quota, 0);
  book[a].pages = 4;
  book[b].pages = 25;
  EXPECT_EQ(book.total_reserved(), 20u);
  EXPECT_EQ(book.reserved_but_unused(kNone), 6u);
  EXPECT_EQ(book.reserved_but_unused(a), 0u);
  EXPECT_EQ(book.reserved_but_unused(b), 6u);
  const auto epoch = book.room_epoch();
  quota.reserved_kv_pages = 1;
  book.set_quota(a, quota, 0);
  EXPECT_EQ(book.total_reserved(), 11u);
  EXPECT_GT(book.room_epoch(), epoch);
}

TEST(Shares, GoByWeightUpToWhatIsAskedFor) {
  TenantBook book;
  Quota quota;
  quota.max_concurrent_slots = 8;
  const TenantId a = book.add(quota, 0), b = book.add(quota, 0), c = book.add(quota, 0);
  quota.weight = 2;
  const TenantId d = book.add(quota, 0);
  Shares shares(2'000'000);
  const auto set = [&](TenantId tenant, Qos qos, int running, int waiting) {
    shares.note_running(tenant, qos, running);
    shares.note_waiting(tenant, qos, waiting);
    book[tenant].slots += static_cast<std::uint32_t>(running);
  };
  set(a, Qos::kStandard, 5, 10);
  set(b, Qos::kStandard, 3, 10);
  set(c, Qos::kStandard, 0, 1);
  set(d, Qos::kBatch, 2, 10);
  shares.share_out(book, 0);
  // Ten slots: c has the one that it asks for; nine go by the weights 1, 1 and 2 x 0.25.
  EXPECT_DOUBLE_EQ(shares.share(c, Qos::kStandard), 1);
  EXPECT_DOUBLE_EQ(shares.share(a, Qos::kStandard), 3.6);
  EXPECT_DOUBLE_EQ(shares.share(d, Qos::kStandard), 1.8);
  EXPECT_DOUBLE_EQ(shares.share(d, Qos::kBatch), 2);  // alone among its class
  EXPECT_TRUE(shares.has_too_much(a, Qos::kStandard) && shares.has_too_much(d, Qos::kStandard));
  EXPECT_FALSE(shares.has_too_much(b, Qos::kStandard) || shares.has_too_much(d, Qos::kBatch));
  EXPECT_FALSE(shares.is_owed(b, Qos::kStandard));  // nothing yet: no time went by
  shares.settle(1'000'000);
  EXPECT_TRUE(shares.is_owed(b, Qos::kStandard) && shares.is_owed(c, Qos::kStandard));
  EXPECT_NEAR(shares.arrears(b, Qos::kStandard), 0.6, 1e-9);
  EXPECT_NEAR(shares.arrears(a, Qos::kStandard), -1.4, 1e-9);
  shares.settle(60'000'000);
  EXPECT_DOUBLE_EQ(shares.arrears(a, Qos::kStandard), -2);  // one slot for a turn
  shares.rest_if_nobody_waits();
  EXPECT_TRUE(shares.is_owed(b, Qos::kStandard));
  for (const TenantId t : {a, b}) shares.note_waiting(t, Qos::kStandard, -10);
  shares.note_waiting(c, Qos::kStandard, -1);
  shares.note_waiting(d, Qos::kBatch, -10);
  shares.rest_if_nobody_waits();
  EXPECT_FALSE(shares.is_owed(b, Qos::kStandard));
}

StepSize sized(std::uint32_t begin, std::uint32_t n) {
  StepSize size;
  size.add(begin, n);
  return size;
}

TEST(CostModel, LearnsBaseAndSlope) {
  CostModel cost;
  EXPECT_FALSE(cost.is_known());
  for (std::uint32_t i = 0; i < 200; ++i) cost.observe(sized(0, 1 + i % 64), 500 + 20.0 * (1 + i % 64));
  EXPECT_NEAR(cost.step_us({}), 500, 1);
  EXPECT_NEAR(cost.step_us(sized(0, 100)), 2500, 5);
  EXPECT_EQ(cost.tokens_within(2500.5 - 400, sized(0, 20), 0), 60u);
  EXPECT_EQ(cost.tokens_within(600, sized(0, 20), 0), 0u);
}

TEST(CostModel, LearnsWhatDeepTokensCost) {
  CostModel cost;
  const auto us = [](const StepSize& size) { return 1000 + 40 * size.tokens + 0.05 * size.pairs; };
  for (std::uint32_t i = 0; i < 100; ++i)
    for (const auto& size : {sized(64 * i, 64), sized(50 * i, 1), sized(10 * i, 200)}) cost.observe(size, us(size));
  for (const auto& size : {sized(0, 1), sized(30000, 32), sized(5000, 300)})
    EXPECT_NEAR(cost.step_us(size), us(size), 0.03 * us(size));
  const StepSize decodes = sized(2000, 1);
  const std::uint32_t shallow = cost.tokens_within(20'000, decodes, 0),
                      deep = cost.tokens_within(20'000, decodes, 20'000);
  EXPECT_GT(shallow, 8 * deep);
  StepSize all = decodes;
  all.add(20'000, deep);
  EXPECT_LE(cost.step_us(all), 20'001);
  all.add(20'000 + deep, 1);
  EXPECT_GT(cost.step_us(all), 20'000);
}

TEST(CostModel, RemembersPromptsThroughLongDecoding) {
  CostModel cost;
  for (int i = 0; i < 50; ++i) cost.observe(sized(0, 64), 500 + 20.0 * 64);
  for (std::uint32_t i = 0; i < 3000; ++i) cost.observe(sized(i % 100, 1), i % 7 == 0 ? 900 : 520);
  EXPECT_NEAR(cost.step_us(sized(0, 64)), 1780, 180);
}

TEST(CostModel, OneSizeTeachesTheMeanAndAnOutlierLittle) {
  CostModel cost;
  for (int i = 0; i < 100; ++i) cost.observe(sized(0, 8), 800);
  EXPECT_NEAR(cost.step_us(sized(0, 8)), 800, 1);
  EXPECT_NEAR(cost.step_us(sized(0, 16)), 1600, 1);
  cost.observe(sized(0, 8), 1e9);
  EXPECT_LT(cost.step_us(sized(0, 8)), 1200);
}

TEST(RequestQueue, KeepsTheOrderOfArrival) {
  RequestQueue queue;
  std::vector<Request> requests(6);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].order = i;
    requests[i].params.tenant = static_cast<TenantId>(i % 2);
  }
  for (const std::size_t i : {4, 0, 5, 2, 1, 3}) queue.push(requests[i], 100);
  EXPECT_EQ(queue.size(), 6u);
  std::vector<std::uint64_t> orders;
  queue.for_each([&](const Request& r) { orders.push_back(r.order); });
  EXPECT_EQ(orders, (std::vector<std::uint64_t>{0, 2, 4, 1, 3, 5}));
  queue.remove(requests[2], 150);
  EXPECT_EQ(requests[2].waited, 50);
  queue.remove(requests[0], 150);
  std::vector<std::uint64_t> heads;
  queue.for_each_head([&](const Request& r) { heads.push_back(r.order); });
  EXPECT_EQ(heads, (std::vector<std::uint64_t>{4, 1}));
  queue.push(requests[2], 200);  // a preempted one has its place again
  EXPECT_EQ(requests[2].waited_at(210), 60);
  orders.clear();
  queue.for_each([&](const Request& r) { orders.push_back(r.order); });
  EXPECT_EQ(orders, (std::vector<std::uint64_t>{2, 4, 1, 3, 5}));
}

}  // namespace
}  // namespace zinc_rt::sched

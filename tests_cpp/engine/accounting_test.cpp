#include "engine/accounting.h"

#include <gtest/gtest.h>

namespace zinc_rt {
namespace {

TEST(Accounting, ARequestFromQueueToEnd) {
  Accounting accounting;
  accounting.queued(2);
  accounting.admitted(100, 7);
  accounting.cached(64, 100);
  accounting.holds({1, 3, 7, 12.5});
  accounting.first_token(40);
  for (int i = 1; i <= 98; ++i) accounting.next_token(10);
  accounting.preempted();
  accounting.holds({0, 4, 5, 20});
  accounting.readmitted();
  accounting.next_token(500);
  accounting.next_token(600);
  accounting.finished(RequestEnd::kFinished);
  const TenantLedger ledger = accounting.ledger();
  EXPECT_EQ(ledger.tokens_prompted, 100u);
  EXPECT_EQ(ledger.tokens_generated, 101u);
  EXPECT_EQ(ledger.tokens_cached, 64u);
  EXPECT_EQ(ledger.slots_admitted, 2u);
  EXPECT_EQ(ledger.slots_preempted, 1u);
  EXPECT_EQ(ledger.requests_finished, 1u);
  EXPECT_DOUBLE_EQ(ledger.prefix_hit_rate, 0.64);
  EXPECT_DOUBLE_EQ(ledger.p50_ttft_ms, 40);
  EXPECT_DOUBLE_EQ(ledger.p99_queue_ms, 2);
  EXPECT_NEAR(ledger.p50_decode_ms, 10, 10 * LatencySketch::kRelativeError);
  EXPECT_NEAR(ledger.p99_decode_ms, 500, 500 * LatencySketch::kRelativeError);
  EXPECT_EQ(ledger.kv_pages_now, 5u);
  EXPECT_EQ(ledger.kv_pages_peak, 7u);
  EXPECT_EQ(ledger.slots_now, 0u);
  EXPECT_EQ(ledger.waiting_now, 4u);
  EXPECT_EQ(ledger.service, 20);
}

TEST(Accounting, EachEndHasItsCounter) {
  Accounting accounting;
  const auto end = [&](RequestEnd kind, int n) {
    for (int i = 0; i < n; ++i) accounting.finished(kind);
  };
  end(RequestEnd::kFinished, 1);
  end(RequestEnd::kCancelled, 2);
  end(RequestEnd::kFailed, 3);
  end(RequestEnd::kTooSlow, 4);
  for (int i = 0; i < 5; ++i) accounting.rejected();
  const TenantLedger ledger = accounting.ledger();
  EXPECT_EQ(ledger.requests_finished, 1u);
  EXPECT_EQ(ledger.requests_cancelled, 2u);
  EXPECT_EQ(ledger.requests_failed, 3u);
  EXPECT_EQ(ledger.requests_too_slow, 4u);
  EXPECT_EQ(ledger.requests_rejected, 5u);
}

TEST(Accounting, TheHitRateIsByTokensAndFollowsRecentRequests) {
  Accounting accounting;
  EXPECT_EQ(accounting.ledger().prefix_hit_rate, 0);
  accounting.cached(0, 0);
  EXPECT_EQ(accounting.ledger().prefix_hit_rate, 0);
  for (int i = 0; i < 1000; ++i) accounting.cached(0, 50);
  EXPECT_EQ(accounting.ledger().prefix_hit_rate, 0);
  for (int i = 0; i < 64; ++i) accounting.cached(90, 100);
  // 64 requests of 100 tokens against 1,000 of 50: 1 - e^-1 of the weight is on the last 64, which count twice.
  EXPECT_NEAR(accounting.ledger().prefix_hit_rate, 0.9 * 2 * 0.635 / (2 * 0.635 + 0.365), 0.002);
  for (int i = 0; i < 1000; ++i) accounting.cached(90, 100);
  EXPECT_NEAR(accounting.ledger().prefix_hit_rate, 0.9, 1e-6);
  EXPECT_EQ(accounting.ledger().tokens_cached, 1064u * 90);
}

}  // namespace
}  // namespace zinc_rt

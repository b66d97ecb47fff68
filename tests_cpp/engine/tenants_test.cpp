// Tenants that change, reserve and leave while requests run.
#include <gmock/gmock.h>

#include "engine_fixture.h"

namespace zinc_rt {
namespace {

TEST_F(EngineTest, AHigherRateHoldsAtOnce) {
  const auto engine = make(2);
  auto slow = quota("standard");
  slow.decode_tokens_per_s = 0.1;  // half a token in the window, then ten seconds a token
  auto tenant = engine.tenant("a", slow);
  auto stream = tenant.session()->stream(token_request(prompt(8), 6));
  ASSERT_TRUE(stream && stream->next());
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_LT(stream->completion().token_ids.size(), 6u);
  // A debt of a token is not made one of seconds' worth of the new rate, which would be ten seconds.
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(tenant.set_quota(quota("standard")));
  EXPECT_EQ(read(*stream).token_ids.size(), 6u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
}

// Pages that are reserved for another while a request runs may leave too few for it: it ends, it does not hang.
TEST_F(EngineTest, AReservationThatLeavesTooFewPagesEndsTheRequest) {
  const auto engine = make(2, 10);
  gate_.close();
  auto stream = engine.session("a").stream(token_request(prompt(16), 100));
  gate_.let(20);
  ASSERT_TRUE(stream && gate_.wait_arrived(21));
  auto reserving = quota("standard");
  reserving.reserved_kv_pages = 7;
  std::thread other([&] { engine.tenant("b", reserving); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate_.open();
  other.join();
  Result<std::optional<StreamEvent>> event;
  do event = stream->next();
  while (event && *event);
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, StatusCode::kExhausted);
  expect_all_free(engine);
}

TEST_F(EngineTest, TenantsThatAreRemovedLeaveNothingBehind) {
  const auto engine = make(2, 20);
  auto reserving = quota("standard");
  reserving.reserved_kv_pages = 10;
  const auto request = token_request(prompt(40), 3);
  std::weak_ptr<TenantState> last;
  for (int round = 0; round < 300; ++round) {
    const auto name = "t" + std::to_string(round);
    const auto state = engine.core->tenant(name, reserving);  // one has all that may be reserved
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_LT((*state)->id, 2u);  // the last request of the one before may be about to go
    EXPECT_TRUE(eventually([&] { return last.expired(); }));
    if (round % 10 == 0) {
      const auto done = engine.session(name).generate(request);
      ASSERT_TRUE(done);
      EXPECT_EQ(done->usage.cached_tokens, 0u);  // what one of the same id had cached is not its own
      EXPECT_EQ(engine.tenant(name).ledger().tokens_generated, 3u);
    }
    last = *state;
    ASSERT_TRUE(engine.core->remove_tenant(name));
  }
  EXPECT_EQ(engine.core->remove_tenant("t0").error().code, StatusCode::kNotFound);
  expect_all_free(engine);
}

TEST_F(EngineTest, WhatRunsForARemovedTenantGoesOn) {
  const auto engine = make(2);
  const auto before = engine.tenant("a");
  gate_.close();
  auto stream = before.session()->stream(token_request(prompt(20), 12));
  gate_.let(3);
  ASSERT_TRUE(stream && gate_.wait_arrived(4));
  std::thread other([&] {
    EXPECT_TRUE(engine.core->remove_tenant("a"));
    EXPECT_EQ(engine.session("b").generate(token_request(prompt(20), 2))->usage.cached_tokens, 0u);
    EXPECT_EQ(engine.tenant("a").ledger().tokens_prompted, 0u);
  });
  gate_.open();
  EXPECT_EQ(read(*stream).token_ids.size(), 12u);
  other.join();
  EXPECT_TRUE(eventually([&] { return before.ledger().requests_finished == 1; }));
  EXPECT_EQ(before.ledger().tokens_generated, 12u);
  expect_all_free(engine);
}

}  // namespace
}  // namespace zinc_rt

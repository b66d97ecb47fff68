// The pages of slots alone: what there is for a request, what it gets, and what comes back.
#include <gmock/gmock.h>

#include "sched/slot_pages.h"

namespace zinc_rt::sched {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kPages = 10;

class SlotPagesTest : public ::testing::Test {
 protected:
  SlotPagesTest() {
    Quota quota;
    quota.max_kv_pages = 6;
    for (int i = 0; i < 2; ++i) tenants_.add(quota, 0);
  }
  static Options options() {
    Options o;
    o.n_slots = 4;
    o.n_pages = kPages;
    o.max_context = 256;
    return o;
  }
  Request& add(std::uint32_t n, TenantId tenant = 0) {
    Request& r = *requests_.emplace_back(std::make_unique<Request>());
    r.params.tenant = tenant;
    for (std::uint32_t i = 0; i < n; ++i) r.tokens.push_back(static_cast<std::int32_t>(i));
    r.n_prompt = n;
    r.n_limit = n + 50;
    return r;
  }
  // Gives it a slot and pages for all of its tokens, and computes them.
  Request& run(std::uint32_t n, TenantId tenant = 0) {
    Request& r = add(n, tenant);
    EXPECT_EQ(pages_.find_room(r, false), Bind::kDone);
    r.slot = slots_.take();
    pages_.bind(r, plan_);
    EXPECT_EQ(pages_.grow(r, n), Bind::kDone);
    r.n_done = n;
    pages_.publish(r, 0);
    return r;
  }
  void end(Request& r) {
    pages_.release(r, true, plan_);
    slots_.set_state(r.slot, SlotState::kDone).value();
    slots_.give_back(r.slot);
  }

  const Options options_ = options();
  TenantBook tenants_;
  SlotTable slots_{4, 16};
  Stats stats_;
  SlotPages pages_{options_, tenants_, slots_, stats_};
  StepPlan plan_;
  std::vector<std::unique_ptr<Request>> requests_;
};

TEST_F(SlotPagesTest, GrowingSaysWhatIsMissingAndKeepsWhatItGot) {
  Request& a = run(16);
  EXPECT_EQ(pages_.grow(a, 8 * 16), Bind::kOverQuota);
  EXPECT_EQ(slots_[a.slot].page_count, 6u);
  EXPECT_EQ(tenants_[0].pages, 6u);
  Request& b = run(16, 1);
  EXPECT_EQ(pages_.grow(b, 6 * 16), Bind::kNoPages);
  EXPECT_EQ(slots_[b.slot].page_count, 4u);
  EXPECT_EQ(pages_.pool().n_free(), 0u);
  EXPECT_EQ(pages_.grow(b, 4 * 16), Bind::kDone);
  end(a);
  EXPECT_EQ(pages_.grow(b, 6 * 16), Bind::kDone);
  end(b);
  EXPECT_EQ(tenants_[0].pages + tenants_[1].pages, 0u);
  EXPECT_EQ(pages_.pool().n_free() + pages_.prefixes().n_nodes(), kPages);
  EXPECT_EQ(stats_.internal_errors, 0u);
}

TEST_F(SlotPagesTest, RoomThatIsMissingIsCountedAndPinsNothing) {
  Request& large = add(15 * 16);
  EXPECT_EQ(pages_.find_room(large, false), Bind::kOverQuota);
  Request& a = run(5 * 16);  // five pages are left
  Request& six = add(86, 1);
  EXPECT_EQ(pages_.find_room(six, false), Bind::kNoPages);
  EXPECT_EQ(six.n_missing, 1u);
  Request& five = add(64, 1);
  EXPECT_EQ(pages_.find_room(five, false), Bind::kDone);
  pages_.let_go();
  EXPECT_EQ(pages_.find_room(five, true), Bind::kNoPages);  // two stay for the cache
  EXPECT_EQ(five.n_missing, 0u);
  end(a);
  EXPECT_EQ(pages_.flush(0, true), 5u);
  EXPECT_EQ(pages_.pool().n_free(), kPages);
}

// The last page of a prompt is shared by a copy, which the plan has until it is done.
TEST_F(SlotPagesTest, APartialPageIsCopiedAndItsSourceKeptUntilThen) {
  Request& a = run(20);
  const std::uint32_t source = slots_.pages(a.slot)[1];
  Request& b = add(30);
  ASSERT_EQ(pages_.find_room(b, false), Bind::kDone);
  b.slot = slots_.take();
  pages_.bind(b, plan_);
  EXPECT_EQ(b.n_done, 20u);
  EXPECT_EQ(slots_[b.slot].prefix_match_pages, 1u);
  EXPECT_EQ(slots_.pages(a.slot)[0], slots_.pages(b.slot)[0]);
  ASSERT_EQ(plan_.page_copies.size(), 1u);
  EXPECT_EQ(plan_.page_copies[0].from, source);
  EXPECT_EQ(plan_.page_copies[0].to, slots_.pages(b.slot)[1]);
  const std::uint32_t refs = pages_.pool().meta(source).ref_count;
  b.copy_pending = false;
  pages_.finish_copies(plan_);
  EXPECT_TRUE(plan_.page_copies.empty());
  EXPECT_EQ(pages_.pool().meta(source).ref_count, refs - 1);
  end(a);
  end(b);
  EXPECT_EQ(stats_.internal_errors, 0u);
}

TEST_F(SlotPagesTest, ACopyThatNeverRanIsTakenBack) {
  Request& a = run(20);
  Request& b = add(30);
  ASSERT_EQ(pages_.find_room(b, false), Bind::kDone);
  b.slot = slots_.take();
  pages_.bind(b, plan_);
  ASSERT_EQ(plan_.page_copies.size(), 1u);
  end(b);
  EXPECT_TRUE(plan_.page_copies.empty());
  end(a);
  pages_.flush(0, true);
  EXPECT_EQ(pages_.pool().n_free(), kPages);
  EXPECT_EQ(stats_.internal_errors, 0u);
}

TEST_F(SlotPagesTest, LeasesEvictAndSayWhatIsFree) {
  Request& a = run(3 * 16);
  end(a);
  EXPECT_EQ(pages_.prefixes().n_nodes(), 3u);
  ASSERT_TRUE(pages_.make_free(9));
  EXPECT_EQ(stats_.page_evictions, 2u);
  const std::uint32_t slot = slots_.take();
  pages_.take(slot, 9);
  const auto refused = pages_.make_free(3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, StatusCode::kExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("needs 3 pages, 1 free of 10"));
  pages_.give_back(slot);
  EXPECT_EQ(pages_.pool().n_free(), kPages);
}

}  // namespace
}  // namespace zinc_rt::sched

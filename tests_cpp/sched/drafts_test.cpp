// Guesses of the next tokens: what is picked stays, whatever was guessed.
#include <gtest/gtest.h>

#include "sched/scheduler.h"

namespace zinc_rt::sched {
namespace {

constexpr std::uint32_t kPrompt = 20;
constexpr double kStepUs = 1000;  // of any step, so that guesses cost nothing

// One tenant, one request that has its prompt and two tokens. A step without guesses has run, so that steps have a price.
class DraftsTest : public ::testing::Test {
 protected:
  DraftsTest() {
    options_.n_slots = 2;
    options_.n_pages = 16;
    options_.max_context = 256;
  }

  void begin(std::uint32_t max_tokens = 100, Speculation speculation = {}) {
    tenants_.emplace();
    tenants_->add(quota_, 0);
    scheduler_.emplace(options_, *tenants_);
    id_ = submit(max_tokens, speculation);
    step({100});
    step({101});
  }
  RequestId submit(std::uint32_t max_tokens, Speculation speculation) {
    RequestParams params;
    params.prompt = mem::SpanList(std::vector<std::int32_t>(kPrompt, 5));
    params.max_tokens = max_tokens;
    params.speculation = speculation;
    params.stop_tokens = {kStop};
    const auto id = scheduler_->submit(std::move(params), now_);
    EXPECT_TRUE(id) << id.error().message;
    return id.value_or(0);
  }
  const StepPlan& plan() {
    scheduler_->clear_events();
    scheduler_->admit(now_);
    return scheduler_->plan(now_);
  }
  void commit(const std::vector<std::int32_t>& picks) {
    now_ += static_cast<Micros>(kStepUs);
    scheduler_->commit(picks, now_, kStepUs);
  }
  void step(const std::vector<std::int32_t>& picks) {
    ASSERT_EQ(plan().n_outputs, picks.size());
    commit(picks);
  }
  void propose(std::vector<std::int32_t> draft) { scheduler_->propose(id_, draft, 0.9); }
  const Request& request() const { return *scheduler_->find(id_); }
  std::vector<std::int32_t> given() const {
    std::vector<std::int32_t> tokens;
    for (const Event& e : scheduler_->events())
      if (e.kind == EventKind::kToken) tokens.push_back(e.token);
    return tokens;
  }
  std::optional<Finish> end() const {
    for (const Event& e : scheduler_->events())
      if (e.kind == EventKind::kFinished) return e.reason;
    return std::nullopt;
  }

  static constexpr std::int32_t kStop = 7;
  using Tokens = std::vector<std::int32_t>;

  Options options_;
  Quota quota_;
  std::optional<TenantBook> tenants_;
  std::optional<Scheduler> scheduler_;
  RequestId id_ = 0;
  Micros now_ = 0;
};

TEST_F(DraftsTest, RightOnesAreTokensOfOneStep) {
  begin();
  propose({102, 103, 104});
  const StepPlan& p = plan();
  ASSERT_EQ(p.items.size(), 1u);
  EXPECT_EQ(p.items[0].n_drafts, 3u);
  EXPECT_EQ(p.n_drafts, 3u);
  EXPECT_EQ(p.n_prompt_tokens(), 0u);
  EXPECT_TRUE(p.tokens.view() == mem::SpanView(Tokens{101, 102, 103, 104}));
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(p.rows[i].output.position, kPrompt + 2 + i);
    EXPECT_EQ(p.rows[i].text.size(), kPrompt + 2 + i);
  }
  commit({102, 103, 104, 105});
  EXPECT_EQ(given(), (Tokens{102, 103, 104, 105}));
  std::uint32_t row = 0;
  for (const Event& e : scheduler_->events()) {
    EXPECT_EQ(e.output_row, row);
    EXPECT_EQ(e.n_generated, 3 + row);
    EXPECT_EQ(e.n_drafts, row == 0 ? 3u : 0u);
    EXPECT_EQ(e.n_right, row == 0 ? 3u : 0u);
    ++row;
  }
  EXPECT_EQ(request().n_done, kPrompt + 5);
  EXPECT_EQ(request().tokens.size(), kPrompt + 6);
  EXPECT_EQ(scheduler_->stats().accepted_draft_tokens, 3u);
}

TEST_F(DraftsTest, BehindTheFirstWrongOneNothingStays) {
  begin();
  propose({102, 55, 104});
  plan();
  commit({102, 103, 104, 105});  // the last two are picks of a text with 55
  EXPECT_EQ(given(), (Tokens{102, 103}));
  EXPECT_EQ(request().n_done, kPrompt + 3);
  const StepPlan& p = plan();
  EXPECT_EQ(p.items[0].begin, kPrompt + 3);
  EXPECT_TRUE(p.tokens.view() == mem::SpanView(Tokens{103}));
  EXPECT_EQ(scheduler_->stats().draft_tokens, 3u);
  EXPECT_EQ(scheduler_->stats().accepted_draft_tokens, 1u);
}

TEST_F(DraftsTest, AStopTokenEndsTheRequestInsideARun) {
  begin();
  propose({102, kStop, 104});
  plan();
  commit({102, kStop, 104, 105});
  EXPECT_EQ(given(), (Tokens{102, kStop}));
  EXPECT_EQ(end(), Finish::kStop);
  EXPECT_EQ(scheduler_->stats().generated_tokens, 4u);  // 100, 101, 102 and the stop token
}

TEST_F(DraftsTest, NoRowIsPlannedBehindTheLimit) {
  begin(5);  // two are there
  propose({102, 103, 104, 105});
  EXPECT_EQ(plan().items[0].n_drafts, 2u);
  commit({102, 103, 104});
  EXPECT_EQ(end(), Finish::kLength);
  EXPECT_EQ(given(), (Tokens{102, 103, 104}));
}

TEST_F(DraftsTest, ATrialIsComputedWhateverItPromises) {
  begin();
  scheduler_->propose(id_, Tokens{102, 103}, 0);
  EXPECT_EQ(plan().items[0].n_drafts, 0u);
  commit({102});
  scheduler_->propose(id_, Tokens{103, 104}, 0, true);
  EXPECT_EQ(plan().items[0].n_drafts, 2u);
  commit({103, 104, 105});
  scheduler_->propose(id_, Tokens{106, 107}, 0);
  EXPECT_FALSE(request().is_trial);
}

TEST_F(DraftsTest, ARequestSaysHowManyItWouldTake) {
  begin(10, {.most = 4});
  EXPECT_EQ(scheduler_->most_drafts(request()), 4u);
  begin(5, {.most = 4});  // two are there, and a token is picked after the last guess
  EXPECT_EQ(scheduler_->most_drafts(request()), 2u);
}

TEST_F(DraftsTest, ATenantBeyondItsRateHasNone) {
  quota_.decode_tokens_per_s = 1;
  begin();
  for (std::int32_t token = 102; scheduler_->has_rate(request(), now_); ++token) {
    ASSERT_LT(token, 200);
    step({token});
  }
  EXPECT_TRUE(plan().empty());
  EXPECT_TRUE(scheduler_->has_rate(request(), plan().wake_at));
}

TEST_F(DraftsTest, TheRequestSaysHowMany) {
  begin(100, {.most = 2});
  propose({102, 103, 104, 105});
  EXPECT_EQ(plan().items[0].n_drafts, 2u);
  commit({1, 1, 1});
  begin(100, {.most = 0});
  propose({102, 103});
  EXPECT_EQ(plan().items[0].n_drafts, 0u);
}

TEST_F(DraftsTest, APickThatCannotBeMadeEndsTheRequestBehindTheOnesBefore) {
  begin();
  propose({102, 103});
  plan();
  commit({102, kNoToken, 104});
  EXPECT_EQ(given(), (Tokens{102}));
  EXPECT_EQ(end(), Finish::kBadLogits);
  begin();
  propose({102, 103});
  plan();
  commit({kNoToken, 103, 104});
  EXPECT_EQ(given(), Tokens{});
  EXPECT_EQ(end(), Finish::kBadLogits);
}

// A pick that belongs to a text with a wrong guess may be none.
TEST_F(DraftsTest, APickBehindAWrongGuessIsNotLookedAt) {
  begin();
  propose({55, 103});
  plan();
  commit({102, kNoToken, kNoToken});
  EXPECT_EQ(given(), (Tokens{102}));
  EXPECT_FALSE(end());
}

TEST_F(DraftsTest, PagesForGuessesAreGivenBackOrCharged) {
  begin(100, {.is_fixed = true});  // 22 tokens in two pages
  const std::uint32_t n_free = scheduler_->pages().n_free();
  const Tokens draft(31, 9);
  propose(draft);
  EXPECT_EQ(plan().items[0].n, 32u);
  EXPECT_LT(scheduler_->pages().n_free(), n_free);
  EXPECT_EQ((*tenants_)[0].pages, 2u);  // nobody is charged while the step runs
  Tokens picks(32, 1);                  // the first guess is wrong
  commit(picks);
  EXPECT_EQ(scheduler_->pages().n_free(), n_free);
  EXPECT_EQ((*tenants_)[0].pages, 2u);
  propose(draft);
  plan();
  picks.assign(32, 9);
  commit(picks);  // all are right: 22 + 1 + 32 tokens, of which 54 are computed
  EXPECT_EQ(request().n_done, 54u);
  EXPECT_EQ((*tenants_)[0].pages, mem::pages_for(54));
  EXPECT_EQ(scheduler_->pages().n_free(), n_free + 2 - mem::pages_for(54));
}

TEST_F(DraftsTest, WithoutFreePagesThereAreNoGuesses) {
  options_.n_pages = 16;
  begin(200, {.is_fixed = true});
  ASSERT_TRUE(scheduler_->lease(14 * kPageTokens));  // the others, of the cache and free
  const std::uint32_t evictions = static_cast<std::uint32_t>(scheduler_->stats().page_evictions);
  propose(Tokens(31, 9));
  const StepPlan& p = plan();
  EXPECT_EQ(p.items[0].n, 2 * kPageTokens - (kPrompt + 1));  // to the end of the page that it has
  EXPECT_EQ(scheduler_->stats().page_evictions, evictions);
}

TEST_F(DraftsTest, AQuotaIsNotExceeded) {
  quota_.max_kv_pages = 3;
  begin(20, {.is_fixed = true});
  propose(Tokens(31, 9));
  EXPECT_EQ(plan().items[0].n, 18u);  // max_tokens: 20, of which 2 are there
  commit(Tokens(18, 9));
  EXPECT_EQ(end(), Finish::kLength);
}

TEST_F(DraftsTest, FixedOnesAreTakenAtAnyPrice) {
  begin(200, {.most = 5, .is_fixed = true});
  for (int i = 0; i < 20; ++i) {
    propose(Tokens(8, 9));
    ASSERT_EQ(plan().n_tokens, 6u);
    now_ += static_cast<Micros>(6 * kStepUs);
    scheduler_->commit(Tokens(6, 1), now_, 6 * kStepUs);  // the guess is always wrong
  }
}

// A request that was preempted, or of which a step failed, has no guesses left.
TEST_F(DraftsTest, AFailedStepLeavesNothing) {
  begin();
  propose({102, 103});
  plan();
  scheduler_->fail_step(now_);
  EXPECT_EQ(end(), Finish::kFault);
  EXPECT_EQ((*tenants_)[0].pages, 0u);
  EXPECT_EQ(scheduler_->pages().n_free() + scheduler_->prefixes().n_nodes(), options_.n_pages);
}

// The second row of a step costs as much as the whole step, so guesses are not worth it but for a try now and then.
TEST_F(DraftsTest, DearRowsAreTriedSeldom) {
  begin(200);
  std::uint32_t n_with = 0;
  for (int i = 0; i < 100; ++i) {
    propose({9});
    const std::uint32_t n = plan().n_tokens;
    n_with += n > 1;
    now_ += static_cast<Micros>(n * kStepUs);
    scheduler_->commit(Tokens(n, 1), now_, n * kStepUs);  // the guess is always wrong
    if (scheduler_->find(id_) == nullptr) break;
  }
  EXPECT_GT(n_with, 0u);
  EXPECT_LT(n_with, 15u);
}

// A step has a price, and each of its rows. No step with guesses ran yet, so what rows cost is known from prompts alone.
TEST_F(DraftsTest, OfBatchLengthenAStepOfInteractiveByATenth) {
  constexpr double kBaseUs = 10'000, kRowUs = 500;
  tenants_.emplace();
  tenants_->add(quota_, 0);
  scheduler_.emplace(options_, *tenants_);
  RequestId ids[2] = {};
  for (const Qos qos : {Qos::kInteractive, Qos::kBatch}) {
    RequestParams params;
    params.prompt = mem::SpanList(std::vector<std::int32_t>(kPrompt, 5));
    params.max_tokens = 200;
    params.qos = qos;
    params.speculation = Speculation{};
    ids[qos == Qos::kBatch] = scheduler_->submit(std::move(params), now_).value();
  }
  const auto n_drafts_of_step = [&] {
    const StepPlan& p = plan();
    const std::uint32_t n_drafts = p.n_drafts;
    const double us = kBaseUs + kRowUs * p.n_tokens;
    now_ += static_cast<Micros>(us);
    scheduler_->commit(Tokens(p.n_outputs, 9), now_, us);
    return n_drafts;
  };
  for (int i = 0; i < 20; ++i) n_drafts_of_step();
  const auto n_drafts_of = [&](RequestId id) {
    scheduler_->propose(id, Tokens(16, 9), 0.99);
    return n_drafts_of_step();
  };
  // Two rows take 11 ms, so a tenth is two rows more. The interactive stream's own guesses may lengthen its steps more.
  EXPECT_EQ(n_drafts_of(ids[1]), 2u);
  EXPECT_GT(n_drafts_of(ids[0]), 8u);
}

}  // namespace
}  // namespace zinc_rt::sched

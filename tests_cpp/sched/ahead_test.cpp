// Steps that are planned while the step before them runs (Scheduler::plan_ahead): what they hold, when there is none,
// and what becomes of a row whose request has ended meanwhile.
#include <gtest/gtest.h>

#include <functional>

#include "sched/scheduler.h"

namespace zinc_rt::sched {
namespace {

constexpr double kStepUs = 1000;
constexpr std::int32_t kStop = 7;
using Tokens = std::vector<std::int32_t>;

class AheadTest : public ::testing::Test {
 protected:
  AheadTest() {
    options_.n_slots = 2;
    options_.n_pages = 32;
    options_.max_context = 256;
    options_.runs_ahead = true;
  }

  void begin() {
    tenants_.emplace();
    tenants_->add(quota_, 0);
    scheduler_.emplace(options_, *tenants_);
  }
  RequestParams params(std::uint32_t n_prompt = 20, std::uint32_t max_tokens = 100) const {
    RequestParams p;
    p.prompt = mem::SpanList(Tokens(n_prompt, 5));
    p.max_tokens = max_tokens;
    p.stop_tokens = {kStop};
    return p;
  }
  RequestId submit(RequestParams p) {
    const auto id = scheduler_->submit(std::move(p), now_);
    EXPECT_TRUE(id) << id.error().message;
    return id.value_or(0);
  }
  const StepPlan& plan() {
    scheduler_->clear_events();
    scheduler_->admit(now_);
    return scheduler_->plan(now_);
  }
  void commit(const Tokens& picks) {
    scheduler_->clear_events();
    now_ += static_cast<Micros>(kStepUs);
    scheduler_->commit(picks, now_, kStepUs);
  }
  // Runs the prompts, so that the next step only decodes.
  void run_prompts(const Tokens& picks) {
    ASSERT_EQ(plan().n_outputs, picks.size());
    commit(picks);
  }
  Tokens given() const {
    Tokens tokens;
    for (const Event& e : scheduler_->events())
      if (e.kind == EventKind::kToken) tokens.push_back(e.token);
    return tokens;
  }
  std::optional<Finish> end() const {
    for (const Event& e : scheduler_->events())
      if (e.kind == EventKind::kFinished) return e.reason;
    return std::nullopt;
  }

  Options options_;
  Quota quota_;
  std::optional<TenantBook> tenants_;
  std::optional<Scheduler> scheduler_;
  Micros now_ = 0;
};

TEST_F(AheadTest, DecodesTheSameSlotsAgain) {
  begin();
  submit(params(20));
  submit(params(30));
  run_prompts({100, 200});
  plan();
  EXPECT_TRUE(scheduler_->may_plan_ahead(now_));
  const StepPlan* ahead = scheduler_->plan_ahead(now_);
  ASSERT_NE(ahead, nullptr);
  EXPECT_TRUE(ahead->tokens.view() == mem::SpanView(Tokens{kLastPick, kLastPick}));
  ASSERT_EQ(ahead->items.size(), 2u);
  for (std::uint32_t slot = 0; slot < 2; ++slot) {
    EXPECT_EQ(ahead->items[slot].slot, slot);
    EXPECT_EQ(ahead->items[slot].begin, slot == 0 ? 21u : 31u);
    EXPECT_EQ(ahead->rows[slot].output.position, slot == 0 ? 22u : 32u);
    EXPECT_FALSE(ahead->rows[slot].output.wants_logits);
  }
  commit({101, 201});
  EXPECT_EQ(given(), (Tokens{101, 201}));
  EXPECT_TRUE(scheduler_->is_ahead());
  ASSERT_NE(scheduler_->plan_ahead(now_), nullptr);  // and once more
  commit({102, 202});
  EXPECT_EQ(given(), (Tokens{102, 202}));
  commit({103, 203});
  EXPECT_EQ(given(), (Tokens{103, 203}));
  EXPECT_FALSE(scheduler_->is_ahead());
  EXPECT_EQ(scheduler_->stats().steps_ahead, 2u);
  EXPECT_EQ(plan().items[0].begin, 23u);
}

TEST_F(AheadTest, ARowOfARequestThatHasEndedIsDropped) {
  begin();
  submit(params(20));
  submit(params(30));
  run_prompts({100, 200});
  plan();
  ASSERT_NE(scheduler_->plan_ahead(now_), nullptr);
  commit({kStop, 201});
  EXPECT_EQ(end(), Finish::kStop);
  EXPECT_TRUE(scheduler_->is_ahead());               // the other request's row
  EXPECT_NE(scheduler_->plan_ahead(now_), nullptr);  // of the other request alone
  commit({55, 202});
  EXPECT_EQ(given(), (Tokens{202}));
  EXPECT_EQ(scheduler_->stats().dropped_rows, 1u);
  commit({kStop});
  EXPECT_EQ(end(), Finish::kStop);
  EXPECT_TRUE(scheduler_->is_idle());
}

TEST_F(AheadTest, AStepWithoutRequestsIsDropped) {
  begin();
  submit(params());
  run_prompts({100});
  plan();
  ASSERT_NE(scheduler_->plan_ahead(now_), nullptr);
  commit({kStop});
  EXPECT_FALSE(scheduler_->is_ahead());
  scheduler_->drop_step();
  EXPECT_TRUE(scheduler_->is_idle());
  submit(params());
  run_prompts({100});
  EXPECT_EQ(given(), (Tokens{100}));
}

TEST_F(AheadTest, TheLastTokenOfARequestHasNoStepAfterIt) {
  begin();
  submit(params(20, 3));
  submit(params(30, 100));
  run_prompts({100, 200});
  plan();
  ASSERT_NE(scheduler_->plan_ahead(now_), nullptr);
  commit({101, 201});
  const StepPlan* ahead = scheduler_->plan_ahead(now_);  // the running step picks the first request's third token
  ASSERT_NE(ahead, nullptr);
  ASSERT_EQ(ahead->items.size(), 1u);
  EXPECT_EQ(ahead->items[0].slot, 1u);
  commit({102, 202});
  EXPECT_EQ(end(), Finish::kLength);
  commit({203});
  EXPECT_EQ(given(), (Tokens{203}));
  EXPECT_EQ(scheduler_->stats().dropped_rows, 0u);
}

TEST_F(AheadTest, WhoWaitsIsLookedAtAgain) {
  options_.n_slots = 1;
  begin();
  submit(params());
  submit(params());
  run_prompts({100});
  plan();
  std::int32_t token = 101;
  int n = 0;
  for (; scheduler_->plan_ahead(now_) != nullptr; ++n) commit({token++});
  EXPECT_EQ(n, 8);
  commit({token++});
  plan();
  EXPECT_NE(scheduler_->plan_ahead(now_), nullptr);
}

// Each of these needs the host between two tokens.
TEST_F(AheadTest, NotWithWhatTheHostMustDo) {
  const auto is_ahead = [&](const std::function<void(RequestParams&)>& change) {
    begin();
    auto p = params();
    change(p);
    submit(std::move(p));
    run_prompts({100});
    plan();
    return scheduler_->plan_ahead(now_) != nullptr;
  };
  EXPECT_TRUE(is_ahead([](RequestParams&) {}));
  EXPECT_TRUE(is_ahead([](RequestParams& p) { p.sampling.temperature = 1; }));
  EXPECT_FALSE(is_ahead([](RequestParams& p) { p.sampling.repetition_penalty = 1.1f; }));
  EXPECT_FALSE(is_ahead([](RequestParams& p) { p.bias = {{1, 1.0f}}; }));
  EXPECT_FALSE(is_ahead([](RequestParams& p) { p.is_masked = true; }));
  EXPECT_FALSE(is_ahead([](RequestParams& p) { p.is_processed = true; }));
  EXPECT_FALSE(is_ahead([](RequestParams& p) { p.wants_logits = true; }));
  EXPECT_FALSE(is_ahead([](RequestParams& p) { p.n_logprobs = 5; }));
  EXPECT_FALSE(is_ahead([](RequestParams& p) { p.min_tokens = 3; }));
  EXPECT_TRUE(is_ahead([](RequestParams& p) { p.min_tokens = 2; }));  // the step's pick is the third
  options_.has_logprobs = true;
  EXPECT_TRUE(is_ahead([](RequestParams& p) { p.n_logprobs = 5; }));
  options_.runs_ahead = false;
  EXPECT_FALSE(is_ahead([](RequestParams&) {}));
}

TEST_F(AheadTest, NotSoonAfterAGuess) {
  begin();
  auto p = params(20, 200);
  p.speculation = {.most = 8, .is_fixed = true};
  const auto id = submit(std::move(p));
  run_prompts({100});
  plan();
  commit({101});  // so that steps have a price
  scheduler_->propose(id, Tokens{102, 103}, 0.9);
  ASSERT_EQ(plan().n_drafts, 2u);
  EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr);  // the running step has guessed tokens
  commit({102, 103, 104});
  for (int step = 0; step < 32; ++step) {
    plan();
    EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr) << step;
    commit({105 + step});
  }
  plan();
  EXPECT_NE(scheduler_->plan_ahead(now_), nullptr);
}

TEST_F(AheadTest, NotWhileAPromptIsComputed) {
  begin();
  submit(params());
  plan();
  EXPECT_FALSE(scheduler_->may_plan_ahead(now_));
  EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr);  // the first step of a prompt
  commit({100});
  plan();
  submit(params());
  EXPECT_NE(scheduler_->plan_ahead(now_), nullptr);  // the request may wait one step
  commit({101});
  commit({102});
  plan();
  EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr);
}

TEST_F(AheadTest, NotWhenARequestIsToEnd) {
  begin();
  const auto id = submit(params());
  auto late = params();
  late.deadline = now_ + 5000;
  submit(std::move(late));
  run_prompts({100, 200});
  plan();
  EXPECT_NE(scheduler_->plan_ahead(now_), nullptr);
  commit({101, 201});
  scheduler_->cancel(id);
  EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr);
  commit({102, 202});
  plan();
  EXPECT_EQ(end(), Finish::kCancelled);
  now_ = 6000;
  EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr);
}

// A tenant whose bucket has 2.5 tokens: the third step of decoding begins with half a token and is the last for now.
TEST_F(AheadTest, NotBeyondTheRateOfItsTenant) {
  quota_.decode_tokens_per_s = 0.5;
  begin();
  submit(params());
  run_prompts({100});
  plan();
  EXPECT_NE(scheduler_->plan_ahead(now_), nullptr);  // 2.5 left, the running step takes one
  commit({101});
  EXPECT_NE(scheduler_->plan_ahead(now_), nullptr);  // 1.5 left
  commit({102});
  EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr);  // 0.5 left
  commit({103});
  EXPECT_TRUE(plan().empty());
}

TEST_F(AheadTest, NotWithoutAPageForTheNextToken) {
  options_.n_pages = 2;
  begin();
  submit(params(30, 2));  // its 32 tokens are two pages
  run_prompts({100});
  plan();
  EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr);
  begin();
  options_.n_pages = 2;
  quota_.max_kv_pages = 1;
  begin();
  submit(params(14, 2));
  run_prompts({100});
  plan();
  EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr);
}

TEST_F(AheadTest, NotAcrossAChangeOfThePositionEncoding) {
  options_.rope_limits = {22};
  begin();
  submit(params(20));
  run_prompts({100});
  plan();                                            // computes token 20; 22 tokens afterwards
  EXPECT_NE(scheduler_->plan_ahead(now_), nullptr);  // computes token 21; 23 tokens afterwards
  commit({101});
  EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr);
}

TEST_F(AheadTest, NotWhereTheRecurrentStateIsSaved) {
  options_.is_recurrent = true;
  options_.n_checkpoints = 4;
  begin();
  submit(params(13));
  run_prompts({100});
  plan();
  ASSERT_NE(scheduler_->plan_ahead(now_), nullptr);  // computes 15 tokens in all
  commit({101});
  EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr);  // would compute 16, a whole page
  commit({102});
  EXPECT_FALSE(plan().saves.empty());
  EXPECT_EQ(scheduler_->plan_ahead(now_), nullptr);  // the running step's state is to be saved
}

TEST_F(AheadTest, AFaultEndsBothSteps) {
  begin();
  submit(params());
  run_prompts({100});
  plan();
  ASSERT_NE(scheduler_->plan_ahead(now_), nullptr);
  scheduler_->fail_step(now_);
  EXPECT_EQ(end(), Finish::kFault);
  EXPECT_FALSE(scheduler_->is_ahead());
  EXPECT_TRUE(scheduler_->is_idle());
  submit(params());
  run_prompts({100});
  EXPECT_EQ(given(), (Tokens{100}));
}

}  // namespace
}  // namespace zinc_rt::sched

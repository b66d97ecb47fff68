// The planner alone: what its plans carry of the requests, and how much of a prompt a step takes.
#include <gmock/gmock.h>

#include "sched/batch_planner.h"

namespace zinc_rt::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BatchPlannerTest : public ::testing::Test {
 protected:
  BatchPlannerTest() {
    options_.n_slots = 4;
    options_.max_context = 4096;
    options_.chunk_cap = 512;
    tenants_.add({}, 0);
  }
  // A request of n tokens in a slot, of which n_done are computed.
  Request& add(std::uint32_t n, std::uint32_t n_done, Qos qos = Qos::kStandard) {
    Request& r = *requests_.emplace_back(std::make_unique<Request>());
    r.id = 100 + requests_.size();
    r.params.user = 200 + requests_.size();
    r.params.qos = qos;
    r.slot = slots_.take();
    for (std::uint32_t i = 0; i < n; ++i) r.tokens.push_back(static_cast<std::int32_t>(1000 * requests_.size() + i));
    r.n_prompt = n;
    r.n_limit = n + 100;
    r.n_done = n_done;
    by_slot_[r.slot] = &r;
    return r;
  }
  void decode(std::vector<Request*> ready) {
    planner_.choose_decodes(ready);
    planner_.add_decodes(ready, 7, plan_);
  }

  Options options_;
  TenantBook tenants_;
  SlotTable slots_{4, 256};
  BatchPlanner planner_{options_, tenants_, slots_};
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<Request*> by_slot_ = std::vector<Request*>(4);
  StepPlan plan_;
};

TEST_F(BatchPlannerTest, APlanCarriesTokensAndRows) {
  Request& decoding = add(5, 4);
  Request& whole = add(6, 3);
  Request& part = add(40, 10);
  decode({&decoding});
  BatchPlanner::add_chunk(whole, 6, plan_);
  BatchPlanner::add_chunk(part, 12, plan_);
  BatchPlanner::add_scores(by_slot_, plan_);
  EXPECT_THAT(plan_.tokens.ids(), ElementsAre(1004, 2003, 2004, 2005, 3010, 3011));
  EXPECT_EQ(plan_.n_tokens, 6u);
  EXPECT_EQ(plan_.n_decode, 1u);
  EXPECT_EQ(plan_.n_prompt_tokens(), 5u);
  EXPECT_EQ(plan_.n_outputs, 2u);
  EXPECT_EQ(decoding.decoded_in, 7u);
  ASSERT_EQ(plan_.items.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(plan_.items[i].request, requests_[i]->id);
    EXPECT_EQ(plan_.items[i].user, requests_[i]->params.user);
    EXPECT_EQ(plan_.items[i].ends_text, i < 2);
    EXPECT_EQ(plan_.items[i].is_decode, i == 0);
  }
  ASSERT_EQ(plan_.rows.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const PlanRow& row = plan_.rows[i];
    EXPECT_EQ(row.request, requests_[i]->id);
    EXPECT_EQ(row.user, requests_[i]->params.user);
    EXPECT_EQ(row.output.token_index, i == 0 ? 0u : 3u);
    EXPECT_EQ(row.output.position, requests_[i]->tokens.size());
    EXPECT_EQ(row.text.data(), requests_[i]->tokens.ids().data());
    EXPECT_EQ(row.text.size(), requests_[i]->tokens.size());
  }
}

TEST_F(BatchPlannerTest, ARowCarriesHowItsTokenIsPicked) {
  Request& plain = add(5, 4);
  Request& all = add(5, 4);
  all.params.sampling.temperature = 0.5f;
  all.params.sampling.presence_penalty = 0.25f;
  all.params.bias = {{3, 1.5f}};
  all.params.stop_tokens = {8, 9};
  all.params.min_tokens = 1;
  all.params.is_masked = all.params.is_processed = all.params.wants_logits = true;
  all.params.n_logprobs = 3;
  Request& late = add(7, 6);  // it has as many tokens as stops are banned for
  late.n_prompt = 5;
  late.params.stop_tokens = {8};
  late.params.min_tokens = 2;
  decode({&plain, &all, &late});
  ASSERT_EQ(plan_.rows.size(), 3u);
  const OutputRow &first = plan_.rows[0].output, &second = plan_.rows[1].output, &third = plan_.rows[2].output;
  EXPECT_THAT(first.history, IsEmpty());
  EXPECT_THAT(first.bias, IsEmpty());
  EXPECT_THAT(first.banned, IsEmpty());
  EXPECT_FALSE(first.is_masked || first.is_processed || first.wants_logits || first.n_logprobs);
  EXPECT_EQ(second.sampling.temperature, 0.5f);
  EXPECT_THAT(second.history, ElementsAre(2000, 2001, 2002, 2003, 2004));
  EXPECT_EQ(second.n_prompt, 5u);
  ASSERT_EQ(second.bias.size(), 1u);
  EXPECT_EQ(second.bias[0].token_id, 3);
  EXPECT_THAT(second.banned, ElementsAre(8, 9));
  EXPECT_TRUE(second.is_masked && second.is_processed && second.wants_logits);
  EXPECT_EQ(second.n_logprobs, 3u);
  EXPECT_EQ(second.scored, kNoToken);  // the token that is picked
  EXPECT_THAT(third.banned, IsEmpty());
}

// Rows of scores come behind all picks, for each prompt token but the last, and once.
TEST_F(BatchPlannerTest, ScoresOfPromptsComeBehindThePicks) {
  Request& scored = add(5, 0);
  scored.params.scores_prompt = true;
  scored.params.n_prompt_logprobs = 4;
  scored.n_scored = 1;  // of a turn before
  Request& other = add(3, 0);
  BatchPlanner::add_chunk(scored, 5, plan_);
  BatchPlanner::add_chunk(other, 3, plan_);
  BatchPlanner::add_scores(by_slot_, plan_);
  EXPECT_EQ(plan_.n_outputs, 2u);
  ASSERT_EQ(plan_.rows.size(), 5u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const PlanRow& row = plan_.rows[2 + i];
    EXPECT_EQ(row.output.token_index, i + 1);
    EXPECT_EQ(row.output.position, i + 2);
    EXPECT_EQ(row.output.scored, scored.tokens.ids()[i + 2]);
    EXPECT_EQ(row.request, scored.id);
    EXPECT_EQ(row.output.n_logprobs, 4u);
    EXPECT_FALSE(row.output.wants_logits);
  }
}

TEST_F(BatchPlannerTest, AChunkKeepsToTheCapsAndToWhatIsKnown) {
  Request& prompt = add(2000, 0);
  EXPECT_EQ(planner_.chunk_end(prompt, plan_), 512u);  // chunk_cap
  options_.prefill_cap = 100;
  EXPECT_EQ(planner_.chunk_end(prompt, plan_), 100u);
  options_.prefill_cap = UINT32_MAX;
  Request& decoding = add(5, 4, Qos::kInteractive);
  decode({&decoding});
  EXPECT_EQ(planner_.chunk_end(prompt, plan_), 8u);  // nothing is known of what it costs
  plan_.n_tokens = 512;
  EXPECT_EQ(planner_.chunk_end(prompt, plan_), 0u);
}

TEST_F(BatchPlannerTest, WholeTextsComeWholeOrNotAtAll) {
  options_.needs_whole_texts = true;
  Request& a = add(500, 0);
  Request& b = add(100, 0);
  EXPECT_EQ(planner_.chunk_end(a, plan_), 500u);
  BatchPlanner::add_chunk(a, 500, plan_);
  EXPECT_EQ(planner_.chunk_end(b, plan_), 0u);  // 12 are left
}

TEST_F(BatchPlannerTest, PromptsGoByClassThenByServiceThenByAdmission) {
  tenants_.add({}, 0);
  tenants_[0].service = 10;
  Request& batch = add(9, 0, Qos::kBatch);
  Request& served = add(9, 0);
  Request& later = add(9, 0);
  Request& earlier = add(9, 0);
  for (Request* r : {&batch, &later, &earlier}) r->params.tenant = 1;
  later.admitted_order = 2;
  earlier.admitted_order = 1;
  std::vector<Request*> prompts = {&batch, &served, &later, &earlier};
  planner_.sort_prompts(prompts);
  EXPECT_THAT(prompts, ElementsAre(&earlier, &later, &served, &batch));
}

}  // namespace
}  // namespace zinc_rt::sched

// BatchPlanner decides what one step of a replica computes. The scheduler calls it between steps. A step holds first
// the decoding slots. If the decoding slots would make the step too long, some of them skip it (decode_rows.cpp). Then
// come chunks of prompts: the most urgent class first and, within a class, the tenant that was served least. Prompts
// fill the step up to a limit on tokens, and up to the time that its decoding slots can wait. The planner estimates the
// duration of a step from past steps (cost_model.h). It never takes pages and never preempts; the scheduler does both.
// docs/design/sched.md tells how the constants were chosen.
// Thread rule: only the thread that holds the lock of the tenant book may call it.
#pragma once

#include <vector>

#include "sched/cost_model.h"
#include "sched/options.h"
#include "sched/plan.h"
#include "sched/request.h"
#include "sched/row_price.h"
#include "sched/slot_table.h"
#include "sched/tenant_book.h"

namespace zinc_rt::sched {

class BatchPlanner {
 public:
  // All three arguments must outlive the planner, which stores references to them.
  BatchPlanner(const Options& options, const TenantBook& tenants, const SlotTable& slots);

  // `ready` lists, in slot order, the requests that could decode one token in this step. Removes those that should skip
  // the step, because their long texts would make it long for everybody (decode_rows.cpp).
  void choose_decodes(std::vector<Request*>& ready);
  // Returns false if choose_drafts() will use no drafts in the next step except fixed ones (Speculation::is_fixed). The
  // engine then need not make drafts.
  bool wants_drafts() const { return n_paused_ >= pause_; }
  // Shortens the draft of each request to the guessed tokens that are worth their time in this step
  // (choose_drafts.cpp).
  void choose_drafts(std::span<Request* const> decoding);
  // Adds, for each request, its last token and its draft to an empty plan. `step` is the step's number.
  void add_decodes(std::span<Request* const> decoding, std::uint64_t step, StepPlan& plan);
  // Fills a plan with one token for each request: the token that the step running now picks (Scheduler::plan_ahead).
  void add_ahead(std::span<Request* const> decoding, std::uint64_t step, StepPlan& plan);
  // Sorts requests into the order in which they get a chunk of their prompt into a step.
  void sort_prompts(std::vector<Request*>& prompts) const;
  // Returns the index behind the last prompt token that this step may compute for the request. Returns the request's
  // n_done if no token fits.
  std::uint32_t chunk_end(const Request& request, const StepPlan& plan) const;
  // Adds tokens [n_done, end) of a prompt to the plan. REQUIRES: the slot has pages for them.
  static void add_chunk(const Request& request, std::uint32_t end, StepPlan& plan);
  // Some requests want the log probabilities of their prompt's tokens. Adds the output rows that compute them, behind
  // the rows that pick tokens. The tokens picked for these rows are ignored.
  static void add_scores(std::span<Request* const> by_slot, StepPlan& plan);

  // Reports how long the executed plan took in us, so that later estimates improve.
  void observe(const StepPlan& plan, double step_us);
  const CostModel& cost() const { return cost_; }
  const RowPrice& row_price() const { return row_price_; }

 private:
  // TenantRows is scratch memory of choose_decodes(): the numbers and times of one tenant's decoding rows.
  struct TenantRows {
    TenantId tenant = 0;
    double weight = 1, us = 0;
    Qos most_urgent = Qos::kBatch;
    double share_us = 0, left_us = 0;
    bool is_heavy = false, has_row = false;
  };
  double prompt_budget(Qos decoding, std::uint32_t n_decode, double alone_us) const;
  double budget_beside(Qos urgent, Qos qos, double urgent_us) const;
  std::uint32_t drafts_within(double us, std::uint32_t n_rows, std::uint32_t n_most, double row_us) const;
  std::uint32_t prompt_tokens_allowed(const Request& request, const StepPlan& plan) const;
  std::uint32_t part_end(const Request& request, std::uint32_t n) const;

  const Options& options_;
  const TenantBook& tenants_;
  const SlotTable& slots_;
  // DraftRow is the next token of a request's draft that choose_drafts() considers.
  struct DraftRow {
    Request* request;
    double chance;    // the probability that the token and all drafted tokens before it are picked
    std::uint32_t n;  // drafted tokens of the request before this one
  };

  CostModel cost_;
  RowPrice row_price_;
  std::vector<DraftRow> drafts_;  // scratch of choose_drafts(): a heap, the largest chance on top
  std::vector<Request*> order_;   // scratch: the request whose draft the n-th guessed row belongs to
  double us_without_ = 0;         // total time, in us, of the steps since the last step with drafts
  // If no draft was worth its time in a step, choose_drafts() uses no drafts in the next pause_ steps. n_paused_ counts
  // how many of these steps have passed.
  std::uint32_t pause_ = 0, n_paused_ = 0;
  // The most prompt tokens in a step that also decodes: twice the largest number in such a step so far.
  std::uint32_t prompt_cap_ = 0;
  std::vector<TenantRows> tenant_rows_;  // scratch of choose_decodes()
};

}  // namespace zinc_rt::sched

// Plans what a step computes. Decoding slots come first; if they would make the step long, some sit it out
// (decode_rows.cpp). Chunks of prompts follow: the most urgent class first, and within a class the tenant that was
// served least. Prompts fill the step up to a limit on tokens and up to the time that its decoding slots can wait. The
// planner learns from past steps how long a step takes (cost_model.h). The scheduler, not the planner, finds pages and
// preempts.
// How the numbers were chosen: docs/design/sched.md.
// Thread rule: whoever holds the lock of the tenant book.
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
  // The arguments must outlive it.
  BatchPlanner(const Options& options, const TenantBook& tenants, const SlotTable& slots);

  // Takes those out of `ready`, the requests that may decode in slot order, that sit this step out (decode_rows.cpp).
  void choose_decodes(std::vector<Request*>& ready);
  // Whether choose_drafts() may take drafts in the next step that are not fixed.
  bool wants_drafts() const { return n_paused_ >= pause_; }
  // Cuts the drafts of these requests to what the step takes of them (choose_drafts.cpp).
  void choose_drafts(std::span<Request* const> decoding);
  // Adds one token per request, and its draft, to an empty plan. step: the step's number.
  void add_decodes(std::span<Request* const> decoding, std::uint64_t step, StepPlan& plan);
  // The order in which requests get a chunk of their prompt into a step.
  void sort_prompts(std::vector<Request*>& prompts) const;
  // The end of the prompt tokens that this step may compute for the request. n_done: not one more fits.
  std::uint32_t chunk_end(const Request& request, const StepPlan& plan) const;
  // Adds tokens [n_done, end) of a prompt. REQUIRES: the slot has pages for them.
  static void add_chunk(const Request& request, std::uint32_t end, StepPlan& plan);
  // Adds the rows that score prompts, after the picks of all items. Their picks are thrown away.
  static void add_scores(std::span<Request* const> by_slot, StepPlan& plan);

  // After a step: how long it took.
  void observe(const StepPlan& plan, double step_us);
  const CostModel& cost() const { return cost_; }

 private:
  struct TenantRows {  // the decoding rows of a tenant
    TenantId tenant = 0;
    double weight = 1, us = 0;
    Qos most_urgent = Qos::kBatch;
    double share_us = 0, left_us = 0;
    bool is_heavy = false, has_row = false;
  };
  double prompt_budget(Qos decoding, std::uint32_t n_decode, double alone_us) const;
  std::uint32_t prompt_tokens_allowed(const Request& request, const StepPlan& plan) const;
  std::uint32_t part_end(const Request& request, std::uint32_t n) const;

  const Options& options_;
  const TenantBook& tenants_;
  const SlotTable& slots_;
  struct DraftRow {  // the next token of a request's draft
    Request* request;
    double chance;    // that it will be of use
    std::uint32_t n;  // tokens of the draft before it
  };

  CostModel cost_;
  RowPrice row_price_;
  std::vector<DraftRow> drafts_;  // scratch of choose_drafts(), a heap by chance
  std::vector<Request*> order_;   // scratch: whose draft the n-th guessed row is of
  double us_without_ = 0;         // time of the steps since the last one with drafts
  // After a look at drafts of which none paid: for how many steps no drafts are asked for, and how many of them passed.
  std::uint32_t pause_ = 0, n_paused_ = 0;
  std::uint32_t prompt_cap_ = 0;         // prompt tokens beside decoding slots: twice as many as steps have had
  std::vector<TenantRows> tenant_rows_;  // scratch of choose_decodes()
};

}  // namespace zinc_rt::sched

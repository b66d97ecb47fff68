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
#include "sched/slot_table.h"
#include "sched/tenant_book.h"

namespace zinc_rt::sched {

class BatchPlanner {
 public:
  // The arguments must outlive it.
  BatchPlanner(const Options& options, const TenantBook& tenants, const SlotTable& slots);

  // Adds one token per decoding request to an empty plan, except for requests that sit this step out. `ready`: the
  // requests that may decode, in slot order; it is scratch memory after the call. step: the step's number.
  void add_decodes(std::vector<Request*>& ready, std::uint64_t step, StepPlan& plan);
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
  void choose_decodes(std::vector<Request*>& decoding);  // decode_rows.cpp
  double prompt_budget(Qos decoding, std::uint32_t n_decode, double alone_us) const;
  std::uint32_t prompt_tokens_allowed(const Request& request, const StepPlan& plan) const;
  std::uint32_t part_end(const Request& request, std::uint32_t n) const;

  const Options& options_;
  const TenantBook& tenants_;
  const SlotTable& slots_;
  CostModel cost_;
  std::uint32_t prompt_cap_ = 0;         // prompt tokens beside decoding slots: twice as many as steps have had
  std::vector<TenantRows> tenant_rows_;  // scratch of choose_decodes()
};

}  // namespace zinc_rt::sched

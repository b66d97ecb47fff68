// Collects the statistics of the models. Each device's numbers are as of the end of its last step.
#include <algorithm>

#include "engine/core.h"
#include "engine/draft_model.h"

namespace zinc_rt {
namespace {

ModelStats stats_of(const std::string& name, Replica& replica) {
  const ModelRunner& runner = replica.runner();
  const sched::Scheduler& s = runner.scheduler();
  const sched::Stats& stats = s.stats();
  const std::uint32_t cached = s.prefixes().n_evictable();
  return {.name = name,
          .tier = replica.info.tier,
          .steps = stats.steps,
          .step_tokens = stats.decode_tokens + stats.prefill_tokens,
          .decode_tokens = stats.decode_tokens,
          .prefill_tokens = stats.prefill_tokens,
          .generated_tokens = stats.generated_tokens,
          .drafts = stats.drafts,
          .draft_tokens = stats.draft_tokens,
          .accepted_draft_tokens = stats.accepted_draft_tokens,
          .draft_model_steps = replica.draft() ? replica.draft()->n_steps() : 0,
          .failed_draft_model_steps = replica.draft() ? replica.draft()->n_failed() : 0,
          .steps_ahead = stats.steps_ahead,
          .running = s.n_running(),
          .waiting = s.n_waiting(),
          .backlog_tokens = s.backlog_tokens(),
          .slots = s.slots().size(),
          .slots_free = s.slots().n_free(),
          .pages = s.pages().n_pages(),
          .pages_free = s.pages().n_free() + cached,
          .pages_cached = cached,
          .page_evictions = stats.page_evictions,
          .admissions = stats.admissions,
          .preemptions = stats.preemptions,
          .prompt_tokens = stats.prompt_tokens,
          .cached_tokens = stats.cached_tokens,
          .internal_errors = stats.internal_errors,
          .failed_steps = runner.failed_steps(),
          .bad_logits = runner.bad_logits(),
          .failed_steps_in_a_row = runner.failed_in_a_row(),
          .allocated_bytes = replica.allocated_bytes,
          .devices = {}};
}

// Adds the numbers of one device to the total. Leaves the total's name and list of devices unchanged.
void add(ModelStats& total, const ModelStats& one) {
  total.steps += one.steps;
  total.step_tokens += one.step_tokens;
  total.decode_tokens += one.decode_tokens;
  total.prefill_tokens += one.prefill_tokens;
  total.generated_tokens += one.generated_tokens;
  total.drafts += one.drafts;
  total.draft_tokens += one.draft_tokens;
  total.accepted_draft_tokens += one.accepted_draft_tokens;
  total.draft_model_steps += one.draft_model_steps;
  total.failed_draft_model_steps += one.failed_draft_model_steps;
  total.steps_ahead += one.steps_ahead;
  total.running += one.running;
  total.waiting += one.waiting;
  total.backlog_tokens += one.backlog_tokens;
  total.slots += one.slots;
  total.slots_free += one.slots_free;
  total.pages += one.pages;
  total.pages_free += one.pages_free;
  total.pages_cached += one.pages_cached;
  total.page_evictions += one.page_evictions;
  total.admissions += one.admissions;
  total.preemptions += one.preemptions;
  total.prompt_tokens += one.prompt_tokens;
  total.cached_tokens += one.cached_tokens;
  total.internal_errors += one.internal_errors;
  total.failed_steps += one.failed_steps;
  total.bad_logits += one.bad_logits;
  total.failed_steps_in_a_row += one.failed_steps_in_a_row;
  total.allocated_bytes += one.allocated_bytes;
}

}  // namespace

EngineStats EngineCore::stats() {
  EngineStats stats;
  for (const StepLoop* loop : loops()) stats.step_ms = std::max(stats.step_ms, loop->step_ms());
  const std::lock_guard lock(names_mutex_);
  const auto book = book_.lock();
  for (const auto& model : models_) {
    ModelStats sum;
    sum.name = model->name();
    sum.tier = model->info().tier;
    for (const auto& replica : model->replicas()) {
      if (!replica->is_loaded()) continue;
      const ModelStats one = stats_of(model->name(), *replica);
      add(sum, one);
      sum.devices.push_back({replica->device.index, one});
    }
    if (sum.devices.empty()) continue;
    stats.models.push_back(std::move(sum));
    add(stats.total, stats.models.back());
    stats.largest_prefill_difference =
        std::max(stats.largest_prefill_difference, model->largest_prefill_difference.load());
  }
  ModelStats& total = stats.total;
  if (!stats.models.empty()) total.tier = stats.models[0].tier;
  if (total.prompt_tokens > 0)
    stats.prefix_hit_rate = static_cast<double>(total.cached_tokens) / static_cast<double>(total.prompt_tokens);
  return stats;
}

}  // namespace zinc_rt

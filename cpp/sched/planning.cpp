// The scheduler's plan() makes the plan of a step. It finds pages for the decoding slots, and for the prompt tokens
// that the batch planner wants.
#include <algorithm>

#include "sched/scheduler.h"

namespace zinc_rt::sched {
namespace {

constexpr Micros kSinkPoll = 10'000, kRetry = 1000;
// While requests wait, at most this many steps in a row are planned ahead. Then admission looks again, because some
// requests may start after a time (aging, turns, rates).
constexpr std::uint32_t kMostAheadOfOthers = 8;
// A step that is planned ahead has no guessed tokens, because guesses follow known tokens. Guesses gain far more than
// running ahead does, and they come in bursts: after a wrong guess the next right one is often a step away. So after a
// right guess a request is not planned ahead in this many steps.
constexpr std::uint64_t kStepsWithoutGuess = 32;

}  // namespace

// Returns whether the request must wait, because its sink is full or its tenant's rate is used up. If so, sets
// plan_.wake_at to the time at which to plan again.
bool Scheduler::is_throttled(const Request& r, Micros now) {
  const Slot& slot = slots_[r.slot];
  const Tenant& tenant = tenants_[r.params.tenant];
  if (slot.is_held_up) {
    plan_.wake_at = std::min(plan_.wake_at, now + kSinkPoll);
    return true;
  }
  const auto& bucket = slot.state == SlotState::kDecode ? tenant.decode : tenant.prefill;
  if (bucket.has_any(now)) return false;
  plan_.wake_at = std::min(plan_.wake_at, bucket.ready_at(now));
  return true;
}

void Scheduler::note_stall(Request& r) {
  if (slots_[r.slot].is_held_up && ++r.n_stalled > options_.slow_sink_steps) end_soon(r.id, Finish::kClientTooSlow);
}

bool Scheduler::grow(Request& r, std::uint32_t n_tokens, bool may_preempt, Micros now) {
  for (Bind room = pages_.grow(r, n_tokens); room != Bind::kDone; room = pages_.grow(r, n_tokens)) {
    if (!may_preempt) return false;
    Request* victim = victim_for_pages(r, room == Bind::kOverQuota, now);
    preempt(*victim, false, now);
    if (victim == &r) return false;
  }
  return true;
}

// Plans to save the recurrent state of each item from first_item on.
void Scheduler::save_states(std::size_t first_item) {
  if (!options_.is_recurrent) return;
  for (PlanItem& item : std::span(plan_.items).subspan(first_item))
    pages_.save_state(*slot_requests_[item.slot], item, plan_);
}

void Scheduler::plan_decodes(Micros now) {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    Request* r = slot_requests_[slot];
    if (r == nullptr || slots_[slot].state != SlotState::kDecode) continue;
    if (is_throttled(*r, now)) {
      note_stall(*r);
      continue;
    }
    // grow() may preempt other slots, even slots that have grown already, so the loop below visits all slots again.
    grow(*r, r->n_done + 1, true, now);
  }
  decoding_.clear();
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    Request* r = slot_requests_[slot];
    if (r == nullptr || slots_[slot].state != SlotState::kDecode || is_throttled(*r, now)) continue;
    if (slots_[slot].page_count * kPageTokens > r->n_done) decoding_.push_back(r);
  }
  planner_.choose_decodes(decoding_);
  planner_.choose_drafts(decoding_);
  for (Request* r : decoding_) {
    if (r->tokens.n_guessed() == 0) continue;
    pages_.lend(*r, r->n_done + 1 + r->tokens.n_guessed());
    r->tokens.cut_guess(slots_[r->slot].page_count * kPageTokens - r->n_done - 1);
  }
  planner_.add_decodes(decoding_, stats_.steps, plan_);
  save_states(0);
}

void Scheduler::plan_prompts(Micros now) {
  prompts_.clear();
  for (Request* r : slot_requests_) {
    if (r == nullptr || slots_[r->slot].state != SlotState::kPrefill) continue;
    // A request that computes its text again, after a preemption or a restart, does not decode. Its sink may be full
    // all the same.
    if (is_throttled(*r, now))
      note_stall(*r);
    else
      prompts_.push_back(r);
  }
  planner_.sort_prompts(prompts_);
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    Request& r = *prompts_[i];
    const std::uint32_t wanted = planner_.chunk_end(r, plan_);
    if (wanted == r.n_done) continue;
    // Decoding slots may have taken the request's pages since its admission. The request preempts others for pages only
    // if the step would otherwise be empty.
    const bool is_last_hope = plan_.items.empty() && i + 1 == prompts_.size();
    if (!grow(r, wanted, is_last_hope, now) && r.slot == kNone) continue;
    const std::uint32_t there = std::min(wanted, slots_[r.slot].page_count * kPageTokens);
    if (there <= r.n_done || (options_.needs_whole_texts && there < r.tokens.size())) continue;
    planner_.add_chunk(r, there, plan_);
    save_states(plan_.items.size() - 1);
  }
}

// Called if nothing can run now. Sets when to plan again: at the next deadline, or when a waiting tenant's rate allows
// tokens.
void Scheduler::look_again(Micros now) {
  if (n_deadlines_ > 0)
    for (const auto& r : requests_)
      if (r != nullptr) plan_.wake_at = std::min(plan_.wake_at, r->params.deadline);
  waiting_.for_each_head([&](const Request& head) {
    const Tenant& tenant = tenants_[head.params.tenant];
    for (const auto* bucket : {&tenant.prefill, &tenant.decode})
      if (!bucket->has_any(now)) plan_.wake_at = std::min(plan_.wake_at, bucket->ready_at(now));
  });
}

// Returns whether the device can pick the request's next token but one without the host: the host must neither know the
// next token before (penalties, grammars, processors) nor see the logits. The next token may not change the variant of
// the position encoding, and the step may not end where the recurrent state is saved.
bool Scheduler::may_decode_ahead(const Request& r) const {
  const RequestParams& p = r.params;
  const std::uint32_t n_next = r.tokens.size() + 1;  // tokens of the text once the running step has ended
  return !p.sampling.has_penalties() && p.bias.empty() && !r.bans_stops(n_next) && !p.is_masked && !p.is_processed &&
         !p.wants_logits && (!p.n_logprobs || options_.has_logprobs) &&
         options_.variant_of(n_next) == slots_[r.slot].rope_variant &&
         (r.guessed_in == 0 || stats_.steps >= r.guessed_in + kStepsWithoutGuess) &&
         !(options_.is_recurrent && n_next % kPageTokens == 0);
}

// Returns whether the next step only decodes the requests of the running step, whatever that step picks.
bool Scheduler::only_decodes_next(Micros now) {
  if (!options_.runs_ahead || !cancelled_.empty() || !plan_.page_copies.empty() || !plan_.restores.empty() ||
      !plan_.saves.empty())
    return false;
  // The running step must decode all requests that have a slot. A slot that an ended request left is for those who wait.
  const auto has_ended = [&](const PlanItem& item) { return request_of(item) == nullptr; };
  const auto n_ended = static_cast<std::uint32_t>(std::ranges::count_if(plan_.items, has_ended));
  if (n_running_ != plan_.items.size() - n_ended || (n_ended > 0 && waiting_.size() > 0)) return false;
  if (waiting_.size() > 0 && n_ahead_ >= kMostAheadOfOthers) return false;
  if (n_deadlines_ > 0)
    for (const auto& r : requests_)
      if (r != nullptr && r->params.deadline <= now) return false;
  // The running step is not charged yet. A tenant may have all of its rows.
  const auto n_rows = static_cast<double>(plan_.items.size());
  return std::ranges::all_of(plan_.items, [&](const PlanItem& item) {
    const Request* r = request_of(item);
    return r == nullptr || (item.is_decode && item.n_drafts == 0 && may_decode_ahead(*r) && !is_throttled(*r, now) &&
                            tenants_[r->params.tenant].decode.has_after(n_rows, now));
  });
}

bool Scheduler::may_plan_ahead(Micros now) {
  const auto lock = tenants_.lock();
  return only_decodes_next(now);
}

const StepPlan* Scheduler::plan_ahead(Micros now) {
  const auto lock = tenants_.lock();
  if (!only_decodes_next(now)) return nullptr;
  decoding_.clear();
  for (const PlanItem& item : plan_.items) {
    Request* r = request_of(item);
    if (r == nullptr || r->tokens.size() + 1 >= r->n_limit) continue;  // the running step picks its last token
    if (pages_.grow(*r, r->n_done + 2) != Bind::kDone) return nullptr;
    decoding_.push_back(r);
  }
  if (decoding_.empty()) return nullptr;
  ++n_ahead_;
  planner_.add_ahead(decoding_, stats_.steps + 1, ahead_);
  return &ahead_;
}

const StepPlan& Scheduler::plan(Micros now) {
  const auto lock = tenants_.lock();
  n_ahead_ = 0;
  plan_.clear_items();
  plan_.n_tokens = plan_.n_decode = plan_.n_drafts = plan_.n_outputs = 0;
  plan_.wake_at = kNever;
  plan_decodes(now);
  plan_prompts(now);
  BatchPlanner::add_scores(slot_requests_, plan_);
  const bool has_preempted = stats_.preemptions > preemptions_planned_;
  preemptions_planned_ = stats_.preemptions;
  if (!plan_.empty()) return plan_;
  // Every slot that could run was preempted, here or in admit, and the request that needed the room may have ended. So
  // admission must run again. It does so after a pause, because nothing changes while throttled slots hold the pages.
  if (has_preempted) plan_.wake_at = std::min(plan_.wake_at, now + kRetry);
  look_again(now);
  return plan_;
}

}  // namespace zinc_rt::sched

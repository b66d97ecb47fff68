#include "sched/scheduler.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace zinc_rt::sched {

Scheduler::Scheduler(Options options, TenantBook& tenants, std::shared_ptr<Shares> all_shares)
    : options_(std::move(options)),
      tenants_(tenants),
      slots_(options_.n_slots, options_.max_context / kPageTokens),
      pages_(options_, tenants_, slots_, stats_),
      planner_(options_, tenants_, slots_),
      shares_(options_.turn),
      all_shares_(std::move(all_shares)),
      slot_requests_(options_.n_slots, nullptr) {
  options_.chunk_cap = std::max(options_.chunk_cap, options_.n_slots);
  const std::size_t n = options_.n_slots;
  decoding_.reserve(n);
  prompts_.reserve(n);
  for (StepPlan* plan : {&plan_, &ahead_}) {
    plan->items.reserve(n);
    plan->tokens.reserve(options_.chunk_cap);
    plan->rows.reserve(n + options_.chunk_cap);
    plan->page_copies.reserve(n);
    plan->restores.reserve(n);
    plan->saves.reserve(n);
  }
  verdicts_.reserve(n);
  events_.reserve((8 + kMostDrafts) * n + 2 * options_.queue_cap);
  cancelled_.reserve(n + options_.queue_cap);
}

Scheduler::~Scheduler() = default;

Status check_request(std::uint64_t n_prompt, std::uint64_t max_tokens, const Quota& quota, const Options& options,
                     std::uint64_t reserved_for_others) {
  const auto refuse = [](const std::string& message) {
    return fail(StatusCode::kInvalidArgument, "[admission] {}", message);
  };
  if (n_prompt == 0) return refuse("the prompt has no tokens");
  const std::uint32_t context = std::min(options.max_context, quota.max_context_tokens);
  if (n_prompt + (max_tokens > 0) > context)
    return refuse(fmt::format("a prompt of {} tokens{}, the context has {}{}", n_prompt,
                              max_tokens > 0 ? " and one to generate" : "", context,
                              context < options.max_context ? " (the tenant's max_context_tokens)" : ""));
  const std::uint32_t needed = mem::pages_for(std::min<std::uint64_t>(n_prompt + max_tokens, context));
  if (needed > quota.max_kv_pages)
    return refuse(fmt::format("may need {} KV pages, the tenant's quota is {} (max_kv_pages); lower max_tokens", needed,
                              quota.max_kv_pages));
  if (needed + reserved_for_others > options.n_pages)
    return refuse(fmt::format("may need {} KV pages, there are {}, of which {} are reserved for other tenants", needed,
                              options.n_pages, reserved_for_others));
  return {};
}

// Returns, in seconds, how long the queue takes to empty at the recent rate of finished requests: when a refused client
// should try again.
double Scheduler::retry_after() const {
  const double seconds = finish_interval_us_ * 1e-6 * waiting_.size();
  return std::clamp(seconds, 1.0, 60.0);
}

Result<RequestId> Scheduler::submit(RequestParams params, Micros now) {
  const auto lock = tenants_.lock();
  const Quota& quota = tenants_[params.tenant].quota;
  ZRT_CHECK_OK(check_request(params.prompt.size(), params.max_tokens, quota, options_,
                             tenants_.total_reserved() - quota.reserved_kv_pages));
  if (waiting_.size() >= options_.queue_cap) {
    auto error =
        fail(StatusCode::kExhausted, "[admission] {} requests wait, {} may", waiting_.size(), options_.queue_cap);
    error.error().retry_after_s = retry_after();
    return error;
  }
  if (free_indices_.empty()) {
    free_indices_.push_back(static_cast<std::uint32_t>(requests_.size()));
    requests_.emplace_back();
  }
  const std::uint32_t index = free_indices_.back();
  free_indices_.pop_back();
  requests_[index] = std::make_unique<Request>();
  Request& r = *requests_[index];
  r.params = std::move(params);
  r.index = index;
  r.id = next_generation_++ << 32 | index;
  r.order = next_order_++;
  r.n_prompt = r.params.prompt.size();
  const Tenant& tenant = tenants_[r.params.tenant];
  r.n_limit = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(r.n_prompt + std::uint64_t{r.params.max_tokens},
                              std::min(options_.max_context, tenant.quota.max_context_tokens)));
  r.tokens.reserve(r.n_limit);
  r.tokens.append(r.params.prompt.view());
  r.params.prompt = {};
  r.n_cached = r.params.n_cached;
  if (r.params.deadline != kNever) ++n_deadlines_;
  tenants_.note_arrival(r.params.tenant);
  ++tenants_[r.params.tenant].waiting;
  note_waiting(r, 1);
  waiting_.push(r, now);
  return r.id;
}

Request* Scheduler::get(RequestId id) const {
  const auto index = static_cast<std::uint32_t>(id);
  if (index >= requests_.size() || requests_[index] == nullptr || requests_[index]->id != id) return nullptr;
  return requests_[index].get();
}

const Request* Scheduler::find(RequestId id) const {
  return get(id);
}

void Scheduler::cancel(RequestId id, Finish reason) {
  const auto lock = tenants_.lock();
  end_soon(id, reason);
}

void Scheduler::end_soon(RequestId id, Finish reason) {
  Request* r = get(id);
  if (r == nullptr || r->has_cancel) return;
  r->has_cancel = true;
  r->cancel = reason;
  cancelled_.push_back(id);
}

void Scheduler::cancel_all(Finish reason) {
  const auto lock = tenants_.lock();
  for (const auto& r : requests_)
    if (r != nullptr) end_soon(r->id, reason);
}

void Scheduler::set_backpressure(RequestId id, bool on) {
  Request* r = get(id);
  if (r == nullptr || r->slot == kNone) return;
  slots_[r->slot].is_held_up = on;
  if (!on) r->n_stalled = 0;
}

std::uint64_t Scheduler::backlog_tokens() const {
  std::uint64_t n = 0;
  for (const auto& r : requests_)
    if (r) n += r->n_to_compute();
  return n;
}

void Scheduler::move(std::uint32_t slot, SlotState to) {
  if (const auto status = slots_.set_state(slot, to); !status) {
    log().error("{}", status.error().message);
    ++stats_.internal_errors;
  }
}

Event Scheduler::event(EventKind kind, const Request& r) const {
  Event e;
  e.kind = kind;
  e.slot = r.slot;
  e.tenant = r.params.tenant;
  e.request = r.id;
  e.user = r.params.user;
  e.n_generated = r.n_generated();
  return e;
}

void Scheduler::note_waiting(const Request& r, int more) {
  shares_.note_waiting(r.params.tenant, r.params.qos, more);
  if (all_shares_) all_shares_->note_waiting(r.params.tenant, r.params.qos, more);
}

void Scheduler::note_running(const Request& r, int more) {
  shares_.note_running(r.params.tenant, r.params.qos, more);
  if (all_shares_) all_shares_->note_running(r.params.tenant, r.params.qos, more);
}

void Scheduler::finish(Request& r, Finish reason, Micros now) {
  Event e = event(EventKind::kFinished, r);
  e.reason = reason;
  if (r.is_waiting) {
    waiting_.remove(r, now);
    --tenants_[r.params.tenant].waiting;
    note_waiting(r, -1);
  } else {
    move(r.slot, SlotState::kDone);
    release_slot(r, reason != Finish::kFault && reason != Finish::kBadLogits);
  }
  if (r.params.deadline != kNever) --n_deadlines_;
  if (last_finish_ != 0)
    finish_interval_us_ = 0.9 * finish_interval_us_ + 0.1 * static_cast<double>(now - last_finish_);
  last_finish_ = now;
  events_.push_back(e);
  free_indices_.push_back(r.index);
  requests_[r.index].reset();
}

void Scheduler::take_slot(Request& r) {
  r.slot = slots_.take();
  slot_requests_[r.slot] = &r;
  pages_.bind(r, plan_);
}

void Scheduler::release_slot(Request& r, bool keep) {
  pages_.release(r, keep, plan_);
  slots_.give_back(r.slot);
  slot_requests_[r.slot] = nullptr;
  r.slot = kNone;
  --tenants_[r.params.tenant].slots;
  note_running(r, -1);
  --n_running_;
  if (r.protected_until > 0) --n_protected_;
  r.protected_until = 0;
}

void Scheduler::restart(Request& r) {
  pages_.begin_again(r, plan_);
  if (slots_[r.slot].state != SlotState::kPrefill) move(r.slot, SlotState::kPrefill);
}

std::uint32_t Scheduler::most_drafts(const Request& r) const {
  const std::uint32_t size = r.tokens.size();
  // The limit counts one token more than the draft, because a token is also picked after the last guess. All rows of
  // the draft use the slot's variant of the position encoding.
  const std::uint32_t most = std::min({r.params.speculation.most, options_.most_drafts, r.n_limit - size - 1});
  const std::uint32_t variant = slots_[r.slot].rope_variant;
  if (variant >= options_.rope_limits.size()) return most;
  return std::min(most, options_.rope_limits[variant] - std::min(options_.rope_limits[variant], size));
}

bool Scheduler::has_rate(const Request& r, Micros now) const {
  const auto lock = tenants_.lock();
  return tenants_[r.params.tenant].decode.has_any(now);
}

void Scheduler::propose(RequestId id, std::span<const std::int32_t> draft, double chance, bool is_trial) {
  Request* r = get(id);
  if (r == nullptr) return;
  r->tokens.drop_guess();
  if (r->slot == kNone || slots_[r->slot].state != SlotState::kDecode) return;
  r->tokens.guess(draft.first(std::min<std::size_t>(draft.size(), most_drafts(*r))));
  r->draft_chance = chance;
  r->is_trial = is_trial;
}

// Counts how many picks of an item are valid. A pick after a wrong guess belongs to another text, and a pick after a
// token that ends the request is not wanted.
Scheduler::Verdict Scheduler::verdict_on(const PlanItem& item, const Request& r,
                                         std::span<const std::int32_t> picks) const {
  Verdict verdict;
  const auto drafts = r.tokens.guessed();
  while (verdict.n_right < item.n_drafts && drafts[verdict.n_right] == picks[verdict.n_right]) ++verdict.n_right;
  const auto& stops = r.params.stop_tokens;
  const std::uint32_t most = std::min(verdict.n_right + 1, item.n_picks);
  while (verdict.n_tokens < most) {
    const std::int32_t token = picks[verdict.n_tokens];
    if (token == kNoToken) break;
    ++verdict.n_tokens;
    if (std::ranges::find(stops, token) != stops.end() || r.tokens.size() + verdict.n_tokens >= r.n_limit) break;
  }
  return verdict;
}

// Returns the request of an item, or null if it has ended since its step was planned (plan_ahead).
Request* Scheduler::request_of(const PlanItem& item) const {
  Request* r = slot_requests_[item.slot];
  return r != nullptr && r->id == item.request ? r : nullptr;
}

bool Scheduler::is_ahead() const {
  return std::ranges::any_of(plan_.items, [&](const PlanItem& item) { return request_of(item) != nullptr; });
}

// Advances the request past the tokens that the item computed. All valid picks but the last are appended to the text
// here, because pages enter the prefix cache by their tokens. accept() appends the last.
void Scheduler::commit_item(const PlanItem& item, Verdict& verdict, Micros now) {
  Request& r = *slot_requests_[item.slot];
  const auto& p = r.params;
  std::uint32_t n = item.n;
  if (item.n_drafts > 0) {
    // The tenant's quota may not allow all lent pages. Tokens that have no page are computed again in a later step.
    const std::uint32_t room = pages_.settle(r, item.begin + std::max(1u, verdict.n_tokens)) - item.begin;
    verdict.n_tokens = std::min(verdict.n_tokens, room);
    n = std::max(1u, verdict.n_tokens);
    r.tokens.confirm(n - 1);
    ++stats_.drafts;
    stats_.draft_tokens += item.n_drafts;
    stats_.accepted_draft_tokens += n - 1;
    if (n > 1) r.guessed_in = stats_.steps + 1;
    tenants_.serve_in_vain(p.tenant, p.qos, item.n - n);
  }
  r.n_done = item.begin + n;
  r.n_unapplied = options_.is_recurrent && item.n_drafts > 0 ? n - 1 : 0;
  if (p.scores_prompt) r.n_scored = std::max(r.n_scored, std::min(r.n_done, r.n_prompt - 1));
  pages_.publish(r, item.begin);
  tenants_.serve(p.tenant, p.qos, item.is_decode ? 0 : n, item.is_decode ? n : 0, now);
  (item.is_decode ? stats_.decode_tokens : stats_.prefill_tokens) += n;
}

// Reports the picks that became tokens, appends the last of them to the text, and ends the request if this token or a
// limit ends it.
void Scheduler::accept(Request& r, const PlanItem& item, const Verdict& verdict, std::uint32_t first_row,
                       std::span<const std::int32_t> picks, Micros now) {
  // If no token was picked, either the request's processor or mask failed (has_cancel), or its logits were not finite.
  const Finish no_token = r.has_cancel && r.cancel == Finish::kProcessorFailed ? r.cancel : Finish::kBadLogits;
  if (verdict.n_tokens == 0) return finish(r, no_token, now);
  const std::uint32_t n_before = r.n_generated() - (verdict.n_tokens - 1);
  const std::int32_t last = picks[verdict.n_tokens - 1];
  r.tokens.push_back(last);
  stats_.generated_tokens += verdict.n_tokens;
  Slot& slot = slots_[r.slot];
  if (slot.state != SlotState::kDecode) move(r.slot, SlotState::kDecode);
  for (std::uint32_t i = 0; i < verdict.n_tokens; ++i) {
    Event e = event(EventKind::kToken, r);
    e.token = picks[i];
    e.n_generated = n_before + i + 1;
    e.output_row = first_row + i;
    e.n_in_step = verdict.n_tokens;
    e.is_first = e.n_generated == 1;
    if (i == 0) e.n_drafts = item.n_drafts, e.n_right = verdict.n_right;
    events_.push_back(e);
  }
  const bool is_stop = std::ranges::find(r.params.stop_tokens, last) != r.params.stop_tokens.end();
  if (is_stop) return finish(r, Finish::kStop, now);
  if (r.tokens.size() >= r.n_limit) return finish(r, Finish::kLength, now);
  // The token after the last right guess could not be picked, so the request ends.
  const bool has_failed = verdict.n_tokens <= verdict.n_right && picks[verdict.n_tokens] == kNoToken;
  if (has_failed) return finish(r, no_token, now);
  if (variant_of(r) != slot.rope_variant) restart(r);
}

void Scheduler::commit(std::span<const std::int32_t> tokens, Micros now, double step_us) {
  const auto lock = tenants_.lock();
  for (const PageMove& copy : plan_.page_copies) slot_requests_[copy.slot]->copy_pending = false;
  pages_.finish_copies(plan_);
  verdicts_.clear();
  std::uint32_t row = 0;
  for (const PlanItem& item : plan_.items) {
    const Request* r = request_of(item);
    verdicts_.push_back(r == nullptr ? Verdict{} : verdict_on(item, *r, tokens.subspan(row, item.n_picks)));
    if (r != nullptr) commit_item(item, verdicts_.back(), now);
    row += item.n_picks;
  }
  plan_.saves.clear();
  row = 0;
  for (std::size_t i = 0; i < plan_.items.size(); ++i) {
    const PlanItem& item = plan_.items[i];
    Request* const request = request_of(item);
    if (request == nullptr) {
      ++stats_.dropped_rows;
      row += item.n_picks;
      continue;
    }
    Request& r = *request;
    if (r.has_cancel && r.cancel == Finish::kBadLogits) {  // the logits of a scored prompt were not finite
      finish(r, r.cancel, now);
    } else if (item.n_picks > 0) {
      r.prompt_done = true;
      accept(r, item, verdicts_[i], row, tokens.subspan(row, item.n_picks), now);
    } else if (r.n_left() == 0) {
      finish(r, Finish::kLength, now);
    } else if (variant_of(r) != slots_[item.slot].rope_variant) {
      restart(r);
    }
    row += item.n_picks;
  }
  if (plan_.n_tokens > 0) {
    ++stats_.steps;
    planner_.observe(plan_, step_us);
  }
  plan_.clear_items();
  if (ahead_.items.empty()) return;
  std::swap(plan_, ahead_);
  ++stats_.steps_ahead;
}

void Scheduler::fail_step(Micros now) {
  const auto lock = tenants_.lock();
  // A slot whose page or state was to be copied in this step has no valid contents either.
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    Request* r = slot_requests_[slot];
    if (r == nullptr) continue;
    const auto is_here = [slot](const auto& move) { return move.slot == slot; };
    if (std::ranges::any_of(plan_.items, is_here) || std::ranges::any_of(plan_.page_copies, is_here) ||
        std::ranges::any_of(plan_.restores, is_here))
      finish(*r, Finish::kFault, now);
  }
  plan_.clear_items();
  ahead_.clear_items();
}

Result<std::uint32_t> Scheduler::lease(std::uint32_t n_tokens) {
  const auto lock = tenants_.lock();
  if (n_tokens > options_.max_context)
    return fail(StatusCode::kInvalidArgument, "[engine] {} tokens, the context has {}", n_tokens, options_.max_context);
  const std::uint32_t needed = mem::pages_for(n_tokens);
  ZRT_CHECK_OK(pages_.make_free(needed));
  const std::uint32_t slot = slots_.take();
  if (slot == kNone) return fail(StatusCode::kExhausted, "[engine] needs 1 slot, 0 free of {}", slots_.size());
  pages_.take(slot, needed);
  ++n_leases_;
  return slot;
}

void Scheduler::give_back_lease(std::uint32_t slot) {
  const auto lock = tenants_.lock();
  pages_.give_back(slot);
  slots_.give_back(slot);
  --n_leases_;
}

void Scheduler::publish_lease(std::uint32_t slot, TenantId tenant, const std::string& salt, mem::SpanView tokens) {
  const auto lock = tenants_.lock();
  pages_.publish(slot, tenant, salt, tokens);
}

std::uint32_t Scheduler::cached_tokens(TenantId tenant, const std::string& salt, mem::SpanView prompt) const {
  return pages_.cached_tokens(tenant, salt, prompt);
}

std::uint32_t Scheduler::flush_prefixes(TenantId tenant) {
  const auto lock = tenants_.lock();
  return pages_.flush(tenant, true);
}

void Scheduler::forget_tenant(TenantId tenant) {
  const auto lock = tenants_.lock();
  pages_.flush(tenant, false);
  shares_.forget(tenant);
  if (all_shares_) all_shares_->forget(tenant);
}

}  // namespace zinc_rt::sched

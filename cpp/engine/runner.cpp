#include "engine/runner.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "engine/clock.h"

namespace zinc_rt {

ModelRunner::ModelRunner(Executor& executor, const sched::Options& options, sched::TenantBook& tenants,
                         std::shared_ptr<sched::Shares> all_shares, Timeline& timeline, std::uint32_t thread,
                         DraftModel* draft)
    : executor_(executor),
      draft_(draft),
      scheduler_(options, tenants, std::move(all_shares)),
      trace_(timeline, options.n_slots, options.model_id, thread) {
  const std::size_t n_slots = options.n_slots, n_tokens = scheduler_.options().chunk_cap;
  for (StepInput* input : {&running_[0].input, &running_[1].input, &leased_input_}) {
    input->token_ids.reserve(n_tokens);
    input->positions.reserve(n_tokens);
    input->slots.reserve(n_tokens);
    input->token_types.reserve(executor.config().n_token_types > 0 ? n_tokens : 0);
    input->runs.reserve(n_slots);
    input->outputs.reserve(n_slots + n_tokens);
  }
  const auto on_embeddings = [this](std::uint32_t first, std::span<const float> rows) {
    const std::size_t width = executor_.info().embedding_dim;
    for (std::size_t i = 0, row = first; i * width < rows.size(); ++i, ++row) {
      const sched::PlanItem& of = plan_->items[embedded_[row]];
      if (!listener_->on_embedding(of.user, rows.subspan(i * width, width))) bad_embeddings_.push_back(of.request);
    }
  };
  for (Running& running : running_) {
    running.input.on_logits = [this](std::uint32_t first, std::span<const float> logits) {
      report_rows(first, logits, {});
    };
    running.input.on_logprobs = [this](std::uint32_t first, std::span<const RowLogprobs> rows) {
      report_rows(first, {}, rows);
    };
    running.input.on_embeddings = on_embeddings;
    if (draft != nullptr && draft->reads_features())
      running.input.on_features = [this](std::span<const float> rows) { note_features(rows); };
    running.input.mask = [this](std::uint32_t row) { return mask(row); };
    running.input.process = [this](std::uint32_t row, std::span<float> logits) {
      const sched::PlanRow& of = plan_->rows[row];
      if (!listener_->process(of.user, of.text, logits)) failed_rows_.push_back(row);
    };
  }
  output_.tokens.reserve(n_slots + n_tokens);
  page_copies_.reserve(n_slots);
  restores_.reserve(n_slots);
  saves_.reserve(n_slots);
  in_slots_.reserve(n_slots);
  wanted_.reserve(draft != nullptr ? n_slots : 0);
  failed_rows_.reserve(n_slots + n_tokens);
  row_is_real_.reserve(n_slots + n_tokens);
  logits_rows_.reserve(n_slots + n_tokens);
  embedded_.reserve(n_slots);
  bad_embeddings_.reserve(n_slots);
  leased_variants_.resize(n_slots);
}

// Writes the plan into the step's input, together with the slots' page tables.
void ModelRunner::fill(const sched::StepPlan& plan, StepInput& input) {
  const auto& slots = scheduler_.slots();
  input.token_ids.assign(plan.tokens.ids().begin(), plan.tokens.ids().end());
  input.positions.clear();
  input.slots.clear();
  input.token_types.clear();
  input.outputs.clear();
  input.page_tables = {slots.page_ids(), slots.width(), slots.page_counts()};
  input.rope_variants = slots.rope_variants();
  const bool has_types = executor_.config().n_token_types > 0;
  for (const sched::PlanItem& item : plan.items)
    for (std::uint32_t i = item.begin; i < item.begin + item.n; ++i) {
      input.positions.push_back(static_cast<std::int32_t>(i));
      input.slots.push_back(static_cast<std::int32_t>(item.slot));
      if (has_types) input.token_types.push_back(item.second_text > 0 && i >= item.second_text ? 1 : 0);
    }
  input.runs.clear();
  if (scheduler_.options().is_recurrent)
    for (const sched::PlanItem& item : plan.items)
      if (item.n_drafts > 0 || item.n_replayed > 0)
        input.runs.push_back({.slot = item.slot,
                              .n_replayed = item.n_replayed,
                              .n_guessed = item.n_drafts,
                              .save_at = item.save_at,
                              .save_to = item.save_to});
  for (const sched::PlanRow& row : plan.rows) input.outputs.push_back(output_row(row));
  fill_embeddings(plan, input);
}

// Decides where the logprobs of a row are computed: by the executor, or on the host from the row's logits. The host
// computes them if the executor cannot, if the row is processed (the executor would see the changed logits), or if the
// logits are read for a hash anyway.
OutputRow ModelRunner::output_row(const sched::PlanRow& row) const {
  OutputRow output = row.output;
  if (!output.n_logprobs || (executor_.info().has_logprobs && !output.is_processed && !output.wants_logits))
    return output;
  output.wants_logits = true;
  output.n_logprobs.reset();
  return output;
}

// Reports the output rows from `first` on to the listener. One of the spans is empty; the other has their logits, row
// after row, or their logprobs.
void ModelRunner::report_rows(std::uint32_t first, std::span<const float> logits,
                              std::span<const RowLogprobs> logprobs) {
  const std::size_t width = executor_.config().vocab_size;
  const std::size_t count = logprobs.empty() ? logits.size() / width : logprobs.size();
  logits_rows_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = first + static_cast<std::uint32_t>(i);
    const sched::PlanRow& of = plan_->rows[row];
    const bool is_prompt = row >= plan_->n_outputs;
    judge_rows(std::min(row + 1, plan_->n_outputs));
    // Skips a row without a token to score: the row follows a wrong guess, or its request ends.
    if (!is_prompt && (!row_is_real_[row] || output_.tokens[row] == kNoToken)) continue;
    logits_rows_.push_back({.user = of.user,
                            .row = row,
                            .token = is_prompt ? of.output.scored : output_.tokens[row],
                            .is_prompt = is_prompt,
                            .logits = logprobs.empty() ? logits.subspan(i * width, width) : logits,
                            .logprobs = logprobs.empty() ? nullptr : &logprobs[i]});
  }
  if (!logits_rows_.empty()) listener_->on_logits(logits_rows_);
}

// Returns the mask of an output row. If computing it failed, the row is picked without a mask, and its request ends.
std::span<const std::uint32_t> ModelRunner::mask(std::uint32_t row) {
  const auto words = listener_->mask(plan_->rows[row].user, plan_->rows[row].n_guessed);
  if (!words) {
    failed_rows_.push_back(row);
    return {};
  }
  constexpr std::size_t kWord = 32;
  const std::size_t n_words = (executor_.config().vocab_size + kWord - 1) / kWord;
  return words->first(std::min(words->size(), n_words));  // the tokenizer may have more tokens than there are logits
}

void ModelRunner::note_features(std::span<const float> rows) {
  const std::size_t dim = executor_.info().feature_dim;
  for (const sched::PlanItem& item : plan_->items) {
    draft_->note_features(item.slot, item.request, item.begin, rows.first(item.n * dim));
    rows = rows.subspan(item.n * dim);
  }
}

// Adds an output row for each text that this step completes. Only models with pooling (embeddings) need this.
void ModelRunner::fill_embeddings(const sched::StepPlan& plan, StepInput& input) {
  embedded_.clear();
  bad_embeddings_.clear();
  if (executor_.info().pooling == Pooling::kNone) return;
  const Pooling pooling = executor_.info().pooling;
  // kCls and kRank use the row of the text's first token, all other kinds the row of the last token.
  const bool is_first = pooling == Pooling::kCls || pooling == Pooling::kRank;
  std::uint32_t end = 0;  // index among the step's tokens, one behind the item's last token
  for (std::uint32_t i = 0; i < plan.items.size(); ++i) {
    const sched::PlanItem& item = plan.items[i];
    end += item.n;
    if (!item.ends_text) continue;
    OutputRow row;
    row.token_index = is_first ? end - item.n : end - 1;
    row.position = item.begin + item.n;
    input.outputs.push_back(row);
    embedded_.push_back(i);
  }
}

void ModelRunner::end_bad_embeddings() {
  for (const sched::RequestId id : bad_embeddings_) scheduler_.cancel(id, sched::Finish::kBadLogits);
}

// Ends requests whose prompt cannot be scored, in the same way as requests for which no token can be picked.
void ModelRunner::end_bad_scores(const sched::StepPlan& plan) {
  for (std::size_t i = plan.n_outputs; i < plan.rows.size(); ++i)
    if (output_.tokens[i] == kNoToken) scheduler_.cancel(plan.rows[i].request, sched::Finish::kBadLogits);
}

// Sets row_is_real_ for the first `end` output rows. A row is real if all guesses before it were picked, so that it
// continues the request's own text. The other rows follow a wrong guess, so their results are not used. REQUIRES: the
// rows before them have been picked.
void ModelRunner::judge_rows(std::size_t end) {
  for (std::size_t i = row_is_real_.size(); i < end; ++i) {
    const sched::PlanRow& row = plan_->rows[i];
    row_is_real_.push_back(row.n_guessed == 0 || (row_is_real_[i - 1] && output_.tokens[i - 1] == row.text.back()));
  }
}

// Ends the requests for which a processor or mask failed or allowed no token. Such a request gets no token from the
// failed pick or from later ones.
void ModelRunner::end_failed_picks(const sched::StepPlan& plan) {
  judge_rows(plan.n_outputs);
  for (std::uint32_t i = 0; i < plan.n_outputs; ++i) {
    const sched::PlanRow& row = plan.rows[i];
    if ((!row.output.is_masked && !row.output.is_processed) || !row_is_real_[i]) continue;
    const bool has_failed = std::ranges::find(failed_rows_, i) != failed_rows_.end();
    if (output_.tokens[i] != kNoToken && !has_failed) continue;
    if (!has_failed) listener_->no_token_left(row.user);
    output_.tokens[i] = kNoToken;
    scheduler_.cancel(row.request, sched::Finish::kProcessorFailed);
  }
}

Status ModelRunner::copy_state(const std::vector<sched::StateMove>& moves, std::vector<StateCopy>& scratch) {
  scratch.clear();
  for (const auto& move : moves) scratch.push_back({move.from, move.to});
  return scratch.empty() ? Status{} : executor_.copy_state(scratch);
}

// Makes the plan's copies and begins its step.
Status ModelRunner::begin_step(const sched::StepPlan& plan, const StepInput& input) {
  page_copies_.clear();
  for (const auto& copy : plan.page_copies) page_copies_.push_back({copy.from, copy.to});
  if (!page_copies_.empty()) ZRT_CHECK_OK(executor_.copy_pages(page_copies_));
  ZRT_CHECK_OK(copy_state(plan.restores, restores_));
  return plan.items.empty() ? Status{} : executor_.begin(input);
}

// Calls use(request, guess) for each decoding request that may have guesses, until it returns false. Returns whether it
// never did.
template <class Use>
bool ModelRunner::for_guesses(StepListener& listener, const Use& use) {
  for (std::uint32_t slot = 0; slot < scheduler_.slots().size(); ++slot) {
    const sched::Request* request = scheduler_.in_slot(slot);
    if (request == nullptr || request->params.speculation.most == 0) continue;
    if (!request->params.speculation.is_fixed && !scheduler_.wants_guesses()) continue;
    if (scheduler_.slots()[slot].state != sched::SlotState::kDecode) continue;
    if (!use(*request, guess_of(listener, *request))) return false;
  }
  return true;
}

// Returns the guess that costs no step of a draft model.
spec::Guess ModelRunner::guess_of(StepListener& listener, const sched::Request& request) const {
  spec::Guess guess = listener.guess(request.params.user);
  // A tokenizer may have more tokens than there are logits. The tokens without logits can be in a prompt and are never
  // picked.
  const auto is_never_picked = [&](std::int32_t id) {
    return id < 0 || static_cast<std::uint32_t>(id) >= executor_.config().vocab_size;
  };
  guess.tokens = {guess.tokens.begin(), std::ranges::find_if(guess.tokens, is_never_picked)};
  return guess;
}

// Notes a decoding request for which the draft model may guess.
void ModelRunner::want_guess(StepListener& listener, const sched::Request& request, std::size_t n_own,
                             double own_chance) {
  // A request with a long answer will probably go on for as long again.
  constexpr std::uint32_t kShortAnswer = 64;
  if (draft_ == nullptr || scheduler_.slots()[request.slot].is_held_up || !scheduler_.has_rate(request, now_us()))
    return;
  const std::uint32_t size = request.tokens.size();
  wanted_.push_back({.slot = request.slot,
                     .request = request.id,
                     .text = request.tokens.ids(),
                     .is_fixed = request.params.speculation.is_fixed,
                     .n_own = static_cast<std::uint32_t>(n_own),
                     .own_chance = own_chance,
                     .most = scheduler_.most_drafts(request),
                     .model_chance = listener.chance_of_model(request.params.user),
                     .n_to_come = std::min(request.n_limit - size, std::max(kShortAnswer, request.n_generated()))});
}

std::uint32_t ModelRunner::n_decoding() const {
  std::uint32_t n = 0;
  const sched::SlotTable& slots = scheduler_.slots();
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot)
    n += slots[slot].state == sched::SlotState::kDecode && !slots[slot].is_held_up ? 1 : 0;
  return n;
}

// Returns whether the draft model should run before the next step.
bool ModelRunner::wants_draft_model() {
  return !wanted_.empty() &&
         draft_->choose(wanted_, n_decoding(), scheduler_.options().chunk_cap, scheduler_.row_price());
}

// Proposes guesses for the next step: first those that cost no step of the draft model, then in their place those of
// the draft model that promise more.
void ModelRunner::propose_guesses(StepListener& listener) {
  wanted_.clear();
  for_guesses(listener, [&](const sched::Request& request, const spec::Guess& guess) {
    scheduler_.propose(request.id, guess.tokens, guess.chance);
    want_guess(listener, request, request.tokens.n_guessed(), guess.chance);
    return true;
  });
  Running& next = running_[first_running_];
  next.has_drafted = wants_draft_model();
  if (next.has_drafted) propose_model_guesses(listener);
}

void ModelRunner::propose_model_guesses(StepListener& listener) {
  const sched::SlotTable& slots = scheduler_.slots();
  busy_us_ += draft_->guess(wanted_, scheduler_.row_price().us(n_decoding()),
                            {slots.page_ids(), slots.width(), slots.page_counts()});
  for (const DraftModel::Wanted& wanted : wanted_) {
    if (wanted.guess.empty()) continue;
    const sched::Request& request = *scheduler_.in_slot(wanted.slot);
    spec::Guess guess = listener.guess_of_model(request.params.user, wanted.guess);
    const bool is_model = !guess.tokens.empty();
    if (!is_model) guess = guess_of(listener, request);
    scheduler_.propose(request.id, guess.tokens, guess.chance, is_model && wanted.is_trial);
  }
}

void ModelRunner::look_at_slots(StepListener& listener) {
  in_slots_.clear();
  for (std::uint32_t slot = 0; slot < scheduler_.slots().size(); ++slot)
    if (const sched::Request* request = scheduler_.in_slot(slot)) in_slots_.push_back(request->params.user);
  listener.before_step(in_slots_);
  for (std::uint32_t slot = 0; slot < scheduler_.slots().size(); ++slot)
    if (const sched::Request* request = scheduler_.in_slot(slot))
      scheduler_.set_backpressure(request->id, listener.is_held_up(request->params.user));
}

// Plans a step and begins it. Returns false if there is nothing to do. REQUIRES: no step runs.
bool ModelRunner::plan_step(StepListener& listener, Turn& turn) {
  Running& next = running_[first_running_];
  next.is_ahead = false;
  next.began = now_us();
  look_at_slots(listener);
  propose_guesses(listener);
  scheduler_.admit(next.began);
  next.admitted = now_us();
  const sched::StepPlan& plan = scheduler_.plan(next.admitted);
  plan_ = &plan;
  turn = {!plan.empty(), plan.wake_at};
  report(listener);  // clients hear of admissions and ends before the step, without waiting for it
  next.planned = now_us();
  if (!turn.ran) return false;
  fill(plan, next.input);
  next.filled = now_us();
  next.has_items = !plan.items.empty();
  next.status = begin_step(plan, next.input);
  n_running_ = 1;
  return true;
}

// Begins the step after the one that runs, if that can be planned now. A request with a guess of its next tokens waits
// for the running step, because guesses are verified from known tokens on. So it does if the draft model should guess.
void ModelRunner::begin_ahead(StepListener& listener) {
  if (!running_[first_running_].status) return;
  if (running_[first_running_].is_ahead) look_at_slots(listener);
  if (!scheduler_.may_plan_ahead(now_us())) return;
  wanted_.clear();
  const auto no_guess = [&](const sched::Request& request, const spec::Guess& guess) {
    want_guess(listener, request, 0, 0);
    return guess.tokens.empty();
  };
  if (!for_guesses(listener, no_guess) || wants_draft_model()) return;
  const sched::StepPlan* plan = scheduler_.plan_ahead(now_us());
  if (plan == nullptr) return;
  Running& next = running_[1 - first_running_];
  next.is_ahead = next.has_items = true;
  next.has_drafted = false;
  fill(*plan, next.input);
  next.status = begin_step(*plan, next.input);
  n_running_ = 2;
}

// Waits for the first step that runs, and commits it.
void ModelRunner::finish_step() {
  Running& step = running_[first_running_];
  const sched::StepPlan& plan = *plan_;
  const auto n_decode = plan.n_decode, n_prefill = plan.n_prompt_tokens();
  failed_rows_.clear();
  row_is_real_.clear();
  output_.tokens.clear();
  Status status = step.status;
  if (status && step.has_items) status = executor_.finish(output_);
  if (status) status = copy_state(plan.saves, saves_);
  const auto executed = now_us(), started = std::max(step.filled, last_end_);
  const auto used_us = static_cast<double>(executed - started);
  last_end_ = executed;
  busy_us_ += used_us;
  if (draft_ != nullptr && !step.has_drafted) draft_->note_step(used_us);
  first_running_ = 1 - first_running_;
  --n_running_;
  if (status) {
    failed_in_a_row_ = 0;
    end_bad_scores(plan);
    end_bad_embeddings();
    end_failed_picks(plan);
    scheduler_.commit(std::span(output_.tokens).first(plan.n_outputs), executed, used_us);
  } else {
    note_failure(status, n_decode + n_prefill);
    // The step after it has no meaning, because its tokens were to come from this one. Its requests have ended.
    if (n_running_ > 0 && running_[first_running_].status) static_cast<void>(executor_.finish(output_));
    n_running_ = 0;
    scheduler_.fail_step(executed);
  }
  if (!trace_.is_on()) return;
  const auto committed = now_us();
  const auto us = [](sched::Micros from, sched::Micros to) { return static_cast<std::uint32_t>(to - from); };
  StepSpan span{.index = scheduler_.stats().steps,
                .begin_us = static_cast<std::uint64_t>(step.began),
                .execute_us = us(started, executed),
                .commit_us = us(executed, committed),
                .n_decode = n_decode,
                .n_prefill = n_prefill,
                .n_waiting = scheduler_.n_waiting(),
                .pages_used = scheduler_.pages().n_pages() - scheduler_.pages().n_free()};
  if (step.is_ahead) {
    // The phases of a trace follow each other, so the step's time before the last commit is left out.
    span.begin_us = static_cast<std::uint64_t>(last_commit_);
    span.execute_us = us(std::min(last_commit_, executed), executed);
  } else {
    span.admit_us = us(step.began, step.admitted);
    span.plan_us = us(step.admitted, step.planned);
    span.fill_us = us(step.planned, step.filled);
  }
  last_commit_ = committed;
  trace_.step(span);
}

void ModelRunner::note_failure(const Status& status, std::uint32_t n_tokens) {
  log().error("a step of {} tokens failed, its requests end: {}", n_tokens, status.error().message);
  ++failed_steps_;
  // kCorrupt means that the model file was cut; the device itself works.
  if (status.error().code != StatusCode::kCorrupt) ++failed_in_a_row_;
}

// Ends the step that runs if all its requests have ended. Nobody would wait for it otherwise.
void ModelRunner::drop_vain_step() {
  if (n_running_ == 0 || scheduler_.is_ahead()) return;
  const Running& step = running_[first_running_];
  const Status status = step.status ? executor_.finish(output_) : step.status;
  if (!status) note_failure(status, plan_->n_tokens);
  scheduler_.drop_step();
  last_end_ = now_us();
  n_running_ = 0;
}

ModelRunner::Turn ModelRunner::turn(StepListener& listener, bool may_run_ahead) {
  listener_ = &listener;
  Turn turn{.ran = true};
  if (n_running_ == 0 && !plan_step(listener, turn)) return turn;
  if (may_run_ahead) begin_ahead(listener);
  finish_step();
  report(listener);
  drop_vain_step();
  return turn;
}

void ModelRunner::drain(StepListener& listener) {
  listener_ = &listener;
  while (n_running_ > 0) {
    finish_step();
    report(listener);
    drop_vain_step();
  }
}

void ModelRunner::report(StepListener& listener) {
  const auto now = now_us();
  for (const sched::Event& event : scheduler_.events()) {
    if (trace_.is_on()) trace_.event(event, now);
    if (event.kind == sched::EventKind::kFinished && event.reason == sched::Finish::kBadLogits && bad_logits_++ == 0)
      log().error(
          "the model gives logits without a finite maximum, or embeddings without a direction: its weights may be "
          "broken; such requests end");
    listener.on_event(event, now);
  }
  scheduler_.clear_events();
}

void ModelRunner::end_all(StepListener& listener, sched::Finish reason) {
  drain(listener);
  scheduler_.cancel_all(reason);
  scheduler_.admit(now_us());
  report(listener);
}

void ModelRunner::fill_leased(std::uint32_t slot, std::span<const std::int32_t> ids, std::size_t begin, std::size_t n,
                              std::uint32_t rope_variant) {
  const auto& slots = scheduler_.slots();
  StepInput& in = leased_input_;
  in.token_ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                      ids.begin() + static_cast<std::ptrdiff_t>(begin + n));
  in.positions.resize(n);
  for (std::size_t i = 0; i < n; ++i) in.positions[i] = static_cast<std::int32_t>(begin + i);
  in.slots.assign(n, static_cast<std::int32_t>(slot));
  in.outputs.clear();
  in.on_logits = {};
  in.page_tables = {slots.page_ids(), slots.width(), slots.page_counts()};
  leased_variants_[slot] = rope_variant;
  in.rope_variants = leased_variants_;
}

Status ModelRunner::run(std::uint32_t slot, std::span<const std::int32_t> ids, std::size_t begin, std::size_t n,
                        std::uint32_t rope_variant, std::span<const std::uint32_t> rows, const OnLogits& on_logits) {
  fill_leased(slot, ids, begin, n, rope_variant);
  for (const std::uint32_t row : rows) {
    OutputRow output;
    output.token_index = row;
    output.position = static_cast<std::uint32_t>(begin + row + 1);
    leased_input_.outputs.push_back(output);
  }
  leased_input_.on_logits = on_logits;
  StepOutput output;
  return executor_.step(leased_input_, output);
}

Status ModelRunner::read_pages(std::uint32_t slot, std::span<std::byte> to) {
  return executor_.read_pages(scheduler_.leased_pages(slot).first(to.size() / executor_.info().page_bytes), to);
}

Status ModelRunner::write_pages(std::uint32_t slot, std::span<const std::byte> from) {
  return executor_.write_pages(scheduler_.leased_pages(slot).first(from.size() / executor_.info().page_bytes), from);
}

Result<std::vector<float>> ModelRunner::hidden(std::uint32_t slot, std::span<const std::int32_t> ids, std::size_t begin,
                                               std::size_t n, std::uint32_t rope_variant, int layer) {
  fill_leased(slot, ids, begin, n, rope_variant);
  return executor_.hidden(leased_input_, layer);
}

}  // namespace zinc_rt

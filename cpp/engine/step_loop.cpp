// The step thread: it takes the commands of clients, then runs a turn of the model that was served least. It sleeps
// when there is nothing to do.
#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "engine/clock.h"
#include "engine/core.h"

namespace zinc_rt {

void EngineCore::take_commands() {
  {
    const std::lock_guard lock(inbox_mutex_);
    taken_.swap(inbox_);
  }
  const auto now = now_us();
  for (Command& command : taken_) apply(command, now);
  taken_.clear();
}

void EngineCore::apply(Command& command, sched::Micros now) {
  Generation& g = *command.generation;
  // The model may have been removed meanwhile, after the request was checked or after it had ended.
  const bool is_loaded = g.model().is_loaded();
  if (command.kind == Command::kEnd) {
    if (is_loaded) g.model().runner().scheduler().cancel(g.id, command.reason);
    return;
  }
  if (const auto leader = std::move(g.leader)) g.pending.after = leader->id;
  const auto user = g.pending.user = generations_.add(g);
  Result<sched::RequestId> id =
      is_loaded ? g.model().runner().scheduler().submit(std::move(g.pending), now)
                : fail(StatusCode::kUnavailable, "[engine] model \"{}\" was removed", g.model().name());
  if (id) {
    g.id = *id;
    if (timeline_.is_on()) timeline_.name_request(g.model().runner().scheduler().options().model_id, *id, g.name());
    return;
  }
  generations_.remove(user);
  OutputEvent event;
  event.kind = OutputKind::kRefused;
  event.generation = &g;
  event.error = new Error(std::move(id.error()));
  push_output(event);
}

bool EngineCore::wants_logits(std::uint64_t user) const {
  return generations_[user].wants_row();
}

bool EngineCore::has_processor(std::uint64_t user) const {
  return generations_[user].has_processor();
}

bool EngineCore::process(std::uint64_t user, std::span<const std::int32_t> tokens, std::span<float> logits) {
  return generations_[user].process(tokens, logits);
}

bool EngineCore::has_mask(std::uint64_t user) const {
  return generations_[user].mask() != nullptr;
}

std::optional<std::span<const std::uint32_t>> EngineCore::mask(std::uint64_t user) {
  return generations_[user].mask_words();
}

// Stale masks that take little are made here, the others on threads of their own.
void EngineCore::before_step(std::span<const std::uint64_t> users) {
  quick_masks_.clear();
  for (const auto user : users) {
    const auto& mask = generations_[user].mask();
    if (!mask || !mask->is_stale()) continue;
    mask->begin();
    if (mask->is_quick())
      quick_masks_.push_back(mask.get());
    else
      mask_maker_.post(mask);
  }
  row_threads_->parallel_for(quick_masks_.size(), [&](std::uint64_t i, int) { quick_masks_[i]->make(); });
}

void EngineCore::no_token_left(std::uint64_t user) {
  generations_[user].no_token_left();
}

bool EngineCore::on_embedding(std::uint64_t user, std::span<const float> row) {
  return generations_[user].take_embedding(row);
}

bool EngineCore::is_held_up(std::uint64_t user) const {
  const Generation& g = generations_[user];
  return g.is_held_up() || (g.mask() && !g.mask()->is_made());
}

void EngineCore::on_logits(std::span<const LogitsRow> rows) {
  row_details_.resize(rows.size());
  row_threads_->parallel_for(
      rows.size(), [&](std::uint64_t i, int) { row_details_[i] = generations_[rows[i].user].make_details(rows[i]); });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].is_prompt)
      generations_[rows[i].user].add_prompt_logprob(std::move(row_details_[i]->logprob));
    else
      details_[rows[i].user] = std::move(row_details_[i]);
  }
  row_details_.clear();
}

void EngineCore::on_event(const sched::Event& e, sched::Micros now) {
  Generation& g = generations_[e.user];
  OutputEvent out;
  out.generation = &g;
  out.time_us = now;
  switch (e.kind) {
    case sched::EventKind::kAdmitted:
      out.kind = OutputKind::kAdmitted;
      out.is_first = e.is_first;
      out.cached_tokens = e.cached_tokens;
      out.waited_us = e.waited;
      if (e.is_first) --g.model().n_queued;
      g.was_admitted = true;
      break;
    case sched::EventKind::kPreempted: out.kind = OutputKind::kPreempted; break;
    case sched::EventKind::kToken:
      out.kind = OutputKind::kToken;
      out.token_id = e.token;
      if (g.mask()) g.mask()->take(e.token);
      if (details_.empty()) break;
      if (const auto it = details_.find(e.user); it != details_.end()) {
        out.details = it->second.release();
        details_.erase(it);
      }
      break;
    case sched::EventKind::kFinished:
      out.kind = OutputKind::kFinished;
      out.reason = e.reason;
      details_.erase(e.user);  // left from a step that failed after it had given logits
      generations_.remove(e.user);
      if (!g.was_admitted) --g.model().n_queued;
      break;
  }
  push_output(out);
}

// A full ring has room soon, since the drainer never waits for a sink.
void EngineCore::push_output(const OutputEvent& event) {
  while (!output_.push(event)) output_.wait_for_space(std::chrono::milliseconds(100));
}

// Chooses by the time that each model has used. A model that was idle starts level with the others.
Model* EngineCore::next_model() {
  Model* next = nullptr;
  double least = -1;
  for (const auto& model : models_) {
    if (model->runner().scheduler().is_idle()) continue;
    if (const double busy = model->runner().busy_us(); least < 0 || busy < least) least = busy, next = model.get();
  }
  for (const auto& model : models_)
    if (model->runner().scheduler().is_idle())
      model->runner().set_busy_us(std::max(model->runner().busy_us(), std::max(least, 0.0)));
  return next;
}

bool EngineCore::wait_for_work(sched::Micros wake_at) {
  std::unique_lock lock(inbox_mutex_);
  const auto called = [&] { return stop_ || is_poked_ || !inbox_.empty(); };
  if (wake_at == sched::kNever)
    inbox_filled_.wait(lock, called);
  else
    inbox_filled_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::microseconds(wake_at)), called);
  is_poked_ = false;
  return !stop_;
}

void EngineCore::poke() {
  {
    const std::lock_guard lock(inbox_mutex_);
    is_poked_ = true;
  }
  inbox_filled_.notify_one();
}

void EngineCore::run_steps() {
  for (bool running = true; running;) {
    bool ran = false;
    sched::Micros wake_at = sched::kNever;
    {
      const Turn::Guard guard(turn_);
      take_commands();
      if (Model* model = next_model(); model != nullptr) {
        const auto result = model->runner().turn(*this);
        ran = result.ran;
        wake_at = result.wake_at;
        // A model that has nothing to run now does not hold up the others.
        for (const auto& other : models_) {
          if (ran || other.get() == model || other->runner().scheduler().is_idle()) continue;
          const auto again = other->runner().turn(*this);
          ran = again.ran;
          wake_at = std::min(wake_at, again.wake_at);
        }
      }
    }
    if (ran) {
      const std::lock_guard lock(inbox_mutex_);
      running = !stop_;
    } else {
      running = wait_for_work(wake_at);
    }
  }
  const Turn::Guard guard(turn_);
  take_commands();
  for (const auto& model : models_) model->runner().end_all(*this, sched::Finish::kShutdown);
}

}  // namespace zinc_rt

// The drainer turns output events into text, looks for stop strings, and passes events to the sinks. It never blocks on
// a sink. If a sink has no room, the drainer offers the event again later, and the step loop leaves that request out of
// steps meanwhile.
#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "engine/core.h"

namespace zinc_rt {
namespace {

// A sink without room is tried again after this time. An idle pump also looks for work in this interval.
constexpr auto kRetry = std::chrono::milliseconds(1);

}  // namespace

void EngineCore::handle(const OutputEvent& event) {
  Generation& g = *event.generation;
  switch (event.kind) {
    case OutputKind::kAdmitted:
      g.on_admitted(event.is_first, static_cast<double>(event.waited_us) * 1e-3, event.cached_tokens);
      break;
    case OutputKind::kPreempted: g.on_preempted(); break;
    case OutputKind::kToken: {
      const std::unique_ptr<TokenDetails> details(event.details);
      g.on_token(event, details.get());
      break;
    }
    case OutputKind::kFinished: g.on_finished(event.reason); break;
    case OutputKind::kRefused: {
      const std::unique_ptr<Error> error(event.error);
      --g.model().n_queued;
      g.fail_with(*error);
      break;
    }
  }
  settle(g);
}

// Called after each event and each retry of a generation. If the text has ended, sends kEnd to the step loop. If the
// sink lacks room, adds the generation to held_ for retries. If the generation is done, drops the engine's reference to
// it.
void EngineCore::settle(Generation& g) {
  if (const auto reason = g.take_end()) post(*g.replica, {{Command::kEnd, g.self, *reason}});
  if (g.is_waiting()) {
    if (std::ranges::find(held_, &g) == held_.end()) held_.push_back(&g);
    return;
  }
  std::erase(held_, &g);
  if (g.is_done()) forget(g);
}

void EngineCore::forget(Generation& g) {
  --g.model().n_open;
  const bool is_last = --n_open_ == 0;
  const bool is_models_last = g.model().n_open.load() == 0;
  const auto self = std::move(g.self);  // this may be the last reference to the generation
  if (!is_last && !is_models_last) return;
  const std::lock_guard lock(idle_mutex_);
  went_idle_.notify_all();
}

bool EngineCore::retry_held() {
  bool any = false;
  for (std::size_t i = held_.size(); i > 0; --i) {
    Generation& g = *held_[i - 1];
    g.retry();
    any |= !g.is_waiting();
    settle(g);
  }
  return any;
}

bool EngineCore::take_events() {
  bool any = false;
  for (OutputEvent event; output_.ring().pop(event); any = true) handle(event);
  return any;
}

ModelRunner::Turn EngineCore::pump() {
  const auto self = shared_from_this();  // keeps the engine alive, because a sink may own the last handle
  const std::lock_guard pumping(pump_mutex_);
  ModelRunner::Turn all;
  if (is_closed()) return all;
  for (StepLoop* loop : loops()) {
    const auto looked = loop->look();
    all = {all.ran || looked.ran, std::min(all.wake_at, looked.wake_at)};
  }
  all.ran |= take_events();
  all.ran |= retry_held();
  return all;
}

bool EngineCore::pump_until(double timeout_ms, const std::function<bool()>& done) {
  const auto begin = std::chrono::steady_clock::now();
  while (!done()) {
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
    if (timeout_ms >= 0 && passed.count() > timeout_ms) return false;
    if (!pump().ran) std::this_thread::sleep_for(kRetry);
  }
  return true;
}

Waiter EngineCore::waiter() {
  if (drive_ == Drive::kThreads) return {};
  return [core = weak_from_this()](double timeout_ms, const std::function<bool()>& done) {
    const auto self = core.lock();
    return self == nullptr || self->pump_until(timeout_ms, done);
  };
}

void EngineCore::run_drainer() {
  OutputEvent event;
  for (;;) {
    if (held_.empty()) {
      if (!output_.ring().wait_pop(event)) return;
      handle(event);
      continue;
    }
    bool any = false;
    for (int i = 0; i < 256 && output_.ring().pop(event); ++i) handle(event), any = true;
    retry_held();
    if (!any && output_.ring().is_closed()) break;
    if (!any) std::this_thread::sleep_for(kRetry);
  }
  // The engine was closed before the readers had taken all events. The completions have the rest.
  while (output_.ring().pop(event)) handle(event);
  while (!held_.empty()) {
    Generation& g = *held_.back();
    g.abandon();
    g.retry();
    settle(g);
  }
}

}  // namespace zinc_rt

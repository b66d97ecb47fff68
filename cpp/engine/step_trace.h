// StepTrace turns a scheduler's events into records of the timeline (`zinc-rt trace`).
// Thread rule: the step thread.
#pragma once

#include <vector>

#include "engine/timeline.h"
#include "sched/scheduler.h"

namespace zinc_rt {

class StepTrace {
 public:
  StepTrace(Timeline& timeline, std::uint32_t n_slots, std::uint32_t model_id, std::uint32_t thread)
      : timeline_(timeline), model_(model_id), thread_(thread), first_lane_(1000 * model_id), since_(n_slots) {}
  bool is_on() const { return timeline_.is_on(); }
  void step(StepSpan span) {
    span.thread = thread_;
    timeline_.record(span);
  }
  void event(const sched::Event& event, sched::Micros now);

 private:
  struct Since {
    std::uint64_t us = 0;
    RequestState state = RequestState::kPrefill;
    std::uint32_t n_generated = 0;
  };
  void close(const sched::Event& event, std::uint64_t now);

  Timeline& timeline_;
  std::uint32_t model_, thread_;
  std::uint32_t first_lane_;  // each model on each device has its own range of lanes (tracks in the viewer)
  std::vector<Since> since_;  // index: slot; when the slot entered its current state
};

}  // namespace zinc_rt

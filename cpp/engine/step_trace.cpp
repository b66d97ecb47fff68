#include "engine/step_trace.h"

namespace zinc_rt {

// Records how long the slot was in its current state, which ends at `now`. Does nothing if the state's beginning was
// not recorded.
void StepTrace::close(const sched::Event& e, std::uint64_t now) {
  if (e.slot >= since_.size()) return;
  Since& since = since_[e.slot];
  if (since.us != 0)
    timeline_.record(RequestSpan{e.request, since.us, now, e.tenant, first_lane_ + e.slot,
                                 e.n_generated - since.n_generated, since.state, model_});
  since = {};
}

void StepTrace::event(const sched::Event& e, sched::Micros now_signed) {
  const auto now = static_cast<std::uint64_t>(now_signed);
  const auto mark = [&](RequestMark kind) { timeline_.record(RequestInstant{e.request, now, e.tenant, kind, model_}); };
  switch (e.kind) {
    case sched::EventKind::kAdmitted:
      timeline_.record(RequestSpan{e.request, now - static_cast<std::uint64_t>(e.waited), now, e.tenant,
                                   first_lane_ + e.slot, 0,
                                   e.is_first ? RequestState::kWaiting : RequestState::kPreempted, model_});
      mark(RequestMark::kAdmitted);
      since_[e.slot] = {now, RequestState::kPrefill, e.n_generated};
      break;
    case sched::EventKind::kToken:
      if (since_[e.slot].state == RequestState::kPrefill) {
        close(e, now);
        since_[e.slot] = {now, RequestState::kDecode, e.n_generated};
      }
      break;
    case sched::EventKind::kPreempted:
      close(e, now);
      mark(RequestMark::kPreempted);
      break;
    case sched::EventKind::kFinished:
      close(e, now);
      mark(RequestMark::kFinished);
      break;
  }
}

}  // namespace zinc_rt

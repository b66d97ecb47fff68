// A lease is a slot with pages that belongs to no request. Diagnostics and prefix files compute in it, between the
// steps of requests.
// Thread rule: one thread, which must not hold a step loop's Turn when it takes or releases a lease.
#pragma once

#include "base/error.h"
#include "engine/core.h"
#include "zinc_rt/stop.h"

namespace zinc_rt {

// Returns kCancelled if the caller of a diagnostic has asked to stop. It is called before each step of the computation.
inline Status go_on(const StopAsked& is_stopped, const char* what) {
  if (is_stopped && is_stopped()) return fail(StatusCode::kCancelled, "[{}] the call was taken back", what);
  return {};
}

// Owns a leased slot and its pages, and gives them back when it is destroyed.
class EngineCore::Lease {
 public:
  // Takes a slot on the first replica that has room. If no replica has room, returns the error of the last one.
  static Result<Lease> take(EngineCore& core, Model& model, std::size_t n_tokens) {
    for (std::size_t i = 0; i + 1 < model.replicas().size(); ++i)
      if (auto lease = take(core, model, *model.replicas()[i], n_tokens)) return lease;
    return take(core, model, *model.replicas().back(), n_tokens);
  }
  static Result<Lease> take(EngineCore& core, const Model& model, Replica& replica, std::size_t n_tokens) {
    const StepLoop::Pause pause(replica.loop());
    ZRT_CHECK_OK(core.check_loaded(model, replica));
    if (n_tokens > UINT32_MAX) return fail(StatusCode::kInvalidArgument, "[engine] {} tokens", n_tokens);
    ZRT_TRY(const auto slot, replica.runner().scheduler().lease(static_cast<std::uint32_t>(n_tokens)));
    return Lease(core, replica, slot);
  }
  Lease(Lease&& other) noexcept : core_(other.core_), replica_(other.replica_), slot_(other.slot_) {
    other.slot_ = sched::kNone;
  }
  ~Lease() {
    if (slot_ == sched::kNone) return;
    {
      const StepLoop::Pause pause(replica_.loop());
      if (replica_.is_loaded()) replica_.runner().scheduler().give_back_lease(slot_);
    }
    core_.poke();
  }
  Replica& replica() const { return replica_; }
  std::uint32_t slot() const { return slot_; }

 private:
  Lease(EngineCore& core, Replica& replica, std::uint32_t slot) : core_(core), replica_(replica), slot_(slot) {}
  EngineCore& core_;
  Replica& replica_;
  std::uint32_t slot_;
};

}  // namespace zinc_rt

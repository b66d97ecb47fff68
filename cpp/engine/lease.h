// A slot and pages for what is computed outside of any request, by turns with the steps of requests.
// Thread rule: one thread, which does not hold the turn when it takes or drops it.
#pragma once

#include "base/error.h"
#include "engine/core.h"

namespace zinc_rt {

// Holds a slot and its pages for as long as it lives.
class EngineCore::Lease {
 public:
  static Result<Lease> take(EngineCore& core, Model& model, std::size_t n_tokens) {
    const Turn::Guard guard(core.turn_);
    ZRT_CHECK_OK(core.check_loaded(model));
    if (n_tokens > UINT32_MAX) return fail(StatusCode::kInvalidArgument, "[engine] {} tokens", n_tokens);
    ZRT_TRY(const auto slot, model.runner().scheduler().lease(static_cast<std::uint32_t>(n_tokens)));
    return Lease(core, model, slot);
  }
  Lease(Lease&& other) noexcept : core_(other.core_), model_(other.model_), slot_(other.slot_) {
    other.slot_ = sched::kNone;
  }
  ~Lease() {
    if (slot_ == sched::kNone) return;
    {
      const Turn::Guard guard(core_.turn_);
      if (model_.is_loaded()) model_.runner().scheduler().give_back_lease(slot_);
    }
    core_.poke();
  }
  std::uint32_t slot() const { return slot_; }

 private:
  Lease(EngineCore& core, Model& model, std::uint32_t slot) : core_(core), model_(model), slot_(slot) {}
  EngineCore& core_;
  Model& model_;
  std::uint32_t slot_;
};

}  // namespace zinc_rt

// The slot table: a flat array that a device can read in place, and the page ids of all slots. A kernel knows a request
// only by its slot.
// Thread rule: written between steps by the step thread; read during a step.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/sampling.h"
#include "sched/types.h"
#include "zinc_rt/status.h"

namespace zinc_rt::sched {

enum class SlotState : std::uint32_t { kFree, kAdmitted, kPrefill, kDecode, kPreempted, kDone };
const char* to_string(SlotState state);

inline constexpr std::uint32_t kSlotStopTokens = 8;

struct Slot {
  // identity
  SlotState state = SlotState::kFree;
  std::uint32_t tenant_id = kNone;
  std::uint32_t session_id = 0;
  std::uint32_t model_id = 0;
  std::uint64_t request_handle = 0;  // RequestId; opaque to a device
  // position: tokens [0, position) are in the KV pages
  std::uint32_t prompt_len = 0;
  std::uint32_t generated_len = 0;
  std::uint32_t position = 0;
  std::uint32_t speculative_len = 0;
  // KV
  std::uint32_t page_count = 0;
  std::uint32_t prefix_match_pages = 0;  // so many of the first pages came from the prefix cache
  std::uint32_t rope_variant = 0;
  std::uint32_t priority = 0;  // Qos
  // sampling
  std::uint32_t seed_lo = 0, seed_hi = 0;
  float temperature = 0;
  float top_p = 1;
  float min_p = 0;
  float repetition_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  std::uint32_t top_k = 0;
  std::uint32_t stop_token_count = 0;
  std::uint32_t stop_token_ids[kSlotStopTokens] = {};  // the first ones; the host checks all
  // flags, set by the host between steps
  std::uint32_t output_backpressure = 0;  // its sink is full: not to be decoded
  std::uint32_t cancel_flag = 0;
  // more of sampling
  float typical_p = 1;
  std::uint32_t min_tokens = 0;  // no stop token before so many tokens; bans and biases are in the request
  std::uint32_t reserved[12] = {};

  void set_sampling(const Sampling& sampling);
};
static_assert(sizeof(Slot) == 192 && offsetof(Slot, request_handle) == 16 && offsetof(Slot, prompt_len) == 24);
static_assert(offsetof(Slot, page_count) == 40 && offsetof(Slot, seed_lo) == 56 && offsetof(Slot, top_k) == 88);
static_assert(offsetof(Slot, stop_token_ids) == 96 && offsetof(Slot, output_backpressure) == 128);
static_assert(offsetof(Slot, typical_p) == 136 && offsetof(Slot, reserved) == 144);

class SlotTable {
 public:
  SlotTable(std::uint32_t n_slots, std::uint32_t max_pages_per_slot);

  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t n_free() const { return static_cast<std::uint32_t>(free_.size()); }
  Slot& operator[](std::uint32_t slot) { return slots_[slot]; }
  const Slot& operator[](std::uint32_t slot) const { return slots_[slot]; }
  std::span<const Slot> slots() const { return slots_; }

  std::uint32_t take();                // FREE -> ADMITTED; kNone when none is free
  void give_back(std::uint32_t slot);  // -> FREE, emptied. REQUIRES: PREEMPTED, DONE or ADMITTED, and no pages
  // Errors: kInternal for a transition that has no meaning, with both states.
  Status set_state(std::uint32_t slot, SlotState to);

  // The slot's pages; page_count of them.
  std::span<std::uint32_t> pages(std::uint32_t slot) {
    return {page_ids_.data() + std::size_t{slot} * width_, slots_[slot].page_count};
  }
  std::span<const std::uint32_t> pages(std::uint32_t slot) const {
    return {page_ids_.data() + std::size_t{slot} * width_, slots_[slot].page_count};
  }
  void push_page(std::uint32_t slot, std::uint32_t page);  // REQUIRES: page_count < width()
  void clear_pages(std::uint32_t slot);
  std::uint32_t width() const { return width_; }
  std::span<const std::uint32_t> page_ids() const { return page_ids_; }
  std::span<const std::uint32_t> page_counts() const { return page_counts_; }
  std::span<const std::uint32_t> rope_variants() const { return rope_variants_; }
  void set_rope_variant(std::uint32_t slot, std::uint32_t variant);

 private:
  std::uint32_t width_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> page_ids_, page_counts_, rope_variants_, free_;
};

}  // namespace zinc_rt::sched

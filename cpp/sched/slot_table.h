// The slots of a model, and the pages of each. Page ids, page counts and RoPE variants of all slots are flat arrays, which
// a device reads in place. A kernel knows a request only by its slot.
// Thread rule: written between steps by the step thread; read during a step.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sched/types.h"
#include "zinc_rt/status.h"

namespace zinc_rt::sched {

enum class SlotState : std::uint32_t { kFree, kAdmitted, kPrefill, kDecode, kPreempted, kDone };
const char* to_string(SlotState state);

struct Slot {
  SlotState state = SlotState::kFree;
  std::uint32_t page_count = 0;
  std::uint32_t prefix_match_pages = 0;  // so many of the first pages came from the prefix cache
  std::uint32_t rope_variant = 0;
  bool is_held_up = false;  // its sink is full: not to be decoded
};

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
  std::uint32_t pop_page(std::uint32_t slot);              // takes the last one off. REQUIRES: page_count > 0
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

// SlotTable holds the state of each slot of a replica, and the KV pages that each slot uses. Its page ids, page counts
// and RoPE variants are flat arrays, because the device reads them in place. Kernels know a request only by the number
// of its slot.
// Thread rule: the step thread writes it between steps; during a step it is only read.
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
  std::uint32_t prefix_match_pages = 0;  // how many of its first pages came from the prefix cache
  std::uint32_t rope_variant = 0;
  bool is_held_up = false;  // true while the request's sink is full, so that the slot is not decoded
};

class SlotTable {
 public:
  SlotTable(std::uint32_t n_slots, std::uint32_t max_pages_per_slot);

  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t n_free() const { return static_cast<std::uint32_t>(free_.size()); }
  Slot& operator[](std::uint32_t slot) { return slots_[slot]; }
  const Slot& operator[](std::uint32_t slot) const { return slots_[slot]; }
  std::span<const Slot> slots() const { return slots_; }

  std::uint32_t take();  // takes a free slot (FREE to ADMITTED); returns kNone if none is free
  // Empties the slot and makes it FREE. REQUIRES: its state is PREEMPTED, DONE or ADMITTED, and it has no pages.
  void give_back(std::uint32_t slot);
  // Changes the state of a slot. Errors: kInternal, with both states, if the second may not follow the first.
  Status set_state(std::uint32_t slot, SlotState to);

  // Returns the ids of the slot's pages, page_count of them, in the order of the text.
  std::span<std::uint32_t> pages(std::uint32_t slot) {
    return {page_ids_.data() + std::size_t{slot} * width_, slots_[slot].page_count};
  }
  std::span<const std::uint32_t> pages(std::uint32_t slot) const {
    return {page_ids_.data() + std::size_t{slot} * width_, slots_[slot].page_count};
  }
  void push_page(std::uint32_t slot, std::uint32_t page);  // REQUIRES: page_count < width()
  std::uint32_t pop_page(std::uint32_t slot);  // removes and returns the last page; REQUIRES: page_count > 0
  void clear_pages(std::uint32_t slot);
  std::uint32_t width() const { return width_; }
  std::span<const std::uint32_t> page_ids() const { return page_ids_; }
  std::span<const std::uint32_t> page_counts() const { return page_counts_; }
  std::span<const std::uint32_t> rope_variants() const { return rope_variants_; }
  void set_rope_variant(std::uint32_t slot, std::uint32_t variant);

 private:
  std::uint32_t width_;
  std::vector<Slot> slots_;
  // page_ids_ has width_ elements per slot. page_counts_ and rope_variants_ have one per slot. free_ lists the free
  // slots.
  std::vector<std::uint32_t> page_ids_, page_counts_, rope_variants_, free_;
};

}  // namespace zinc_rt::sched

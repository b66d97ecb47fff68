#include "sched/slot_table.h"

#include "base/error.h"

namespace zinc_rt::sched {
namespace {

constexpr const char* kNames[] = {"FREE", "ADMITTED", "PREFILL", "DECODE", "PREEMPTED", "DONE"};

constexpr std::uint32_t bit(SlotState state) {
  return 1u << static_cast<std::uint32_t>(state);
}

// kFollowing[state] is the set of states that may follow `state`. A decoding slot returns to PREFILL if its text must
// be computed again.
constexpr std::uint32_t kFollowing[] = {
    bit(SlotState::kAdmitted),
    bit(SlotState::kPrefill) | bit(SlotState::kDecode) | bit(SlotState::kPreempted) | bit(SlotState::kDone),
    bit(SlotState::kDecode) | bit(SlotState::kPreempted) | bit(SlotState::kDone),
    bit(SlotState::kPrefill) | bit(SlotState::kPreempted) | bit(SlotState::kDone),
    bit(SlotState::kFree),
    bit(SlotState::kFree),
};

}  // namespace

const char* to_string(SlotState state) {
  return kNames[static_cast<std::size_t>(state)];
}

SlotTable::SlotTable(std::uint32_t n_slots, std::uint32_t max_pages_per_slot)
    : width_(max_pages_per_slot),
      slots_(n_slots),
      page_ids_(std::size_t{n_slots} * max_pages_per_slot),
      page_counts_(n_slots),
      rope_variants_(n_slots) {
  free_.reserve(n_slots);
  for (std::uint32_t slot = n_slots; slot > 0; --slot) free_.push_back(slot - 1);
}

std::uint32_t SlotTable::take() {
  if (free_.empty()) return kNone;
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  slots_[slot].state = SlotState::kAdmitted;
  return slot;
}

void SlotTable::give_back(std::uint32_t slot) {
  slots_[slot] = {};
  page_counts_[slot] = 0;
  rope_variants_[slot] = 0;
  free_.push_back(slot);
}

Status SlotTable::set_state(std::uint32_t slot, SlotState to) {
  Slot& s = slots_[slot];
  if ((kFollowing[static_cast<std::size_t>(s.state)] & bit(to)) == 0)
    return fail(StatusCode::kInternal, "[slot_table] slot {} cannot go from {} to {}", slot, to_string(s.state),
                to_string(to));
  s.state = to;
  return {};
}

void SlotTable::push_page(std::uint32_t slot, std::uint32_t page) {
  page_ids_[std::size_t{slot} * width_ + slots_[slot].page_count++] = page;
  ++page_counts_[slot];
}

std::uint32_t SlotTable::pop_page(std::uint32_t slot) {
  --page_counts_[slot];
  return page_ids_[std::size_t{slot} * width_ + --slots_[slot].page_count];
}

void SlotTable::clear_pages(std::uint32_t slot) {
  slots_[slot].page_count = 0;
  page_counts_[slot] = 0;
}

void SlotTable::set_rope_variant(std::uint32_t slot, std::uint32_t variant) {
  slots_[slot].rope_variant = variant;
  rope_variants_[slot] = variant;
}

}  // namespace zinc_rt::sched

#include "engine/draft_cells.h"

#include <algorithm>

#include "mem/page_pool.h"

namespace zinc_rt {

OwnDraftCells::OwnDraftCells(std::uint32_t n_slots, std::uint32_t n_pages, std::uint32_t max_context)
    : slots_(n_slots),
      width_(mem::pages_for(max_context)),
      tables_(std::size_t{n_slots} * width_),
      counts_(n_slots),
      tokens_(std::size_t{n_pages} * kPageTokens) {
  free_pages_.reserve(n_pages);
  for (std::uint32_t page = n_pages; page-- > 0;) free_pages_.push_back(page);
}

std::size_t OwnDraftCells::at(std::uint32_t slot, std::uint32_t i) const {
  return std::size_t{tables_[slot * width_ + i / kPageTokens]} * kPageTokens + i % kPageTokens;
}

void OwnDraftCells::keep(std::uint32_t slot, std::uint32_t n) {
  slots_[slot].n_held = std::min(slots_[slot].n_held, n);
}

// RoPE turns queries and keys by the distance of their positions alone, so the first cell may be for any position.
std::uint32_t OwnDraftCells::place(std::uint32_t slot, std::uint32_t base, FeatureRows::Range known, std::uint32_t) {
  if (base + slots_[slot].n_held >= known.first) return base;
  slots_[slot].n_held = 0;
  return known.first;
}

void OwnDraftCells::give_back_pages(std::uint32_t slot) {
  Slot& s = slots_[slot];
  for (; s.n_pages > 0; --s.n_pages) free_pages_.push_back(tables_[slot * width_ + s.n_pages - 1]);
  counts_[slot] = s.n_held = 0;
}

bool OwnDraftCells::make_room(std::uint32_t slot, std::uint32_t n) {
  Slot& s = slots_[slot];
  s.used_in = n_calls_;
  while (s.n_pages < mem::pages_for(n)) {
    if (free_pages_.empty()) {
      Slot* oldest = nullptr;
      for (Slot& other : slots_)
        if (other.n_pages > 0 && other.used_in < n_calls_ && (oldest == nullptr || other.used_in < oldest->used_in))
          oldest = &other;
      if (oldest == nullptr) return false;
      give_back_pages(static_cast<std::uint32_t>(oldest - slots_.data()));
    }
    tables_[slot * width_ + s.n_pages] = free_pages_.back();
    free_pages_.pop_back();
    counts_[slot] = ++s.n_pages;
  }
  return true;
}

std::uint32_t OwnDraftCells::add(std::uint32_t slot, std::int32_t token) {
  const std::uint32_t position = slots_[slot].n_held++;
  name(slot, position, token);
  return position;
}

}  // namespace zinc_rt

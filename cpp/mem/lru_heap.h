// LruHeap orders ids by the time of their last use, with the oldest on top. The prefix cache evicts the leaf on top of
// the heap. It is a binary heap that also stores each id's position.
// Thread rule: one thread at a time. Nothing allocates after construction.
#pragma once

#include <cstdint>
#include <vector>

#include "mem/page_pool.h"

namespace zinc_rt::mem {

class LruHeap {
 public:
  explicit LruHeap(std::uint32_t n_ids) : places_(n_ids, kNone) { entries_.reserve(n_ids); }

  std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
  bool contains(std::uint32_t id) const { return places_[id] != kNone; }
  std::uint32_t oldest() const { return entries_.empty() ? kNone : entries_[0].id; }

  // Adds an id that was last used at this time. REQUIRES: the heap does not hold the id.
  void push(std::uint32_t id, std::uint64_t used_at) {
    entries_.push_back({used_at, id});
    rise(size() - 1, {used_at, id});
  }
  // Set the time of an id's last use, or remove the id. REQUIRES: the heap holds the id, and times only grow.
  void use(std::uint32_t id, std::uint64_t used_at) { sink(places_[id], {used_at, id}); }
  void erase(std::uint32_t id) {
    const std::uint32_t place = places_[id];
    const Entry last = entries_.back();
    entries_.pop_back();
    places_[id] = kNone;
    if (last.id == id) return;
    if (place > 0 && last.used_at < entries_[(place - 1) / 2].used_at)
      rise(place, last);
    else
      sink(place, last);
  }

  // For tests: returns whether no entry is older than its parent in the heap, and every stored position is right.
  bool is_sound() const {
    std::uint32_t n_placed = 0;
    for (const std::uint32_t place : places_) n_placed += place != kNone;
    for (std::uint32_t i = 0; i < size(); ++i)
      if (places_[entries_[i].id] != i || entries_[i].used_at < entries_[i > 0 ? (i - 1) / 2 : 0].used_at) return false;
    return n_placed == size();
  }
  std::uint64_t used_at(std::uint32_t id) const { return entries_[places_[id]].used_at; }

 private:
  struct Entry {
    std::uint64_t used_at;
    std::uint32_t id;
  };

  void set(std::uint32_t place, Entry entry) {
    entries_[place] = entry;
    places_[entry.id] = place;
  }
  void rise(std::uint32_t place, Entry entry) {
    for (; place > 0; place = (place - 1) / 2) {
      const Entry above = entries_[(place - 1) / 2];
      if (above.used_at <= entry.used_at) break;
      set(place, above);
    }
    set(place, entry);
  }
  void sink(std::uint32_t place, Entry entry) {
    for (std::size_t below = 2 * std::size_t{place} + 1; below < entries_.size(); below = 2 * std::size_t{place} + 1) {
      if (below + 1 < entries_.size() && entries_[below + 1].used_at < entries_[below].used_at) ++below;
      if (entry.used_at <= entries_[below].used_at) break;
      set(place, entries_[below]);
      place = static_cast<std::uint32_t>(below);
    }
    set(place, entry);
  }

  std::vector<Entry> entries_;         // a binary heap with the oldest entry on top
  std::vector<std::uint32_t> places_;  // position of each id in entries_; kNone if the heap does not hold it
};

}  // namespace zinc_rt::mem

// ChildTable is a hash table from hashes to ids, in which the prefix cache finds the child of a node. It uses open
// addressing with linear probing and is at most half full. When an id is removed, later ids move into its place. So no
// place has to be marked as deleted, and lookups stay as fast as in a new table.
// Thread rule: one thread at a time. Nothing allocates after construction.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "mem/page_pool.h"

namespace zinc_rt::mem {

class ChildTable {
 public:
  explicit ChildTable(std::uint32_t n_ids)
      : entries_(std::bit_ceil(2 * std::max<std::size_t>(n_ids, 1))), mask_(entries_.size() - 1) {}

  std::uint32_t size() const { return size_; }

  // Returns the id with this hash for which is_it(id) is true, or kNone if the table has no such id.
  template <class Predicate>
  std::uint32_t find(std::uint32_t hash, Predicate&& is_it) const {
    for (std::size_t i = hash & mask_; entries_[i].id != kNone; i = (i + 1) & mask_)
      if (entries_[i].hash == hash && is_it(entries_[i].id)) return entries_[i].id;
    return kNone;
  }
  // Adds an id. REQUIRES: the table has fewer than n_ids ids.
  void insert(std::uint32_t hash, std::uint32_t id) {
    std::size_t i = hash & mask_;
    while (entries_[i].id != kNone) i = (i + 1) & mask_;
    entries_[i] = {hash, id};
    ++size_;
  }
  // Removes an id. REQUIRES: the table contains the id, with this hash.
  void erase(std::uint32_t hash, std::uint32_t id) {
    std::size_t hole = hash & mask_;
    while (entries_[hole].id != id) hole = (hole + 1) & mask_;
    for (std::size_t i = (hole + 1) & mask_; entries_[i].id != kNone; i = (i + 1) & mask_) {
      // The entry at i may move to the hole, unless its home (the place that its hash selects) comes after the hole.
      const std::size_t from_home = (i - entries_[i].hash) & mask_;
      if (from_home < ((i - hole) & mask_)) continue;
      entries_[hole] = entries_[i];
      hole = i;
    }
    entries_[hole] = {};
    --size_;
  }

 private:
  struct Entry {
    std::uint32_t hash = 0;
    std::uint32_t id = kNone;
  };

  std::vector<Entry> entries_;
  std::size_t mask_;
  std::uint32_t size_ = 0;
};

}  // namespace zinc_rt::mem

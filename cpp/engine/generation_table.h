// GenerationTable numbers the generations that a step loop has handed to its schedulers. The scheduler knows a
// generation only by this number, which it passes back as `user` in its events. A number is reused after its generation
// has ended.
// Thread rule: the step thread. During a step its helper threads may call operator[].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zinc_rt {

class Generation;

class GenerationTable {
 public:
  std::uint64_t add(Generation& generation) {
    if (free_.empty()) {
      entries_.push_back(&generation);
      return entries_.size() - 1;
    }
    const std::uint64_t user = free_.back();
    free_.pop_back();
    entries_[user] = &generation;
    return user;
  }
  void remove(std::uint64_t user) {
    entries_[user] = nullptr;
    free_.push_back(user);
  }
  // REQUIRES: `user` was added and not removed.
  Generation& operator[](std::uint64_t user) const { return *entries_[user]; }

 private:
  std::vector<Generation*> entries_;
  std::vector<std::uint64_t> free_;
};

}  // namespace zinc_rt

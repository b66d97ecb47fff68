// The memory of the simulated device. For each entry of each page it has the hash of the text up to it, and for each
// slot and checkpoint the hash of the text that its recurrent state has seen. An item of a step may run only if its
// whole context is in memory. That checks the isolation of KV, the prefix cache, page copies and checkpoints. Hashes
// begin with the owner of the prefixes and the variant of the position encoding, so that nothing is shared across them.
// Thread rule: one thread.
#pragma once

#include <string>
#include <vector>

#include "sched/scheduler.h"

namespace zinc_rt::sched::sim {

class KvModel {
 public:
  explicit KvModel(const Options& options);

  void copy_page(const PageMove& move);
  void copy_state(const StateMove& move);
  // Runs an item in the slot's pages. Returns what is wrong; empty: nothing.
  std::string run(const PlanItem& item, const Request& request, std::span<const std::uint32_t> pages,
                  std::uint64_t owner, std::uint32_t variant);
  // For a failed step: it may have written anything to the entries that it was to write.
  void spoil(const PlanItem& item, std::span<const std::uint32_t> pages);
  void spoil_page(std::uint32_t page);
  void spoil_state(std::uint32_t entry) { states_[entry] = kSpoilt; }

 private:
  // The hashes of the text in a slot, position by position; they grow with it.
  struct Chain {
    RequestId request = 0;
    std::uint64_t begin = 0;  // of owner and variant
    std::vector<std::uint64_t> hashes;
  };
  const Chain& chain_of(const PlanItem& item, const Request& request, std::uint64_t owner, std::uint32_t variant);
  std::uint64_t& entry(std::span<const std::uint32_t> pages, std::uint32_t position) {
    return entries_[std::size_t{pages[position / kPageTokens]} * kPageTokens + position % kPageTokens];
  }

  static constexpr std::uint64_t kSpoilt = 0;
  bool is_recurrent_;
  std::vector<std::uint64_t> entries_;  // by page and position in it
  std::vector<std::uint64_t> states_;   // slots, then checkpoints
  std::vector<Chain> chains_;           // by slot
};

}  // namespace zinc_rt::sched::sim

// KvModel is the memory of the simulated device. For each entry of each page it holds the hash of the text up to that
// entry. For each slot and checkpoint it holds the hash of the text that its recurrent state has seen. A step may run
// an item only if the item's whole context is in this memory. This rule checks the isolation of KV, the prefix cache,
// page copies and checkpoints. Hashes start from the owner of the prefixes and the variant of the position encoding, so
// that pages shared between different owners or variants are found.
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
  // Runs an item in the slot's pages. Returns a text that says what is missing from the memory; an empty text if
  // nothing is.
  std::string run(const PlanItem& item, const Request& request, std::span<const std::uint32_t> pages,
                  std::uint64_t owner, std::uint32_t variant);
  // Called for a failed step, which may have written anything into the entries that its items were to write.
  void spoil(const PlanItem& item, std::span<const std::uint32_t> pages);
  void spoil_page(std::uint32_t page);
  void spoil_state(std::uint32_t entry) { states_[entry] = kSpoilt; }

 private:
  // Chain holds the hash of each prefix of the text in a slot. The list grows with the text.
  struct Chain {
    RequestId request = 0;
    std::uint64_t begin = 0;  // the hash of owner and variant, from which the text's hashes start
    std::vector<std::uint64_t> hashes;
  };
  const Chain& chain_of(const PlanItem& item, const Request& request, std::uint64_t owner, std::uint32_t variant);
  std::uint64_t& entry(std::span<const std::uint32_t> pages, std::uint32_t position) {
    return entries_[std::size_t{pages[position / kPageTokens]} * kPageTokens + position % kPageTokens];
  }

  static constexpr std::uint64_t kSpoilt = 0;
  bool is_recurrent_;
  std::vector<std::uint64_t> entries_;  // index: page x kPageTokens + position in the page
  std::vector<std::uint64_t> states_;   // index: slots first, then checkpoints
  // Index: slot. The hashes of the texts up to each guess of the slot's last step, whose inputs are saved.
  std::vector<std::vector<std::uint64_t>> saved_;
  std::vector<Chain> chains_;  // index: slot
};

}  // namespace zinc_rt::sched::sim

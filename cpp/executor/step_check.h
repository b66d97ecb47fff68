// Checks that a step or a set of copies is within the limits of an open model, before anything is written or run. All
// executors use it, so all refuse the same inputs with the same messages.
// Thread rule: one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "executor/sizes.h"
#include "executor/step.h"

namespace zinc_rt {

class StepCheck {
 public:
  struct Limits {
    Sizes sizes;
    std::uint32_t n_pages = 0, vocab_size = 0;
    std::uint32_t n_rope_variants = 1;
    std::uint32_t n_token_types = 0;
    bool needs_whole_texts = false;  // each slot's tokens must be those at positions 0, 1, 2 ...
    bool has_logprobs = false;
    std::uint32_t state_guesses = 0;  // as in ExecutorInfo
    std::uint32_t read_features = 0;  // width of a token's features in StepInput; 0: there are none
  };
  StepCheck() = default;  // allows nothing
  explicit StepCheck(const Limits& limits);

  // Errors of all checks: kInvalidArgument; the message has the value and the limit. A check that passes allocates
  // nothing.
  // is_ahead: the step begins while the step before it runs, so token ids may be kLastPick.
  Status check(const StepInput& input, bool is_ahead = false);
  // Check the pairs (from, to) of one call of Executor::copy_state() or copy_pages(). The copies are made in any order.
  // So the state or page that a pair writes, its `to`, may occur in no other pair, neither as `to` nor as `from`.
  Status check(std::span<const StateCopy> copies);
  Status check(std::span<const PageCopy> copies);
  // Checks that a mask which StepInput::mask returned has no more words than an output row may have.
  Status check_mask(std::span<const std::uint32_t> mask) const;

 private:
  Status check_tokens(const StepInput& input, bool is_ahead) const;
  Status check_slots(const StepInput& input);
  Status check_slot(const StepInput& input, std::size_t slot, std::uint32_t last_position) const;
  Status check_run(const SlotRun& run, std::uint32_t begin, std::uint32_t n) const;
  Status check_outputs(const StepInput& input) const;
  Status check_logprobs(const OutputRow& row) const;
  template <class Copy>
  Status check_copies(std::span<const Copy> copies, std::uint32_t n_entries, std::string_view what);

  Limits limits_;
  // Scratch memory. slot_seen_[slot] is the number of the last check in which the slot occurred, and n_checks_ counts
  // the checks. named_ holds the numbers of the states or pages that occur in the copies of the current check.
  std::vector<std::uint64_t> slot_seen_;
  std::uint64_t n_checks_ = 0;
  std::vector<std::uint32_t> named_;
  std::vector<std::uint32_t> n_guessed_;  // index: slot; guesses in the slot's last step that passed
};

}  // namespace zinc_rt

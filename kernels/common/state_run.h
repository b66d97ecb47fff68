// StateRun tells SSM_CONV1D, SSM_DELTA_NET and SSM_SCAN how the rows of a slot change its recurrent state, if some of
// the rows are guesses (docs/speculation.md). A recurrent state cannot be taken back, so a guess never changes the
// stored state. Instead, the op saves the inputs of the guesses. The next step first replays the guesses that were
// right: it applies their saved inputs to the state, in order and by the same arithmetic, so the state has the same
// bits as without guesses.
// Shared by host and device (C++17, POD).
#pragma once

#include <stdint.h>

namespace zinc_rt {

// An element of the operand `runs`, which has one per slot. Elements of slots without tokens in the step are not read.
struct StateRun {
  // How many saved rows the op applies first. They are the tokens right before the slot's first token in this step.
  uint32_t n_replayed;
  // How many of the slot's rows in this step change the stored state. The rows after them are guesses.
  uint32_t n_certain;
  // SSM_DELTA_NET and SSM_SCAN read the replayed rows from this half of `saved` (0 or 1) and save the guesses in the
  // other half, because several workgroups read a row that one of them writes.
  uint32_t half;
  // If a page of the KV cache ends among the replayed tokens: after save_at tokens of the text, the state is also
  // stored in entry save_to. 0: it is not.
  uint32_t save_at, save_to;
};

constexpr uint32_t kStateRunWords = 5;
static_assert(sizeof(StateRun) == kStateRunWords * sizeof(uint32_t), "the operand `runs` has 5 words per slot");

// The value of n_certain if no row of the slot is a guess.
constexpr uint32_t kAllCertain = 0xFFFFFFFFu;

}  // namespace zinc_rt

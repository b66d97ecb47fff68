// StepPlan lists what one step computes. BatchPlanner makes it, and engine/runner.cpp fills the device's inputs from it
// and executes it. It holds copies of everything that the step needs from its requests, so that no thread reads the
// requests while the step runs.
// Thread rule: the step thread. The plan's spans point into memory of the requests; they stay valid until commit() or
// fail_step().
#pragma once

#include <span>
#include <vector>

#include "base/output_row.h"
#include "mem/spans.h"
#include "sched/types.h"

namespace zinc_rt::sched {

// PlanItem lists the tokens of one request that a step computes. They are consecutive in the request's text.
struct PlanItem {
  std::uint32_t slot = 0;
  std::uint32_t begin = 0, n = 0;  // tokens [begin, begin + n) of the request
  std::uint32_t n_picks = 0;       // a token is picked after each of the last n_picks tokens
  std::uint32_t n_drafts = 0;      // the last n_drafts tokens are guesses, verified by the picks before them
  // For models with recurrent state: the guesses of the slot's last step that were right. The slot's state is that
  // before them, and the step applies them to it first (StateRun). If save_at > 0, the state after save_at tokens of the
  // text, which is reached among them, is copied to entry save_to.
  std::uint32_t n_replayed = 0, save_at = 0, save_to = 0;
  bool is_decode = false;
  bool ends_text = false;  // true if the request has no tokens after the item's, so that its next token is picked
  Qos qos = Qos::kStandard;
  std::uint32_t second_text = 0;  // BERT models: tokens of the request from here on are of type 1; 0: none are
  RequestId request = 0;
  std::uint64_t user = 0;  // RequestParams::user, the engine's handle of the request
};

// A row of logits that the step computes, and the request that wants it.
struct PlanRow {
  OutputRow output;
  RequestId request = 0;
  std::uint64_t user = 0;
  std::span<const std::int32_t> text;  // the request's tokens before output.position
  // The last n_guessed tokens of `text` are guesses, which the rows before this one verify.
  std::uint32_t n_guessed = 0;
};

struct PageMove {
  std::uint32_t slot = 0, from = 0, to = 0;
};

// StateMove requests a copy of a recurrent state from entry `from` to entry `to`. The entries below the number of slots
// are the slots' states. The entries after these are checkpoints.
struct StateMove {
  std::uint32_t slot = 0, from = 0, to = 0;
};

struct StepPlan {
  std::vector<PlanItem> items;        // decoding slots first, then chunks of prompts
  mem::SpanList tokens;               // the tokens of all items, in the order of the items
  std::vector<PlanRow> rows;          // the picks of all items, in their order; then the rows that score prompts
  std::uint32_t n_tokens = 0;         // tokens in all items
  std::uint32_t n_decode = 0;         // items that decode; each has one token that is not a guess
  std::uint32_t n_drafts = 0;         // guessed tokens in all items
  std::uint32_t n_outputs = 0;        // picks in all items; a slot with guesses has several
  std::vector<PageMove> page_copies;  // the runner makes these copies before the step
  std::vector<StateMove> restores;    // the runner restores these states before the step
  std::vector<StateMove> saves;       // the runner saves these states after the step
  // If the plan is empty: when to plan again, unless a request arrives or changes before.
  Micros wake_at = kNever;

  bool empty() const { return items.empty() && page_copies.empty() && restores.empty(); }
  std::uint32_t n_prompt_tokens() const { return n_tokens - n_decode - n_drafts; }
  // Removes the items with their tokens, rows and saves. Keeps the page copies and restores that are not carried out
  // yet.
  void clear_items() {
    items.clear();
    tokens.clear();
    rows.clear();
    saves.clear();
  }
};

}  // namespace zinc_rt::sched

// What one step computes. The planner makes it; the engine fills and executes it. It carries all that a step needs from
// its requests, so that nothing else reads them during the step.
// Thread rule: the step thread. Its spans show memory of the requests, which stays until commit() or fail_step().
#pragma once

#include <span>
#include <vector>

#include "base/output_row.h"
#include "mem/spans.h"
#include "sched/types.h"

namespace zinc_rt::sched {

// Consecutive tokens of one slot's request.
struct PlanItem {
  std::uint32_t slot = 0;
  std::uint32_t begin = 0, n = 0;  // tokens [begin, begin + n) of the request
  std::uint32_t n_picks = 0;       // picks: one after each of the last n_picks tokens
  std::uint32_t n_drafts = 0;      // the last n_drafts tokens are guesses; the picks before them verify them
  bool is_decode = false;
  bool ends_text = false;  // they are the last that the request has
  Qos qos = Qos::kStandard;
  std::uint32_t second_text = 0;  // the request's tokens from here on are of type 1; 0: none are
  RequestId request = 0;
  std::uint64_t user = 0;  // RequestParams::user
};

// A row of the step's output, and its request.
struct PlanRow {
  OutputRow output;
  RequestId request = 0;
  std::uint64_t user = 0;
  std::span<const std::int32_t> text;  // the request's tokens before output.position
  std::int32_t next = kNoToken;        // of a row that scores a prompt: the prompt's token at output.position
  std::uint32_t n_guessed = 0;         // the last n_guessed tokens of `text` are guesses; the rows before verify them
};

struct PageMove {
  std::uint32_t slot = 0, from = 0, to = 0;
};

// A copy between entries of recurrent state. Slots come first, then checkpoints.
struct StateMove {
  std::uint32_t slot = 0, from = 0, to = 0;
};

struct StepPlan {
  std::vector<PlanItem> items;        // decoding slots first
  mem::SpanList tokens;               // of all items, in their order
  std::vector<PlanRow> rows;          // the picks of all items, in their order; then the rows that score prompts
  std::uint32_t n_tokens = 0;         // of all items
  std::uint32_t n_decode = 0;         // items that decode; each has one token that is no guess
  std::uint32_t n_drafts = 0;         // tokens of all items that are guesses
  std::uint32_t n_outputs = 0;        // picks of all items; a slot may have several
  std::vector<PageMove> page_copies;  // done before the step
  std::vector<StateMove> restores;    // done before the step
  std::vector<StateMove> saves;       // done after the step
  Micros wake_at = kNever;            // where there is nothing to run: when to look again unless something happens

  bool empty() const { return items.empty() && page_copies.empty() && restores.empty(); }
  std::uint32_t n_prompt_tokens() const { return n_tokens - n_decode - n_drafts; }
  // Removes the items and what belongs to them. Copies and restores stay until they have been carried out.
  void clear_items() {
    items.clear();
    tokens.clear();
    rows.clear();
    saves.clear();
  }
};

}  // namespace zinc_rt::sched

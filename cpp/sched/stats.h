// Counters of what a scheduler has done since it was created; metrics and simulations read them. Thread rule: a plain
// value.
#pragma once

#include <cstdint>

namespace zinc_rt::sched {

struct Stats {
  std::uint64_t steps = 0, decode_tokens = 0, prefill_tokens = 0;
  std::uint64_t generated_tokens = 0;  // includes each request's first token, picked after its prompt's last chunk
  // drafts: how often a step computed guessed tokens for a request. draft_tokens: all tokens guessed in these steps.
  // accepted_draft_tokens: the guessed tokens that were picked and became text.
  std::uint64_t drafts = 0, draft_tokens = 0, accepted_draft_tokens = 0;
  // steps_ahead: steps that began before the step before them was committed. dropped_rows: rows of such steps whose
  // request had ended meanwhile.
  std::uint64_t steps_ahead = 0, dropped_rows = 0;
  std::uint64_t admissions = 0, preemptions = 0, page_evictions = 0;
  // Preemptions that gave the slot to a tenant that was owed a slot (turns.cpp).
  std::uint64_t turns = 0;
  std::uint64_t prompt_tokens = 0, cached_tokens = 0;  // counted at first admissions only
  std::uint64_t internal_errors = 0;                   // broken invariants, which are bugs of this program; must stay 0
};

}  // namespace zinc_rt::sched

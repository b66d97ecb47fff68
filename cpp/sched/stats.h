// What a scheduler has done since it was made. Thread rule: a plain value.
#pragma once

#include <cstdint>

namespace zinc_rt::sched {

struct Stats {
  std::uint64_t steps = 0, decode_tokens = 0, prefill_tokens = 0;
  std::uint64_t generated_tokens = 0;  // including the first one, which the prompt's last chunk gives
  // Steps of a request that had guesses; guessed tokens; those of them that became tokens.
  std::uint64_t drafts = 0, draft_tokens = 0, accepted_draft_tokens = 0;
  std::uint64_t admissions = 0, preemptions = 0, page_evictions = 0;
  std::uint64_t turns = 0;  // preemptions in which the slot went to a tenant that was owed one
  std::uint64_t prompt_tokens = 0, cached_tokens = 0;  // of first admissions
  std::uint64_t internal_errors = 0;                   // bugs of this program; stays 0
};

}  // namespace zinc_rt::sched

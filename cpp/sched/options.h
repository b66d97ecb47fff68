// The settings of the scheduler of one replica (a model on a device). They are fixed when the scheduler is created.
// Thread rule: a plain value.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "mem/siphash.h"
#include "sched/types.h"

namespace zinc_rt::sched {

struct Options {
  std::uint32_t model_id = 0;
  std::uint32_t n_slots = 64;
  std::uint32_t n_pages = 0;
  std::uint32_t max_context = 0;           // the longest text in tokens, a multiple of kPageTokens
  std::uint32_t chunk_cap = 256;           // the most tokens that a step computes; at least n_slots
  std::uint32_t prefill_cap = UINT32_MAX;  // the most prompt tokens of one request in a step
  std::uint32_t queue_cap = 1024;
  bool runs_ahead = false;    // the device takes a step while another one runs, so plan_ahead() plans some
  bool has_logprobs = false;  // the device computes logprobs; otherwise the host needs the logits for them
  // True for models whose attention is not causal (embeddings): each text must be computed in one step. Then chunk_cap
  // is at least max_context, and the prefix cache is never used.
  bool needs_whole_texts = false;
  bool prefix_cache = true;
  // True if the model has recurrent layers. Each slot then has recurrent state besides its KV pages, and the prefix
  // cache can store n_checkpoints copies of such states.
  bool is_recurrent = false;
  std::uint32_t n_checkpoints = 0;
  std::uint32_t most_drafts = kMostDrafts;  // the most guessed tokens of a request in a step
  // Some models encode positions differently in long texts. Texts of up to rope_limits[i] tokens use variant i.
  std::vector<std::uint32_t> rope_limits;
  mem::SipKey hash_key;
  // The longest time between two tokens of a standard stream that prompts may cause by making steps longer. If decoding
  // alone takes long, the time may be exceeded (batch_planner.cpp).
  Micros standard_gap = 60'000;
  // While other requests run, a request is admitted only if this fraction of all pages remains for the prefix cache.
  double prefix_part = 0.2;
  // If no request of a tenant and class got a slot for this long while some waited, their first request is admitted
  // before all others.
  Micros starvation = 30'000'000;
  // A turn is the time for which a request holds its slot before it may have to yield the slot to another tenant
  // (turns.cpp). `turn` is the least length of a turn, in us. turn_after[class] is how long a request waits, in us,
  // before it may take a slot from a tenant that has more than its share, if its own tenant has less than its share.
  std::array<Micros, kQosCount> turn_after = {250'000, 1'000'000, 10'000'000};
  Micros turn = 2'000'000;
  std::uint32_t slow_sink_steps = 500;  // a request whose sink stays full for this many steps is cancelled
  // For simulations: number of the page allocation that fails, counted from 1; 0: none fails.
  std::uint64_t fail_page_take = 0;

  // Returns the variant of the position encoding that a text of n_tokens uses.
  std::uint32_t variant_of(std::size_t n_tokens) const {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(rope_limits, n_tokens) - rope_limits.begin());
  }
};

}  // namespace zinc_rt::sched

// The settings of the scheduler of one replica. They never change while the scheduler lives.
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
  std::uint32_t max_context = 0;           // tokens, a multiple of kPageTokens
  std::uint32_t chunk_cap = 256;           // tokens that a step may compute; at least n_slots
  std::uint32_t prefill_cap = UINT32_MAX;  // prompt tokens of one request in a step
  std::uint32_t queue_cap = 1024;
  // Each text is computed in one step, so chunk_cap is at least max_context and nothing of a text can be cached.
  bool needs_whole_texts = false;
  bool prefix_cache = true;
  bool is_recurrent = false;  // slots have recurrent state besides pages; n_checkpoints copies of it can be kept
  std::uint32_t n_checkpoints = 0;
  // Texts of up to rope_limits[i] tokens use variant i of the position encoding.
  std::vector<std::uint32_t> rope_limits;
  mem::SipKey hash_key;
  // Prompts may fill steps until two tokens of a standard stream are this far apart. If decoding alone takes long, the
  // gap may be longer (batch_planner.cpp).
  Micros standard_gap = 60'000;
  double prefix_part = 0.2;        // the part of the pages that admission keeps for the prefix cache while requests run
  Micros starvation = 30'000'000;  // a tenant's class that got no slot for so long is next
  // Turns (turns.cpp). turn_after, per class: how long a request waits before it may take a slot from a tenant that has
  // more than its share, if its own tenant has less. turn: how long a request keeps a slot before it may have to yield
  // it.
  std::array<Micros, kQosCount> turn_after = {250'000, 1'000'000, 10'000'000};
  Micros turn = 2'000'000;
  std::uint32_t slow_sink_steps = 500;  // for so many steps a full sink may hold its request up
  std::uint64_t fail_page_take = 0;     // for simulations: the n-th page that is asked for is refused; 0: none is

  // The variant of the position encoding for a text of n_tokens.
  std::uint32_t variant_of(std::size_t n_tokens) const {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(rope_limits, n_tokens) - rope_limits.begin());
  }
};

}  // namespace zinc_rt::sched

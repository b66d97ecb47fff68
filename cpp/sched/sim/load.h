// Computes what clients would see of a machine under a load, from nothing but the cost of its steps. There is no model,
// no noise and no network. cpp/tools/sched_loads.cpp uses it to compare limits on the time to the first token and on
// the gaps between tokens with the throughput that remains.
// Thread rule: one thread.
#pragma once

#include <string>

#include "sched/scheduler.h"

namespace zinc_rt::sched::sim {

struct Machine {
  double base_us = 0, decode_us = 0;          // us per step, and per decoding slot in it
  double prompt_us = 0, prompt_token_us = 0;  // additional us of a step with prompts, and us per prompt token
};

struct Load {
  std::string name;
  // Number of clients; each sends its next request when its answer has ended (a closed loop).
  std::uint32_t n_clients = 0;
  std::uint32_t n_requests = 0;         // how many requests all clients send together
  double rate = 0;                      // if not 0: requests per second at random moments, without clients
  std::uint32_t prompt[2] = {32, 256};  // tokens, least and most
  std::uint32_t output[2] = {32, 256};
  bool with_interactive = false;  // whether an endless interactive stream runs beside the load
};

struct LoadResult {
  double seconds = 0, tokens_per_s = 0, requests_per_s = 0;  // tokens of prompts and answers
  double generated_per_s = 0;
  double first_p50_ms = 0, first_p99_ms = 0, gap_p50_ms = 0, gap_p99_ms = 0, interactive_gap_p99_ms = 0;
  double good_part = 0;  // the fraction of the requests that had their first token within kFirstMs
};
inline constexpr double kFirstMs = 500, kInteractiveGapMs = 30;  // the limits that docs/tenancy.md calls good

LoadResult run_load(const Load& load, const Machine& machine, const Options& options);

// Returns the highest rate, in requests per second, at which at least a fraction `good` of the requests is good and the
// interactive stream's p99 gap stays within kInteractiveGapMs. Returns 0 if no rate fulfills this.
double goodput(Load load, const Machine& machine, const Options& options, double good);

}  // namespace zinc_rt::sched::sim

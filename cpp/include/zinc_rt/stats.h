// What an engine has done so far, and what it holds now. Counters never fall while the engine is open.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zinc_rt {

struct ModelStats {
  std::string name;
  std::string tier;                          // "t_cpu"
  std::uint64_t steps = 0, step_tokens = 0;  // step_tokens: decode_tokens + prefill_tokens
  std::uint64_t decode_tokens = 0, prefill_tokens = 0;
  std::uint64_t generated_tokens = 0;      // those that prompts end with, too
  std::uint64_t running = 0, waiting = 0;  // requests with and without a slot
  std::uint64_t backlog_tokens = 0;        // of all of them: tokens that are not computed yet
  std::uint64_t slots = 0, slots_free = 0;
  std::uint64_t pages = 0, pages_free = 0;  // KV pages; pages_free: also those that hold cached prefixes alone
  std::uint64_t pages_cached = 0;
  std::uint64_t page_evictions = 0;  // cached pages that were given up
  std::uint64_t admissions = 0, preemptions = 0;
  std::uint64_t prompt_tokens = 0, cached_tokens = 0;
  std::uint64_t internal_errors = 0;               // bugs of ours; 0
  std::uint64_t failed_steps = 0, bad_logits = 0;  // bad_logits: requests that ended because of them
  std::uint64_t failed_steps_in_a_row = 0;         // the last ones, of all devices
  std::uint64_t allocated_bytes = 0;               // of the memory plans
  // The same numbers per device that has a replica of the model. The numbers above are their sums.
  struct Device;
  std::vector<Device> devices;
};

struct ModelStats::Device {
  std::uint32_t index = 0;  // in the tier
  ModelStats stats;         // without devices of its own
};

struct EngineStats {
  ModelStats total;                      // sums over the models; name is empty, tier that of the first
  double prefix_hit_rate = 0;            // cached tokens by prompt tokens
  float largest_prefill_difference = 0;  // seen by ZINC_RT_BATCHED_PREFILL=validate
  double step_ms = 0;  // for how long the step of a device has lasted by now, of all devices the longest; not in JSON
  std::vector<ModelStats> models;  // that are loaded; none once the engine is closed
};

// One JSON object with the totals and `models`. An engine without models has no sums in it.
std::string to_json(const EngineStats& stats);

}  // namespace zinc_rt

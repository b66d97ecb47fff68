// A scenario tells the scheduler simulator what to simulate: options, tenants, timed events, and what is expected of
// the result. It exists as plain data and as text. The text has one item per line; `#` begins a comment:
//
//   options slots=4 pages=32 context=256 chunk=64        fields that are not named keep their defaults
//   cost base=1000 token=10 context=0 jitter=0 seed=1     how long a step takes, in us; jitter in percent
//   drafts most=8 right=70 seed=1                         up to 8 tokens are guessed, each is right with 70 percent
//   tenant 0 slots=4 pages=64 qos=standard weight=1
//   fault 7                                               the 7th step fails (counted from 1)
//   at 100 submit 0 tenant=0 prompt=40 group=1 shared=20 seed=5 max=10 stop=4
//   at 200 cancel 0                                       at 200 us; `step 3 cancel 0`: before turn 3 (counted from 0)
//   expect finish 0 length
//
// Events about a request: submit, cancel, fail_sink, block, unblock. Events about a tenant: quota, flush. Others: lease
// (tokens=), end_lease, cancel_all. Expectations: admitted (first admissions, in order), preempted (in order), finish,
// tokens (how many a request generated), cached (how many of its prompt), count (a member of SimCounts).
// Thread rule: plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sched/scheduler.h"

namespace zinc_rt::sched::sim {

struct StepCost {
  // Microseconds per step, per token that it computes, and per token in the contexts of its slots.
  double base_us = 1000, token_us = 10, context_us = 0;
  std::uint32_t jitter_percent = 0;
  std::uint64_t seed = 1;
};

// DraftLine tells what the simulated drafter proposes for each request before each step: up to `most` tokens; 0:
// nothing.
struct DraftLine {
  std::uint32_t most = 0, right_percent = 70;
  bool is_fixed = false;  // Speculation::is_fixed
  std::uint64_t seed = 1;
};

struct TenantLine {
  std::uint32_t name = 0;
  Quota quota;
};

// SubmitLine is a request. Requests of one group have their first n_shared tokens in common. Requests with equal group,
// n_shared and seed have the same text, prompt and answer together. So the answer of one request may be a prefix of
// another request's prompt.
struct SubmitLine {
  Qos qos = Qos::kStandard;
  std::uint32_t n_prompt = 1, group = 0, n_shared = 0;
  std::uint64_t seed = 0;
  std::uint32_t max_tokens = 16;
  std::uint32_t stop_after = 0;  // n: the n-th generated token is the stop token; 0: no token is
  Micros deadline_us = 0;        // us after its arrival; 0: no deadline
  std::uint32_t after = kNone;   // number of its leader (RequestParams::after); kNone: it has no leader
};

enum class Act : std::uint8_t {
  kSubmit,
  kCancel,
  kFailSink,
  kBlock,
  kUnblock,
  kQuota,
  kFlush,
  kLease,
  kEndLease,
  kCancelAll
};

struct EventLine {
  bool by_step = false;
  std::int64_t at = 0;  // time in us, or the number of a turn of the simulator if by_step
  Act act = Act::kSubmit;
  // Number by which the scenario names the request; an event for an unknown request does nothing.
  std::uint32_t request = 0;
  std::uint32_t tenant = 0;
  std::uint32_t n_tokens = 16;  // kLease: how many tokens the lease has room for
  SubmitLine submit;
  Quota quota;
};

enum class What : std::uint8_t { kAdmitted, kPreempted, kFinish, kTokens, kCached, kCount };

struct ExpectLine {
  What what = What::kAdmitted;
  std::vector<std::uint32_t> requests;
  Finish reason = Finish::kStop;
  std::string counter;
  std::uint64_t value = 0;
};

struct Scenario {
  Options options;
  StepCost cost;
  DraftLine drafts;
  std::vector<TenantLine> tenants;
  std::vector<std::uint64_t> faults;
  std::vector<EventLine> events;
  std::vector<ExpectLine> expected;

  Scenario() {
    options.n_slots = 4;
    options.n_pages = 32;
    options.max_context = 256;
    options.chunk_cap = 64;
    options.hash_key = {1, 2};
  }
};

// Reads a scenario from its text. Errors: kInvalidArgument with the line's number.
Result<Scenario> parse_scenario(std::string_view text);
std::string print_scenario(const Scenario& scenario);

// Returns the token at a position of a request's text, of prompt and answer alike.
std::int32_t token_at(const SubmitLine& submit, std::uint32_t position);
inline constexpr std::int32_t kStopToken = 0;

}  // namespace zinc_rt::sched::sim

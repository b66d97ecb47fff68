// A scenario of the scheduler simulator: options, tenants, timed events and what is expected, as plain data and as
// text. The text has one item on each line; `#` begins a comment:
//
//   options slots=4 pages=32 context=256 chunk=64        fields that are not named keep their defaults
//   cost base=1000 token=10 context=0 jitter=0 seed=1     what a step takes, in us; jitter in percent
//   drafts most=8 right=70 seed=1                         guesses of up to 8 tokens, each right with 70 percent
//   tenant 0 slots=4 pages=64 qos=standard weight=1
//   fault 7                                               the 7th step fails (from 1)
//   at 100 submit 0 tenant=0 prompt=40 group=1 shared=20 seed=5 max=10 stop=4
//   at 200 cancel 0                                       `at`: us; `step 3 cancel 0`: before the 3rd turn (from 0)
//   expect finish 0 length
//
// Events: submit, cancel, fail_sink, block, unblock (a request); quota, flush (a tenant); lease (tokens=), end_lease,
// cancel_all. Expectations: admitted (first admissions, in order), preempted (in order), finish, tokens (that a request
// generated), cached (of its prompt), count (a number of SimCounts).
// Thread rule: plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sched/scheduler.h"

namespace zinc_rt::sched::sim {

struct StepCost {
  // The cost of a step, of each token in it, and of each token in its slots' contexts.
  double base_us = 1000, token_us = 10, context_us = 0;
  std::uint32_t jitter_percent = 0;
  std::uint64_t seed = 1;
};

// What a drafter of the engine would propose for each request before each step. most: 0: nothing.
struct DraftLine {
  std::uint32_t most = 0, right_percent = 70;
  bool is_fixed = false;  // Speculation::is_fixed
  std::uint64_t seed = 1;
};

struct TenantLine {
  std::uint32_t name = 0;
  Quota quota;
};

// Requests of one group have their first n_shared tokens in common. Requests with equal group, n_shared and seed have
// the same text, prompt and answer together, so the answer of one may be a prefix of another's prompt.
struct SubmitLine {
  Qos qos = Qos::kStandard;
  std::uint32_t n_prompt = 1, group = 0, n_shared = 0;
  std::uint64_t seed = 0;
  std::uint32_t max_tokens = 16;
  std::uint32_t stop_after = 0;  // the n-th generated token is the stop token; 0: none
  Micros deadline_us = 0;        // after its arrival; 0: none
  std::uint32_t after = kNone;   // the name of its leader
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
  std::int64_t at = 0;  // us, or the turn's index
  Act act = Act::kSubmit;
  std::uint32_t request = 0;  // a name; an event for a request that does not exist does nothing
  std::uint32_t tenant = 0;
  std::uint32_t n_tokens = 16;  // kLease
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

// Errors: kInvalidArgument with the line's number.
Result<Scenario> parse_scenario(std::string_view text);
std::string print_scenario(const Scenario& scenario);

// The token at a position of a request's text, prompt and answer alike.
std::int32_t token_at(const SubmitLine& submit, std::uint32_t position);
inline constexpr std::int32_t kStopToken = 0;

}  // namespace zinc_rt::sched::sim

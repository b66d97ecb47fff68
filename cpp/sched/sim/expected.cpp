#include "sched/sim/expected.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace zinc_rt::sched::sim {
namespace {

struct NamedCount {
  std::string_view name;
  std::uint64_t SimCounts::* count;
};
constexpr NamedCount kCounts[] = {{"turns", &SimCounts::turns},
                                  {"steps", &SimCounts::steps},
                                  {"admissions", &SimCounts::admissions},
                                  {"preemptions", &SimCounts::preemptions},
                                  {"yields", &SimCounts::yields},
                                  {"evictions", &SimCounts::evictions},
                                  {"decode_tokens", &SimCounts::decode_tokens},
                                  {"prefill_tokens", &SimCounts::prefill_tokens},
                                  {"draft_tokens", &SimCounts::draft_tokens},
                                  {"accepted_draft_tokens", &SimCounts::accepted_draft_tokens},
                                  {"steps_ahead", &SimCounts::steps_ahead},
                                  {"dropped_rows", &SimCounts::dropped_rows},
                                  {"prompt_tokens", &SimCounts::prompt_tokens},
                                  {"cached_tokens", &SimCounts::cached_tokens},
                                  {"page_copies", &SimCounts::page_copies},
                                  {"restores", &SimCounts::restores},
                                  {"saves", &SimCounts::saves},
                                  {"refused", &SimCounts::refused},
                                  {"finished", &SimCounts::finished},
                                  {"faults", &SimCounts::faults}};

}  // namespace

std::uint64_t* count_named(SimCounts& counts, std::string_view name) {
  for (const NamedCount& one : kCounts)
    if (one.name == name) return &(counts.*one.count);
  return nullptr;
}

void add(SimCounts& to, const SimCounts& counts) {
  for (const NamedCount& one : kCounts) to.*one.count += counts.*one.count;
}

void check_expected(const Scenario& scenario, SimResult& result, Invariants& invariants) {
  const auto outcome_of = [&](std::uint32_t name) -> const Outcome* {
    const auto it = std::ranges::find(result.outcomes, name, &Outcome::name);
    return it == result.outcomes.end() ? nullptr : &*it;
  };
  const auto expect = [&](bool holds, const std::string& text) {
    if (!holds) invariants.report("expect", text);
  };
  for (const ExpectLine& e : scenario.expected) {
    if (e.what == What::kAdmitted) {
      expect(e.requests == result.admitted, fmt::format("admitted {}", fmt::join(result.admitted, " ")));
    } else if (e.what == What::kPreempted) {
      expect(e.requests == result.preempted, fmt::format("preempted {}", fmt::join(result.preempted, " ")));
    } else if (e.what == What::kCount) {
      const std::uint64_t* count = count_named(result.counts, e.counter);
      expect(count != nullptr && *count == e.value,
             count != nullptr ? fmt::format("{} is {}, {} expected", e.counter, *count, e.value)
                              : fmt::format("there is no count \"{}\"", e.counter));
    } else if (const Outcome* o = outcome_of(e.requests[0]); o == nullptr) {
      expect(false, fmt::format("there is no request {}", e.requests[0]));
    } else if (e.what == What::kFinish) {
      expect(o->has_ended && o->reason == e.reason,
             fmt::format("request {} ended with {}, {} expected", o->name,
                         o->has_ended ? to_string(o->reason) : "nothing", to_string(e.reason)));
    } else {
      const std::uint32_t n = e.what == What::kTokens ? o->n_generated : o->cached_tokens;
      expect(n == e.value, fmt::format("request {} has {} tokens {}, {} expected", o->name, n,
                                       e.what == What::kTokens ? "generated" : "from the cache", e.value));
    }
  }
}

}  // namespace zinc_rt::sched::sim

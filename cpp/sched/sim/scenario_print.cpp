// Prints a scenario as text, and computes the tokens of its requests.
#include "sched/sim/mix.h"
#include "sched/sim/scenario_fields.h"

namespace zinc_rt::sched::sim {
namespace {

// Returns " name=value" for each field whose value is not its default.
template <class Fields>
std::string write_fields(Fields value, Fields standard) {
  std::vector<std::string> defaults;
  fields(standard, [&](const char*, const auto& field) { defaults.push_back(write(field)); });
  std::string out;
  std::size_t i = 0;
  fields(value, [&](const char* name, const auto& field) {
    if (const auto text = write(field); text != defaults[i++]) out += fmt::format(" {}={}", name, text);
  });
  return out;
}

std::string print_event(const EventLine& e) {
  const auto head =
      fmt::format("{} {} {}", e.by_step ? "step" : "at", e.at, kActNames[static_cast<std::size_t>(e.act)]);
  switch (e.act) {
    case Act::kSubmit: return fmt::format("{} {} tenant={}{}", head, e.request, e.tenant, write_fields(e.submit, {}));
    case Act::kQuota: return fmt::format("{} {}{}", head, e.tenant, write_fields(e.quota, {}));
    case Act::kFlush: return fmt::format("{} {}", head, e.tenant);
    case Act::kLease: return fmt::format("{} tokens={}", head, e.n_tokens);
    case Act::kEndLease:
    case Act::kCancelAll: return head;
    default: return fmt::format("{} {}", head, e.request);
  }
}

std::string print_expect(const ExpectLine& e) {
  std::string out = fmt::format("expect {}", kWhatNames[static_cast<std::size_t>(e.what)]);
  for (const auto request : e.requests) out += fmt::format(" {}", request);
  if (e.what == What::kFinish) return out + fmt::format(" {}", to_string(e.reason));
  if (e.what == What::kCount) return out + fmt::format(" {} {}", e.counter, e.value);
  return e.what == What::kAdmitted || e.what == What::kPreempted ? out : out + fmt::format(" {}", e.value);
}

}  // namespace

std::string print_scenario(const Scenario& s) {
  std::string out;
  const Scenario standard;
  const auto line = [&](std::string text) { out += std::move(text) + "\n"; };
  line("options" + write_fields(s.options, standard.options));
  line("cost" + write_fields(s.cost, standard.cost));
  if (s.drafts.most > 0) line("drafts" + write_fields(s.drafts, standard.drafts));
  for (const TenantLine& t : s.tenants) line(fmt::format("tenant {}{}", t.name, write_fields(t.quota, {})));
  for (const auto step : s.faults) line(fmt::format("fault {}", step));
  for (const EventLine& e : s.events) line(print_event(e));
  for (const ExpectLine& e : s.expected) line(print_expect(e));
  return out;
}

std::int32_t token_at(const SubmitLine& s, std::uint32_t position) {
  const std::uint64_t text = position < s.n_shared ? s.group : mix(s.seed, 0x7e47);
  return static_cast<std::int32_t>(1 + mix(text, position) % 30000);
}

}  // namespace zinc_rt::sched::sim

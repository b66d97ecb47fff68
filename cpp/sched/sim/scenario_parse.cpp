// Parses a scenario from its text (scenario.h).
#include <set>

#include "base/error.h"
#include "sched/sim/scenario_fields.h"

namespace zinc_rt::sched::sim {
namespace {

using Words = std::vector<std::string_view>;

// The largest sizes that a scenario may set. They fit in memory and are far above what scenarios need.
constexpr std::uint32_t kMostSlots = 4096, kMostPages = 1u << 20, kMostContext = 1u << 20, kMostTenants = 4096;
constexpr std::uint64_t kMostTableEntries = 1u << 24;  // slots x pages of a context
constexpr Micros kLatest = Micros{1} << 50;

class Parser {
 public:
  Result<Scenario> parse(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      line = line.substr(0, line.find('#'));
      words_.clear();
      while (!line.empty()) {
        const std::size_t begin = line.find_first_not_of(" \t\r");
        if (begin == std::string_view::npos) break;
        const std::size_t stop = std::min(line.find_first_of(" \t\r", begin), line.size());
        words_.push_back(line.substr(begin, stop - begin));
        line.remove_prefix(stop);
      }
      if (!words_.empty()) ZRT_CHECK_OK(item());
    }
    ZRT_CHECK_OK(check_events());
    return std::move(s_);
  }

 private:
  template <class... Args>
  std::unexpected<Error> wrong(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(StatusCode::kInvalidArgument, "[scenario] line {}: {}", line_,
                fmt::format(format, std::forward<Args>(args)...));
  }

  template <class Number>
  Status number(std::size_t i, const char* what, Number& out) const {
    if (i >= words_.size()) return wrong("{} wanted, the line has {} words", what, words_.size());
    if (!read(words_[i], out)) return wrong("{} wanted, \"{}\" there", what, words_[i]);
    return {};
  }

  // Reads the words name=value, from word number `first` on, into the fields of `out`.
  template <class Fields>
  Status assign(std::size_t first, Fields& out) const {
    for (std::size_t i = first; i < words_.size(); ++i) {
      const std::size_t equals = words_[i].find('=');
      if (equals == std::string_view::npos) return wrong("name=value wanted, \"{}\" there", words_[i]);
      const auto name = words_[i].substr(0, equals), value = words_[i].substr(equals + 1);
      bool is_known = false, is_good = false;
      fields(out, [&](std::string_view field, auto& target) {
        if (field != name) return;
        is_known = true;
        is_good = read(value, target);
      });
      if (!is_known) return wrong("a {} line has no field \"{}\"", words_[0], name);
      if (!is_good) return wrong("{}={} is no value of that field", name, value);
    }
    return {};
  }

  Status item() {
    const auto kind = words_[0];
    if (kind == "options") return options();
    if (kind == "cost") return cost();
    if (kind == "drafts") return drafts();
    if (kind == "tenant") return tenant();
    if (kind == "at" || kind == "step") return event();
    if (kind == "expect") return expect();
    if (kind == "fault") return number(1, "the number of a step", s_.faults.emplace_back());
    return wrong("options, cost, drafts, tenant, at, step, fault or expect wanted, \"{}\" there", kind);
  }

  Status options() {
    Options& o = s_.options;
    ZRT_CHECK_OK(assign(1, o));
    if (o.n_slots == 0 || o.n_slots > kMostSlots) return wrong("{} slots, 1 to {} wanted", o.n_slots, kMostSlots);
    if (o.n_pages == 0 || o.n_pages > kMostPages) return wrong("{} pages, 1 to {} wanted", o.n_pages, kMostPages);
    if (o.max_context < kPageTokens || o.max_context > kMostContext || o.max_context % kPageTokens != 0)
      return wrong("a context of {} tokens, a multiple of {} up to {} wanted", o.max_context, kPageTokens,
                   kMostContext);
    if (std::uint64_t{o.n_slots} * mem::pages_for(o.max_context) > kMostTableEntries)
      return wrong("{} slots of {} tokens, at most {} pages in all wanted", o.n_slots, o.max_context,
                   kMostTableEntries);
    if (o.chunk_cap == 0 || o.chunk_cap > kMostContext)
      return wrong("chunk={}, 1 to {} wanted", o.chunk_cap, kMostContext);
    if (o.prefill_cap == 0) return wrong("prefill_cap=0, at least 1 wanted");
    if (o.queue_cap > kMostContext) return wrong("queue={}, at most {} wanted", o.queue_cap, kMostContext);
    if (o.n_checkpoints > kMostPages) return wrong("{} checkpoints, at most {} wanted", o.n_checkpoints, kMostPages);
    if (!std::ranges::is_sorted(o.rope_limits) || o.rope_limits.size() > 8)
      return wrong("rope={}: up to 8 limits in order wanted", write(o.rope_limits));
    if (!(o.prefix_part >= 0 && o.prefix_part <= 1)) return wrong("prefix_part={}, 0 to 1 wanted", o.prefix_part);
    if (o.starvation < 1 || o.starvation > kLatest)
      return wrong("starvation={}, 1 to {} wanted", o.starvation, kLatest);
    if (o.standard_gap < 0 || o.standard_gap > kLatest)
      return wrong("standard_gap={}, 0 to {} wanted", o.standard_gap, kLatest);
    for (const Micros us : {o.turn, o.turn_after[0], o.turn_after[1], o.turn_after[2]})
      if (us < 1 || us > kLatest) return wrong("a time of turns of {} us, 1 to {} wanted", us, kLatest);
    return {};
  }

  Status cost() {
    StepCost& c = s_.cost;
    ZRT_CHECK_OK(assign(1, c));
    for (const double us : {c.base_us, c.token_us, c.context_us})
      if (!(us >= 0 && us <= 1e9)) return wrong("a cost of {} us, 0 to 1e9 wanted", us);
    if (c.base_us < 1) return wrong("base={}, at least 1 wanted: time must go on", c.base_us);
    if (c.jitter_percent > 100) return wrong("jitter={}, at most 100 wanted", c.jitter_percent);
    return {};
  }

  Status drafts() {
    DraftLine& d = s_.drafts;
    ZRT_CHECK_OK(assign(1, d));
    if (d.most > kMostDrafts) return wrong("most={}, at most {} wanted", d.most, kMostDrafts);
    if (d.right_percent > 100) return wrong("right={}, at most 100 wanted", d.right_percent);
    return {};
  }

  Status check_quota(const Quota& q) const {
    if (q.max_concurrent_slots == 0 || q.max_kv_pages == 0) return wrong("a quota of 0 slots or pages");
    if (q.reserved_kv_pages > kMostPages)
      return wrong("reserved={}, at most {} wanted", q.reserved_kv_pages, kMostPages);
    for (const double value : {q.decode_tokens_per_s, q.prefill_tokens_per_s, q.weight})
      if (!(value >= 1e-3 && value <= 1e12)) return wrong("a rate or weight of {}, 0.001 to 1e12 wanted", value);
    return {};
  }

  bool has_tenant(std::uint32_t name) const {
    return std::ranges::any_of(s_.tenants, [&](const TenantLine& t) { return t.name == name; });
  }

  Status tenant() {
    TenantLine t;
    ZRT_CHECK_OK(number(1, "the number of a tenant", t.name));
    if (has_tenant(t.name)) return wrong("tenant {} is there already", t.name);
    if (s_.tenants.size() >= kMostTenants) return wrong("more than {} tenants", kMostTenants);
    ZRT_CHECK_OK(assign(2, t.quota));
    ZRT_CHECK_OK(check_quota(t.quota));
    s_.tenants.push_back(t);
    return {};
  }

  struct LeaseFields {
    EventLine& event;
  };
  template <class Visit>
  friend void fields(LeaseFields& lease, Visit&& visit) {
    visit("tokens", lease.event.n_tokens);
  }
  struct SubmitFields {
    EventLine& event;
  };
  template <class Visit>
  friend void fields(SubmitFields& submit, Visit&& visit) {
    visit("tenant", submit.event.tenant);
    fields(submit.event.submit, visit);
  }

  Status event() {
    EventLine e;
    e.by_step = words_[0] == "step";
    ZRT_CHECK_OK(number(1, e.by_step ? "the index of a step" : "a time in us", e.at));
    if (e.at < 0 || e.at > kLatest) return wrong("{} {}, 0 to {} wanted", words_[0], e.at, kLatest);
    if (words_.size() < 3 || !read_name(words_[2], kActNames, e.act))
      return wrong("an event wanted, \"{}\" there", words_.size() < 3 ? "" : words_[2]);
    switch (e.act) {
      case Act::kSubmit:
        ZRT_CHECK_OK(number(3, "the number of a request", e.request));
        {
          SubmitFields all{e};
          ZRT_CHECK_OK(assign(4, all));
        }
        if (!names_.insert(e.request).second) return wrong("request {} is there already", e.request);
        if (e.submit.n_prompt > kMostContext)
          return wrong("prompt={}, at most {} wanted", e.submit.n_prompt, kMostContext);
        if (e.submit.deadline_us < 0 || e.submit.deadline_us > kLatest)
          return wrong("deadline={}, 0 to {} wanted", e.submit.deadline_us, kLatest);
        break;
      case Act::kQuota:
        ZRT_CHECK_OK(number(3, "the number of a tenant", e.tenant));
        ZRT_CHECK_OK(assign(4, e.quota));
        ZRT_CHECK_OK(check_quota(e.quota));
        break;
      case Act::kFlush: ZRT_CHECK_OK(number(3, "the number of a tenant", e.tenant)); break;
      case Act::kLease: {
        LeaseFields all{e};
        ZRT_CHECK_OK(assign(3, all));
        break;
      }
      case Act::kEndLease:
      case Act::kCancelAll: break;
      default: ZRT_CHECK_OK(number(3, "the number of a request", e.request));
    }
    s_.events.push_back(e);
    event_lines_.push_back(line_);
    return {};
  }

  Status expect() {
    ExpectLine e;
    if (words_.size() < 2 || !read_name(words_[1], kWhatNames, e.what))
      return wrong("admitted, preempted, finish, tokens, cached or count wanted, \"{}\" there",
                   words_.size() < 2 ? "" : words_[1]);
    if (e.what == What::kAdmitted || e.what == What::kPreempted) {
      for (std::size_t i = 2; i < words_.size(); ++i)
        ZRT_CHECK_OK(number(i, "the number of a request", e.requests.emplace_back()));
    } else if (e.what == What::kCount) {
      if (words_.size() < 3) return wrong("the name of a count wanted");
      e.counter = words_[2];
      ZRT_CHECK_OK(number(3, "a number", e.value));
    } else {
      ZRT_CHECK_OK(number(2, "the number of a request", e.requests.emplace_back()));
      if (e.what != What::kFinish) {
        ZRT_CHECK_OK(number(3, "a number", e.value));
      } else {
        std::size_t reason = 0;
        while (reason < kFinishCount && (words_.size() < 4 || to_string(static_cast<Finish>(reason)) != words_[3]))
          ++reason;
        if (reason == kFinishCount)
          return wrong("why it ends wanted, \"{}\" there", words_.size() < 4 ? "" : words_[3]);
        e.reason = static_cast<Finish>(reason);
      }
    }
    s_.expected.push_back(std::move(e));
    return {};
  }

  // Checks what is known only when all lines are read, such as the names in events.
  Status check_events() {
    for (std::size_t i = 0; i < s_.events.size(); ++i) {
      const EventLine& e = s_.events[i];
      line_ = event_lines_[i];
      const bool names_tenant = e.act == Act::kSubmit || e.act == Act::kQuota || e.act == Act::kFlush;
      if (names_tenant && !has_tenant(e.tenant)) return wrong("there is no tenant {}", e.tenant);
    }
    return {};
  }

  Scenario s_;
  Words words_;
  std::vector<std::size_t> event_lines_;
  std::set<std::uint32_t> names_;  // names of requests
  std::size_t line_ = 0;
};

}  // namespace

Result<Scenario> parse_scenario(std::string_view text) {
  return Parser().parse(text);
}

}  // namespace zinc_rt::sched::sim

#include "sched/sim/shrink.h"

#include <algorithm>

namespace zinc_rt::sched::sim {
namespace {

class Shrinker {
 public:
  Shrinker(Scenario scenario, const std::string& rule, std::uint32_t max_runs)
      : best_(std::move(scenario)), rule_(rule), runs_left_(max_runs) {}

  Scenario shrink() {
    for (bool is_smaller = true; is_smaller && runs_left_ > 0;) {
      is_smaller = remove_parts([](Scenario& s) -> auto& { return s.events; });
      is_smaller |= remove_parts([](Scenario& s) -> auto& { return s.faults; });
      is_smaller |= remove_tenants();
      is_smaller |= simplify();
    }
    return std::move(best_);
  }

 private:
  bool try_one(Scenario candidate) {
    if (runs_left_ == 0) return false;
    --runs_left_;
    const SimResult result = simulate(candidate);
    if (!result.violation || result.violation->rule != rule_) return false;
    best_ = std::move(candidate);
    return true;
  }

  // Tries to remove each half of a list, then each quarter, and so on down to single items. Returns whether anything
  // was removed.
  template <class List>
  bool remove_parts(List&& list_of) {
    bool did = false;
    for (std::size_t n = (list_of(best_).size() + 1) / 2; n > 0; n /= 2)
      for (std::size_t begin = 0; begin < list_of(best_).size();) {
        Scenario candidate = best_;
        auto& list = list_of(candidate);
        const auto first = list.begin() + static_cast<std::ptrdiff_t>(begin);
        list.erase(first, first + static_cast<std::ptrdiff_t>(std::min(n, list.size() - begin)));
        if (try_one(std::move(candidate)))
          did = true;
        else
          begin += n;
      }
    return did;
  }

  bool remove_tenants() {
    bool did = false;
    for (std::size_t i = 0; i < best_.tenants.size();) {
      Scenario candidate = best_;
      const auto name = candidate.tenants[i].name;
      candidate.tenants.erase(candidate.tenants.begin() + static_cast<std::ptrdiff_t>(i));
      std::erase_if(candidate.events, [&](const EventLine& e) {
        return e.tenant == name && (e.act == Act::kSubmit || e.act == Act::kQuota || e.act == Act::kFlush);
      });
      if (try_one(std::move(candidate)))
        did = true;
      else
        ++i;
    }
    return did;
  }

  // Sets a field of the scenario to `value` if the scenario then still breaks the rule. Returns whether it did.
  template <class Field>
  bool set(Field&& field, const std::remove_cvref_t<decltype(field(std::declval<Scenario&>()))>& value) {
    if (field(best_) == value) return false;
    Scenario candidate = best_;
    field(candidate) = value;
    return try_one(std::move(candidate));
  }
  template <class Field>
  bool lower(Field&& field, std::uint32_t least) {
    bool did = false;
    while (field(best_) > least) {
      const auto now = field(best_);
      if (!set(field, static_cast<std::remove_cvref_t<decltype(now)>>((now + least) / 2)) &&
          !set(field, static_cast<std::remove_cvref_t<decltype(now)>>(now - 1)))
        break;
      did = true;
    }
    return did;
  }

  bool simplify() {
    const Scenario standard;
    bool did = set([](Scenario& s) -> auto& { return s.cost.jitter_percent; }, 0);
    did |= set([](Scenario& s) -> auto& { return s.cost.context_us; }, 0.0);
    did |= set([](Scenario& s) -> auto& { return s.cost.token_us; }, 0.0);
    did |= set([](Scenario& s) -> auto& { return s.cost.base_us; }, standard.cost.base_us);
    did |= set([](Scenario& s) -> auto& { return s.options.prefill_cap; }, UINT32_MAX);
    did |= set([](Scenario& s) -> auto& { return s.options.prefix_part; }, standard.options.prefix_part);
    did |= set([](Scenario& s) -> auto& { return s.options.starvation; }, standard.options.starvation);
    did |= set([](Scenario& s) -> auto& { return s.options.slow_sink_steps; }, standard.options.slow_sink_steps);
    did |= set([](Scenario& s) -> auto& { return s.options.fail_page_take; }, 0);
    did |= set([](Scenario& s) -> auto& { return s.options.prefix_cache; }, true);
    did |= set([](Scenario& s) -> auto& { return s.options.is_recurrent; }, false);
    did |= set([](Scenario& s) -> auto& { return s.options.runs_ahead; }, false);
    did |= set([](Scenario& s) -> auto& { return s.options.n_checkpoints; }, 0);
    did |= set([](Scenario& s) -> auto& { return s.options.rope_limits; }, {});
    did |= set([](Scenario& s) -> auto& { return s.options.queue_cap; }, standard.options.queue_cap);
    did |= lower([](Scenario& s) -> auto& { return s.options.n_slots; }, 1);
    did |= lower([](Scenario& s) -> auto& { return s.options.n_pages; }, 1);
    for (std::size_t i = 0; i < best_.tenants.size(); ++i) did |= simplify_quota(i);
    for (std::size_t i = 0; i < best_.events.size(); ++i)
      if (best_.events[i].act == Act::kSubmit) did |= simplify_submit(i);
    return did;
  }

  bool simplify_quota(std::size_t i) {
    const Quota standard;
    bool did = set([i](Scenario& s) -> auto& { return s.tenants[i].quota.isolation_group; }, kNone);
    did |= set([i](Scenario& s) -> auto& { return s.tenants[i].quota.reserved_kv_pages; }, 0);
    did |= set([i](Scenario& s) -> auto& { return s.tenants[i].quota.weight; }, 1.0);
    did |= set([i](Scenario& s) -> auto& { return s.tenants[i].quota.max_kv_pages; }, standard.max_kv_pages);
    did |=
        set([i](Scenario& s) -> auto& { return s.tenants[i].quota.max_context_tokens; }, standard.max_context_tokens);
    did |= set([i](Scenario& s) -> auto& { return s.tenants[i].quota.decode_tokens_per_s; }, 1e6);
    did |= set([i](Scenario& s) -> auto& { return s.tenants[i].quota.prefill_tokens_per_s; }, 1e6);
    return did;
  }

  bool simplify_submit(std::size_t i) {
    bool did = set([i](Scenario& s) -> auto& { return s.events[i].at; }, 0);
    did |= set([i](Scenario& s) -> auto& { return s.events[i].submit.qos; }, Qos::kStandard);
    did |= set([i](Scenario& s) -> auto& { return s.events[i].submit.n_shared; }, 0);
    did |= set([i](Scenario& s) -> auto& { return s.events[i].submit.stop_after; }, 0);
    did |= set([i](Scenario& s) -> auto& { return s.events[i].submit.deadline_us; }, 0);
    did |= set([i](Scenario& s) -> auto& { return s.events[i].submit.after; }, kNone);
    did |= set([i](Scenario& s) -> auto& { return s.events[i].submit.group; }, 0);
    did |= lower([i](Scenario& s) -> auto& { return s.events[i].submit.max_tokens; }, 1);
    did |= lower([i](Scenario& s) -> auto& { return s.events[i].submit.n_prompt; }, 1);
    return did;
  }

  Scenario best_;
  const std::string& rule_;
  std::uint32_t runs_left_;
};

}  // namespace

Scenario shrink(Scenario scenario, const std::string& rule, std::uint32_t max_runs) {
  return Shrinker(std::move(scenario), rule, max_runs).shrink();
}

}  // namespace zinc_rt::sched::sim

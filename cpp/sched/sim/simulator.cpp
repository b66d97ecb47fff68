#include "sched/sim/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "sched/sim/expected.h"
#include "sched/sim/mix.h"

namespace zinc_rt::sched::sim {
namespace {

constexpr std::uint64_t kCacheCheckEvery = 64;  // turns of the simulator between two checks of the prefix cache
constexpr std::uint64_t kLeaseTurns = 200;      // a lease for diagnostics ends after this many turns of the simulator
// A scenario with more turns than this per token of its requests counts as endless. Throttled and blocked requests cost
// turns without progress, and preempted requests are computed again, so the number is large.
constexpr std::uint64_t kTurnsPerToken = 64, kTurnsAtLeast = 100'000;

struct Live {
  const EventLine* line = nullptr;
  std::size_t outcome = 0;
  RequestId id = 0;
  bool is_blocked = false;
};

class Simulation {
 public:
  explicit Simulation(const Scenario& scenario)
      : scenario_(scenario),
        scheduler_(scenario.options, add_tenants(scenario)),
        kv_(scheduler_.options()),
        invariants_(scheduler_, tenants_),
        draw_(scenario.cost.seed),
        drafted_(scenario.drafts.seed) {
    std::uint64_t n_tokens = 0;
    for (const EventLine& e : scenario.events) {
      (e.by_step ? by_step_ : by_time_).push_back(&e);
      if (e.act == Act::kSubmit)
        n_tokens += e.submit.n_prompt + std::min(e.submit.max_tokens, scenario.options.max_context);
      if (e.act == Act::kQuota) invariants_.checks_reserved = false;
    }
    const Options& o = scenario.options;
    const std::uint32_t context_pages = mem::pages_for(o.max_context);
    invariants_.checks_bound = o.fail_page_take == 0 && tenants_.total_reserved() == 0 && invariants_.checks_reserved &&
                               (1 - o.prefix_part) * o.n_pages >= (o.n_slots + 2.0) * context_pages;
    most_turns_ = kTurnsAtLeast + kTurnsPerToken * n_tokens;
    if (tenants_.total_reserved() > scenario.options.n_pages) invariants_.checks_reserved = false;
    const auto by_at = [](const EventLine* a, const EventLine* b) { return a->at < b->at; };
    std::ranges::stable_sort(by_time_, by_at);
    std::ranges::stable_sort(by_step_, by_at);
    live_.reserve(scenario.events.size());
    pages_.resize(o.n_slots);
    next_pages_.resize(o.n_slots);
  }

  SimResult run() {
    while (!invariants_.violation() && turn()) {
    }
    if (!invariants_.violation()) end();
    if (!invariants_.violation()) check_expected(scenario_, result_, invariants_);
    result_.violation = invariants_.violation();
    if (result_.violation) result_.violation->text += fmt::format(" (turn {}, {} us)", result_.counts.turns, now_);
    result_.end = now_;
    result_.bound_used = invariants_.bound_used;
    for (TenantId id = 0; id < tenants_.size(); ++id) result_.service.push_back(tenants_[id].service);
    return std::move(result_);
  }

 private:
  TenantBook& add_tenants(const Scenario& scenario) {
    for (const TenantLine& t : scenario.tenants) ids_.emplace(t.name, tenants_.add(t.quota, 0));
    return tenants_;
  }

  // Applies all events whose time or turn has come.
  void take_events() {
    for (; next_time_ < by_time_.size() && by_time_[next_time_]->at <= now_; ++next_time_) apply(*by_time_[next_time_]);
    const auto turn = static_cast<std::int64_t>(result_.counts.turns);
    for (; next_step_ < by_step_.size() && by_step_[next_step_]->at <= turn; ++next_step_) apply(*by_step_[next_step_]);
  }

  Live* named(std::uint32_t name) {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : &live_[it->second];
  }

  // The engine lets no step run while it applies such an event.
  static bool wants_no_step(Act act) {
    return act == Act::kQuota || act == Act::kFlush || act == Act::kLease || act == Act::kEndLease ||
           act == Act::kCancelAll;
  }

  void apply(const EventLine& e) {
    Live* live = named(e.request);
    if (wants_no_step(e.act)) drain();
    switch (e.act) {
      case Act::kSubmit: return submit(e);
      case Act::kCancel:
        if (live != nullptr) scheduler_.cancel(live->id);
        return;
      case Act::kFailSink:
        if (live != nullptr) scheduler_.cancel(live->id, Finish::kSinkFailed);
        return;
      case Act::kBlock:
      case Act::kUnblock:
        if (live != nullptr) live->is_blocked = e.act == Act::kBlock;
        return;
      case Act::kQuota: {
        Quota quota = e.quota;
        // The isolation group stays unchanged, so that the tenant's prefixes stay in their scope.
        quota.isolation_group = tenants_[ids_.at(e.tenant)].quota.isolation_group;
        return tenants_.set_quota(ids_.at(e.tenant), quota, now_);
      }
      case Act::kFlush: scheduler_.flush_prefixes(ids_.at(e.tenant)); return;
      case Act::kLease:
        if (const auto slot = scheduler_.lease(e.n_tokens)) {
          invariants_.leases.push_back(*slot);
          leases_end_ = result_.counts.turns + kLeaseTurns;
          // Diagnostics may write anything into the pages of their lease.
          for (const auto page : scheduler_.slots().pages(*slot)) kv_.spoil_page(page);
        }
        return;
      case Act::kEndLease:
        if (!invariants_.leases.empty()) end_lease();
        return;
      case Act::kCancelAll: return scheduler_.cancel_all(Finish::kShutdown);
    }
  }

  void end_lease() {
    scheduler_.give_back_lease(invariants_.leases.back());
    invariants_.leases.pop_back();
  }

  void submit(const EventLine& e) {
    if (by_name_.contains(e.request)) return;
    const SubmitLine& s = e.submit;
    RequestParams p;
    p.tenant = ids_.at(e.tenant);
    p.qos = s.qos;
    for (std::uint32_t i = 0; i < s.n_prompt; ++i) p.prompt.push_back(token_at(s, i));
    p.max_tokens = s.max_tokens;
    p.speculation = {.most = scenario_.drafts.most, .is_fixed = scenario_.drafts.is_fixed};
    p.stop_tokens.assign(1, kStopToken);
    if (s.deadline_us > 0) p.deadline = now_ + s.deadline_us;
    if (const Live* leader = named(s.after)) p.after = leader->id;
    p.user = live_.size();
    Outcome outcome;
    outcome.name = e.request;
    const auto id = scheduler_.submit(std::move(p), now_);
    outcome.was_refused = !id;
    result_.counts.refused += !id;
    by_name_.emplace(e.request, live_.size());
    live_.push_back({&e, result_.outcomes.size(), id ? *id : 0, false});
    result_.outcomes.push_back(outcome);
  }

  // Simulates one turn. Unless a step runs already, requests are admitted and a step is planned. The step after it may
  // then be planned ahead. At last the running step ends, if there is one. Returns false when the scenario is over.
  bool turn() {
    take_events();
    if (result_.counts.turns >= leases_end_ && !invariants_.leases.empty()) {
      drain();
      while (!invariants_.leases.empty()) end_lease();
    }
    for (std::uint32_t slot = 0; slot < scheduler_.slots().size(); ++slot)
      if (const Request* r = scheduler_.in_slot(slot))
        scheduler_.set_backpressure(r->id, live_[r->params.user].is_blocked);
    Micros wake_at = kNever;
    if (plan_ == nullptr) {
      propose_drafts();
      invariants_.before_admit(now_);
      scheduler_.admit(now_);
      invariants_.after_admit(now_);
      const StepPlan& plan = scheduler_.plan(now_);
      invariants_.after_plan(plan);
      wake_at = plan.wake_at;
      if (!plan.empty()) plan_ = &plan;
    }
    const bool has_work = plan_ != nullptr;
    if (invariants_.violation()) return false;
    // A step that is planned ahead has no drafts. So scenarios with drafts plan ahead in only half of the turns, and
    // steps with drafts occur as well.
    if (has_work && (scenario_.drafts.most == 0 || drafted_.chance(50))) plan_ahead();
    if (has_work) end_step();
    take_results();
    ++result_.counts.turns;
    if (result_.counts.turns % kCacheCheckEvery == 0) invariants_.check_cache();
    invariants_.after_step();
    if (result_.counts.turns > most_turns_) invariants_.report("progress", "the scenario does not end");
    return has_work || sleep(wake_at);
  }

  // Begins the next step while the present one runs, if the scheduler plans one. The device then has its own copy of
  // the page tables.
  void plan_ahead() {
    const StepPlan* next = scheduler_.plan_ahead(now_);
    if (next == nullptr) return;
    invariants_.after_plan_ahead(*next);
    for (const PlanItem& item : next->items) {
      const auto pages = scheduler_.slots().pages(item.slot);
      next_pages_[item.slot].assign(pages.begin(), pages.end());
    }
    has_next_ = true;
  }

  // Ends the step that runs. Afterwards the step that was planned ahead runs, if one was.
  void end_step() {
    step(*plan_);
    is_ahead_ = std::exchange(has_next_, false) && !plan_->items.empty();
    if (!is_ahead_) {
      plan_ = nullptr;
      return;
    }
    std::swap(pages_, next_pages_);
    if (scheduler_.is_ahead()) return;
    for (const PlanItem& item : plan_->items) kv_.spoil(item, pages_[item.slot]);
    scheduler_.drop_step();
    plan_ = nullptr;
    is_ahead_ = false;
  }

  void drain() {
    while (plan_ != nullptr) end_step();
  }

  // Advances the time to the next event. Returns false when the scenario is over.
  bool sleep(Micros wake_at) {
    const Micros next_event = next_time_ < by_time_.size() ? by_time_[next_time_]->at : kNever;
    const bool is_idle = scheduler_.is_idle();
    if (is_idle && next_event == kNever) {
      if (next_step_ >= by_step_.size()) return false;
      return ++now_, true;  // the next event is given by its turn, so empty turns pass until then
    }
    const Micros until = is_idle ? next_event : std::min(wake_at, next_event);
    if (until == kNever && next_step_ < by_step_.size()) return ++now_, true;
    if (until == kNever && !invariants_.leases.empty()) {  // requests wait for the leased slots
      while (!invariants_.leases.empty()) end_lease();
      return ++now_, true;
    }
    if (until == kNever)
      invariants_.report("progress", fmt::format("{} requests wait and {} are in slots, nothing runs and nobody will "
                                                 "look again",
                                                 scheduler_.n_waiting(), scheduler_.n_running()));
    now_ = std::max(now_ + 1, std::min(until, kNever - 1));
    return true;
  }

  std::uint64_t owner_of(const Request& r) const {
    const std::uint32_t group = tenants_[r.params.tenant].quota.isolation_group;
    return group == kNone ? r.params.tenant : std::uint64_t{group} | std::uint64_t{1} << 32;
  }

  double step_us(const StepPlan& plan) {
    double us = scenario_.cost.base_us + scenario_.cost.token_us * plan.n_tokens;
    if (scenario_.cost.context_us > 0)
      for (const PlanItem& item : plan.items) us += scenario_.cost.context_us * (item.begin + item.n);
    if (const auto percent = scenario_.cost.jitter_percent; percent > 0)
      us *= 1 + 0.01 * percent * (static_cast<double>(draw_.next() % 2001) / 1000 - 1);
    return std::max(1.0, us);
  }

  void step(const StepPlan& plan) {
    SimCounts& counts = result_.counts;
    ++counts.steps;
    counts.page_copies += plan.page_copies.size();
    counts.restores += plan.restores.size();
    counts.saves += plan.saves.size();
    const double us = step_us(plan);
    now_ += static_cast<Micros>(us);
    if (std::ranges::find(scenario_.faults, counts.steps) != scenario_.faults.end()) return fault(plan);
    for (const PageMove& copy : plan.page_copies) kv_.copy_page(copy);
    for (const StateMove& move : plan.restores) kv_.copy_state(move);
    tokens_.clear();
    for (const PlanItem& item : plan.items) {
      const Request* in_slot = scheduler_.in_slot(item.slot);
      const std::span<const std::uint32_t> pages =
          is_ahead_ ? std::span<const std::uint32_t>(pages_[item.slot]) : scheduler_.slots().pages(item.slot);
      if (in_slot == nullptr || in_slot->id != item.request) {  // the request has ended since the step was planned
        kv_.spoil(item, pages);
        tokens_.push_back(wrong_token(0));
        continue;
      }
      const Request& r = *in_slot;
      const Slot& slot = scheduler_.slots()[item.slot];
      if (auto wrong = kv_.run(item, r, pages, owner_of(r), slot.rope_variant); !wrong.empty())
        return invariants_.report("content", fmt::format("request {}, slot {}: {}", name_of(r), item.slot, wrong));
      // After a wrong guess, the device picks the next token of another text.
      bool is_right = true;
      for (std::uint32_t i = 0; i < item.n_picks; ++i) {
        tokens_.push_back(is_right ? next_token(r, i) : wrong_token(next_token(r, i)));
        is_right = is_right && i < item.n_drafts && r.tokens.guessed()[i] == tokens_.back();
      }
    }
    for (const StateMove& move : plan.saves) kv_.copy_state(move);
    scheduler_.commit(tokens_, now_, us);
  }

  void fault(const StepPlan& plan) {
    ++result_.counts.faults;
    for (const PageMove& copy : plan.page_copies) kv_.spoil_page(copy.to);
    for (const StateMove& move : plan.restores) kv_.spoil_state(move.to);
    for (const StateMove& move : plan.saves) kv_.spoil_state(move.to);
    for (const PlanItem& item : plan.items) kv_.spoil(item, scheduler_.slots().pages(item.slot));
    for (const PlanItem& item : plan.items)
      if (is_ahead_) kv_.spoil(item, pages_[item.slot]);
    scheduler_.fail_step(now_);
  }

  std::uint32_t name_of(const Request& r) const { return live_[r.params.user].line->request; }

  static std::int32_t wrong_token(std::int32_t right) { return right + 30'001; }

  void propose_drafts() {
    const DraftLine& drafts = scenario_.drafts;
    if (drafts.most == 0) return;
    for (std::uint32_t slot = 0; slot < scheduler_.slots().size(); ++slot) {
      const Request* r = scheduler_.in_slot(slot);
      // Sometimes no new draft is proposed, so an earlier draft may stay.
      if (r == nullptr || drafted_.chance(20)) continue;
      draft_.clear();
      for (std::uint32_t i = drafted_.below(drafts.most + 1); i > 0; --i) {
        const std::int32_t right = next_token(*r, static_cast<std::uint32_t>(draft_.size()));
        draft_.push_back(drafted_.chance(drafts.right_percent) ? right : wrong_token(right));
      }
      scheduler_.propose(r->id, draft_, 0.01 * drafts.right_percent);
    }
  }

  // Returns the right token `more` places after the next token to be generated.
  std::int32_t next_token(const Request& r, std::uint32_t more) const {
    const SubmitLine& s = live_[r.params.user].line->submit;
    const std::uint32_t n = r.n_generated() + 1 + more;
    return n == s.stop_after ? kStopToken : token_at(s, r.n_prompt + n - 1);
  }

  // Takes the scheduler's events, as the engine's runner does, and checks them against the request's text.
  void take_results() {
    for (const Event& e : scheduler_.events()) {
      const Live& live = live_[e.user];
      Outcome& outcome = result_.outcomes[live.outcome];
      if (outcome.has_ended || live.id != e.request)
        invariants_.report("text", fmt::format("request {} has an event after its end", outcome.name));
      switch (e.kind) {
        case EventKind::kAdmitted:
          if (e.is_first) result_.admitted.push_back(outcome.name);
          outcome.cached_tokens = e.cached_tokens;
          break;
        case EventKind::kPreempted: result_.preempted.push_back(outcome.name); break;
        case EventKind::kToken: take_token(e, live.line->submit, outcome); break;
        case EventKind::kFinished: take_end(e, live.line->submit, outcome); break;
      }
    }
    scheduler_.clear_events();
  }

  void take_token(const Event& e, const SubmitLine& s, Outcome& outcome) {
    ++outcome.n_generated;
    const auto wanted =
        outcome.n_generated == s.stop_after ? kStopToken : token_at(s, s.n_prompt + outcome.n_generated - 1);
    if (e.n_generated != outcome.n_generated || e.token != wanted || e.is_first != (e.n_generated == 1))
      invariants_.report("text", fmt::format("request {}: token {} is {} as number {}, {} wanted", outcome.name,
                                             outcome.n_generated, e.token, e.n_generated, wanted));
  }

  void take_end(const Event& e, const SubmitLine& s, Outcome& outcome) {
    outcome.has_ended = true;
    outcome.reason = e.reason;
    ++result_.counts.finished;
    const bool has_stopped = s.stop_after > 0 && outcome.n_generated == s.stop_after;
    if (e.n_generated != outcome.n_generated || (e.reason == Finish::kStop) != has_stopped)
      invariants_.report("text", fmt::format("request {} ends with {} after {} tokens, {} were given", outcome.name,
                                             to_string(e.reason), e.n_generated, outcome.n_generated));
  }

  void end() {
    drain();
    while (!invariants_.leases.empty()) end_lease();
    const Stats& stats = scheduler_.stats();
    SimCounts& counts = result_.counts;
    counts.admissions = stats.admissions;
    counts.preemptions = stats.preemptions;
    counts.yields = stats.turns;
    counts.evictions = stats.page_evictions;
    counts.decode_tokens = stats.decode_tokens;
    counts.prefill_tokens = stats.prefill_tokens;
    counts.draft_tokens = stats.draft_tokens;
    counts.accepted_draft_tokens = stats.accepted_draft_tokens;
    counts.steps_ahead = stats.steps_ahead;
    counts.dropped_rows = stats.dropped_rows;
    counts.prompt_tokens = stats.prompt_tokens;
    counts.cached_tokens = stats.cached_tokens;
    invariants_.at_end(false);
    for (TenantId id = 0; id < tenants_.size(); ++id) scheduler_.flush_prefixes(id);
    invariants_.at_end(true);
    for (const Outcome& outcome : result_.outcomes)
      if (!outcome.was_refused && !outcome.has_ended)
        invariants_.report("progress", fmt::format("request {} has not ended", outcome.name));
  }

  const Scenario& scenario_;
  std::unordered_map<std::uint32_t, TenantId> ids_;  // key: the tenant's name in the scenario
  TenantBook tenants_;
  Scheduler scheduler_;
  KvModel kv_;
  Invariants invariants_;
  Draw draw_, drafted_;
  SimResult result_;
  std::vector<const EventLine*> by_time_, by_step_;
  std::size_t next_time_ = 0, next_step_ = 0;
  std::vector<Live> live_;  // index: RequestParams::user
  std::unordered_map<std::uint32_t, std::size_t> by_name_;
  std::vector<std::int32_t> tokens_, draft_;
  const StepPlan* plan_ = nullptr;  // the plan of the step that runs; null: none runs
  // Whether the step that runs was planned ahead, and whether the step after it is planned. pages_ and next_pages_ are
  // copies of the pages of their slots, made when these steps were planned. Index: slot.
  bool is_ahead_ = false, has_next_ = false;
  std::vector<std::vector<std::uint32_t>> pages_, next_pages_;
  std::uint64_t most_turns_ = 0, leases_end_ = 0;
  Micros now_ = 0;
};

}  // namespace

SimResult simulate(const Scenario& scenario) {
  return Simulation(scenario).run();
}

}  // namespace zinc_rt::sched::sim

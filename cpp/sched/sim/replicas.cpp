#include "sched/sim/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "sched/placement.h"
#include "sched/sim/mix.h"

namespace zinc_rt::sched::sim {
namespace {

constexpr std::uint64_t kMostEvents = 20'000'000;

struct User {
  TenantId tenant = 0;
  std::uint32_t system = 0, n_turns = 0, turn = 0;
  std::vector<std::int32_t> said;  // all tokens of the conversation so far
  std::uint32_t n_known = 0;       // for how many of the tokens a replica has computed the KV
  Micros asks_at = 0, asked_at = 0;
  std::uint32_t n_prompt = 0;
  std::uint64_t n_conversations = 0;
};

class Replicas {
 public:
  explicit Replicas(const ReplicasLoad& load) : load_(load), draw_(load.seed) {
    for (const Talkers& talkers : load.tenants) {
      Quota quota;
      quota.max_concurrent_slots = talkers.max_slots;
      quota.max_kv_pages = 1u << 20;
      quota.decode_tokens_per_s = quota.prefill_tokens_per_s = 1e9;
      quota.weight = talkers.weight;
      const TenantId tenant = book_.add(quota, 0);
      systems_.emplace_back();
      for (std::uint32_t i = 0; i < talkers.n_systems; ++i)
        systems_.back().push_back(text(draw_.between(talkers.system[0], talkers.system[1])));
      for (std::uint32_t i = 0; i < talkers.n_users; ++i) {
        users_.emplace_back();
        users_.back().tenant = tenant;
        users_.back().asks_at = thinks(talkers);
      }
    }
    const auto all_shares = std::make_shared<Shares>(load.replicas.front().turn);
    for (const Options& options : load.replicas)
      replicas_.push_back(std::make_unique<Replica>(options, book_, all_shares));
    result_.n_requests.resize(replicas_.size());
  }

  ReplicasResult run() {
    while (n_ended_ < load_.n_requests && !result_.violation) {
      if (++n_events_ > kMostEvents) report("progress", "the load does not end");
      event();
    }
    for (TenantId t = 0; t < book_.size(); ++t) result_.service.push_back(book_[t].service);
    for (const auto& replica : replicas_) {
      result_.n_yields += replica->scheduler.stats().turns;
      result_.bound_used = std::max(result_.bound_used, replica->invariants.bound_used);
    }
    result_.hit_rate = static_cast<double>(n_cached_) / static_cast<double>(n_prompt_);
    result_.best_hit_rate = static_cast<double>(n_best_) / static_cast<double>(n_prompt_);
    result_.seconds = 1e-6 * static_cast<double>(now_);
    std::ranges::sort(firsts_);
    const auto part = [&](double p) {
      return firsts_.empty() ? 0 : firsts_[static_cast<std::size_t>(p * static_cast<double>(firsts_.size() - 1))];
    };
    result_.first_p50_ms = part(0.5);
    result_.first_p99_ms = part(0.99);
    return std::move(result_);
  }

 private:
  struct Replica {
    Replica(const Options& options, TenantBook& book, std::shared_ptr<Shares> all_shares)
        : scheduler(options, book, std::move(all_shares)), invariants(scheduler, book, false) {
      invariants.checks_bound = true;
    }
    Scheduler scheduler;
    Invariants invariants;
    Micros free_at = kNever;  // when the present step ends; kNever: no step runs
    Micros wake_at = 0;       // when to begin the next step, if none runs
    std::uint32_t n_outputs = 0;
    double step_us = 0;
  };

  std::vector<std::int32_t> text(std::uint32_t n) {
    std::vector<std::int32_t> ids(n);
    for (auto& id : ids) id = static_cast<std::int32_t>(draw_.below(50'000));
    return ids;
  }
  Micros thinks(const Talkers& talkers) {
    const double u = (static_cast<double>(draw_.next() >> 11) + 1) / 9007199254740993.0;
    return now_ + static_cast<Micros>(-std::log(u) * static_cast<double>(talkers.think));
  }
  void report(std::string_view rule, std::string what) {
    if (!result_.violation) result_.violation = Violation{std::string(rule), std::move(what)};
  }

  // Moves the time to the next event, and handles all that is due then: questions, ends of steps, starts of steps.
  void event() {
    Micros next = kNever;
    for (const User& user : users_) next = std::min(next, user.asks_at);
    for (const auto& replica : replicas_)
      next = std::min(next, replica->free_at != kNever ? replica->free_at : replica->wake_at);
    if (next == kNever) return report("progress", "nothing will happen, and requests are left");
    now_ = std::max(now_, next);
    for (std::size_t i = 0; i < users_.size(); ++i)
      if (users_[i].asks_at <= now_) ask(i);
    for (const auto& replica : replicas_) {
      if (replica->free_at <= now_) end_step(*replica);
      if (replica->free_at == kNever && replica->wake_at <= now_) begin_step(*replica);
      if (replica->invariants.violation() && !result_.violation) result_.violation = replica->invariants.violation();
    }
    check_tenants();
  }

  void ask(std::size_t index) {
    User& user = users_[index];
    const Talkers& talkers = load_.tenants[user.tenant];
    if (user.turn == user.n_turns) {
      // The smaller of two draws, so that low numbers are more frequent.
      user.system = std::min(draw_.below(talkers.n_systems), draw_.below(talkers.n_systems));
      user.n_turns = draw_.between(talkers.turns[0], talkers.turns[1]);
      user.turn = 0;
      user.said = systems_[user.tenant][user.system];
      const bool is_new = used_systems_.emplace(user.tenant, user.system).second;
      user.n_known = is_new ? 0 : static_cast<std::uint32_t>(user.said.size());
    }
    const auto question = text(draw_.between(talkers.question[0], talkers.question[1]));
    user.said.insert(user.said.end(), question.begin(), question.end());
    ++user.turn;
    user.asks_at = kNever;
    user.asked_at = now_;
    user.n_prompt = static_cast<std::uint32_t>(user.said.size());
    n_prompt_ += user.n_prompt;
    n_best_ += std::min(user.n_known, user.n_prompt - 1);
    RequestParams p;
    p.tenant = user.tenant;
    p.qos = talkers.qos;
    p.prompt = mem::SpanList(user.said);
    p.max_tokens = draw_.between(talkers.answer[0], talkers.answer[1]);
    p.user = index;
    const std::uint32_t chosen = place_for(user, p.n_cached);
    ++result_.n_requests[chosen];
    Replica& replica = *replicas_[chosen];
    if (!replica.scheduler.submit(std::move(p), now_)) report("submit", "a request was refused");
    replica.wake_at = now_;
  }

  std::uint32_t place_for(const User& user, std::uint32_t& n_cached) {
    std::vector<ReplicaLoad> loads;
    for (const auto& replica : replicas_)
      loads.push_back(
          {replica->scheduler.cached_tokens(user.tenant, {}, user.said), replica->scheduler.backlog_tokens()});
    const auto least = std::ranges::min_element(loads, {}, &ReplicaLoad::backlog_tokens);
    switch (load_.rule) {
      case PlacementRule::kAtRandom: return draw_.below(static_cast<std::uint32_t>(replicas_.size()));
      case PlacementRule::kByBacklog: return static_cast<std::uint32_t>(least - loads.begin());
      case PlacementRule::kByPrefix: break;
    }
    const auto chosen = choose_replica(loads, placement_key(std::to_string(user.tenant), {}, user.said));
    const ReplicaLoad& mine = loads[chosen];
    n_cached = static_cast<std::uint32_t>(mine.cached_tokens);
    for (const ReplicaLoad& other : loads)
      if (mine.backlog_tokens + other.cached_tokens > other.backlog_tokens + mine.cached_tokens)
        report("placement", fmt::format("{} cached behind {} were taken, and {} behind {} not", mine.cached_tokens,
                                        mine.backlog_tokens, other.cached_tokens, other.backlog_tokens));
    return chosen;
  }

  void begin_step(Replica& replica) {
    Scheduler& s = replica.scheduler;
    replica.invariants.before_admit(now_);
    s.admit(now_);
    replica.invariants.after_admit(now_);
    const StepPlan& plan = s.plan(now_);
    replica.invariants.after_plan(plan);
    replica.wake_at = kNever;
    if (plan.empty()) {
      replica.wake_at = std::max(now_ + 1, plan.wake_at);
    } else {
      const std::uint32_t n_prompt = plan.n_prompt_tokens();
      replica.step_us = load_.machine.base_us + load_.machine.decode_us * plan.n_decode +
                        (n_prompt > 0 ? load_.machine.prompt_us : 0) + load_.machine.prompt_token_us * n_prompt;
      replica.n_outputs = plan.n_outputs;
      replica.free_at = now_ + static_cast<Micros>(replica.step_us);
    }
    take_events(replica);
  }

  void end_step(Replica& replica) {
    const auto epoch = book_.room_epoch();
    picks_.clear();
    for (std::uint32_t i = 0; i < replica.n_outputs; ++i)
      picks_.push_back(static_cast<std::int32_t>(draw_.below(50'000)));
    replica.scheduler.commit(picks_, now_, replica.step_us);
    replica.free_at = kNever;
    replica.wake_at = now_;
    take_events(replica);
    if (book_.room_epoch() == epoch) return;
    // Requests on other replicas may wait for a quota that was freed on this one, so the idle replicas plan again.
    for (const auto& other : replicas_)
      if (other->free_at == kNever) other->wake_at = now_;
  }

  void take_events(Replica& replica) {
    for (const Event& e : replica.scheduler.events()) {
      User& user = users_[e.user];
      if (e.kind == EventKind::kAdmitted && e.is_first) {
        n_cached_ += e.cached_tokens;
        result_.n_waited += e.waited > 0;
      }
      if (e.kind == EventKind::kToken) {
        user.said.push_back(e.token);
        if (e.is_first) firsts_.push_back(1e-3 * static_cast<double>(now_ - user.asked_at));
      }
      if (e.kind != EventKind::kFinished) continue;
      if (e.reason != Finish::kLength) report("text", fmt::format("a request ended with {}", to_string(e.reason)));
      ++n_ended_;
      user.n_known = static_cast<std::uint32_t>(user.said.size()) - 1;  // the KV of the last token is not computed
      user.asks_at = thinks(load_.tenants[user.tenant]);
    }
    replica.scheduler.clear_events();
  }

  void check_tenants() {
    n_slots_.assign(book_.size(), 0);
    n_pages_.assign(book_.size(), 0);
    n_waiting_.assign(book_.size(), 0);
    for (const auto& replica : replicas_) {
      for (std::uint32_t i = 0; i < replica->scheduler.slots().size(); ++i) {
        const Request* r = replica->scheduler.in_slot(i);
        if (r == nullptr) continue;
        ++n_slots_[r->params.tenant];
        n_pages_[r->params.tenant] += r->n_charged;
      }
      replica->scheduler.queue().for_each([&](const Request& r) { ++n_waiting_[r.params.tenant]; });
    }
    for (TenantId id = 0; id < book_.size(); ++id) {
      const Tenant& t = book_[id];
      if (t.slots != n_slots_[id] || t.pages != n_pages_[id] || t.waiting != n_waiting_[id] ||
          t.slots > t.quota.max_concurrent_slots || t.pages > t.quota.max_kv_pages)
        report("quota",
               fmt::format("tenant {} has {} slots, {} pages, {} waiting; the book says {}, {}, {} of {} and {}", id,
                           n_slots_[id], n_pages_[id], n_waiting_[id], t.slots, t.pages, t.waiting,
                           t.quota.max_concurrent_slots, t.quota.max_kv_pages));
    }
  }

  const ReplicasLoad& load_;
  Draw draw_;
  TenantBook book_;
  std::vector<std::vector<std::vector<std::int32_t>>> systems_;  // index: tenant, then system prompt
  std::set<std::pair<TenantId, std::uint32_t>> used_systems_;
  std::vector<User> users_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<std::int32_t> picks_;
  std::vector<std::uint32_t> n_slots_, n_pages_, n_waiting_;  // scratch; index: tenant
  std::vector<double> firsts_;
  ReplicasResult result_;
  std::uint64_t n_events_ = 0, n_ended_ = 0, n_prompt_ = 0, n_cached_ = 0, n_best_ = 0;
  Micros now_ = 0;
};

}  // namespace

ReplicasResult run_replicas(const ReplicasLoad& load) {
  return Replicas(load).run();
}

}  // namespace zinc_rt::sched::sim

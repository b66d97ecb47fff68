#include "sched/sim/load.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sched/sim/mix.h"

namespace zinc_rt::sched::sim {
namespace {

double part_of(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())))];
}

class LoadRun {
 public:
  LoadRun(const Load& load, const Machine& machine, const Options& options)
      : load_(load), machine_(machine), options_(options), scheduler_(options, tenants_), draw_(7) {
    Quota quota;
    quota.max_concurrent_slots = options.n_slots;
    quota.max_kv_pages = options.n_pages;
    quota.decode_tokens_per_s = quota.prefill_tokens_per_s = 1e9;
    tenants_.add(quota, 0);
    tenants_.add(quota, 0);
  }

  LoadResult run() {
    if (load_.with_interactive) submit(kStream, Qos::kInteractive, 16, options_.max_context - 16);
    for (std::uint32_t i = 0; i < load_.n_clients; ++i) ask();
    if (load_.rate > 0) next_at_ = wait();
    while (n_ended_ < load_.n_requests) turn();
    LoadResult result;
    result.seconds = 1e-6 * static_cast<double>(now_);
    result.requests_per_s = load_.n_requests / result.seconds;
    result.tokens_per_s = n_tokens_ / result.seconds;
    result.generated_per_s = n_generated_ / result.seconds;
    result.first_p50_ms = part_of(firsts_, 0.5);
    result.first_p99_ms = part_of(firsts_, 0.99);
    result.gap_p50_ms = part_of(gaps_, 0.5);
    result.gap_p99_ms = part_of(gaps_, 0.99);
    result.interactive_gap_p99_ms = part_of(stream_gaps_, 0.99);
    result.good_part = static_cast<double>(n_good_) / load_.n_requests;
    return result;
  }

 private:
  static constexpr std::uint64_t kStream = UINT64_MAX;
  struct Client {
    Micros asked = 0, last = 0;
    std::uint32_t n_prompt = 0;
    bool is_good = true;
  };

  // Returns when the next request arrives: a random time after the last one.
  Micros wait() {
    const double u = (static_cast<double>(draw_.next() >> 11) + 1) / 9007199254740993.0;
    return next_at_ + static_cast<Micros>(-std::log(u) / load_.rate * 1e6);
  }

  void submit(std::uint64_t user, Qos qos, std::uint32_t n_prompt, std::uint32_t n_output) {
    RequestParams p;
    p.tenant = user == kStream ? 1 : 0;
    p.qos = qos;
    for (std::uint32_t i = 0; i < n_prompt; ++i) p.prompt.push_back(static_cast<std::int32_t>(draw_.below(50'000)));
    p.max_tokens = n_output;
    p.user = user;
    if (!scheduler_.submit(std::move(p), now_)) ++n_ended_;  // a refused request counts as ended but not as good
  }

  void ask() {
    if (n_asked_ == load_.n_requests) return;
    ++n_asked_;
    Client c;
    c.asked = now_;
    c.n_prompt = draw_.between(load_.prompt[0], load_.prompt[1]);
    const std::uint32_t n_output = draw_.between(load_.output[0], load_.output[1]);
    clients_.push_back(c);
    submit(clients_.size() - 1, Qos::kStandard, c.n_prompt, n_output);
  }

  void turn() {
    for (; load_.rate > 0 && next_at_ <= now_ && n_asked_ < load_.n_requests; next_at_ = wait()) ask();
    scheduler_.admit(now_);
    const StepPlan& plan = scheduler_.plan(now_);
    if (plan.empty()) {
      now_ = std::max(now_ + 1, std::min(plan.wake_at, load_.rate > 0 ? next_at_ : kNever));
      return;
    }
    const std::uint32_t n_prompt = plan.n_prompt_tokens();
    const double us = machine_.base_us + machine_.decode_us * plan.n_decode + (n_prompt > 0 ? machine_.prompt_us : 0) +
                      machine_.prompt_token_us * n_prompt;
    now_ += static_cast<Micros>(us);
    picks_.assign(plan.n_outputs, 7);
    scheduler_.commit(picks_, now_, us);
    events_.assign(scheduler_.events().begin(), scheduler_.events().end());
    scheduler_.clear_events();
    for (const Event& e : events_) take(e);
  }

  void take(const Event& e) {
    if (e.user == kStream) {
      if (e.kind != EventKind::kToken) return;
      if (stream_last_ > 0) stream_gaps_.push_back(1e-3 * static_cast<double>(now_ - stream_last_));
      stream_last_ = now_;
      return;
    }
    Client& c = clients_[e.user];
    if (e.kind == EventKind::kToken) {
      const double ms = 1e-3 * static_cast<double>(now_ - (e.is_first ? c.asked : c.last));
      (e.is_first ? firsts_ : gaps_).push_back(ms);
      c.is_good &= !e.is_first || ms <= kFirstMs;
      c.last = now_;
    } else if (e.kind == EventKind::kFinished) {
      n_generated_ += e.n_generated;
      n_tokens_ += c.n_prompt + e.n_generated;
      n_good_ += c.is_good;
      ++n_ended_;
      if (load_.rate == 0) ask();
    }
  }

  const Load& load_;
  const Machine& machine_;
  const Options& options_;
  TenantBook tenants_;
  Scheduler scheduler_;
  Draw draw_;
  std::vector<Client> clients_;
  std::vector<std::int32_t> picks_;
  std::vector<Event> events_;
  std::vector<double> firsts_, gaps_, stream_gaps_;
  double n_tokens_ = 0, n_generated_ = 0;
  std::uint32_t n_asked_ = 0, n_ended_ = 0, n_good_ = 0;
  Micros now_ = 0, next_at_ = 0, stream_last_ = 0;
};

}  // namespace

LoadResult run_load(const Load& load, const Machine& machine, const Options& options) {
  return LoadRun(load, machine, options).run();
}

double goodput(Load load, const Machine& machine, const Options& options, double good) {
  double best = 0;
  for (double step = 64; step >= 1; step /= 2)
    for (;;) {
      load.rate = best + step;
      const LoadResult result = run_load(load, machine, options);
      if (result.good_part < good || result.interactive_gap_p99_ms > kInteractiveGapMs) break;
      best = load.rate;
    }
  return best;
}

}  // namespace zinc_rt::sched::sim

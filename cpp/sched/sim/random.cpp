#include "sched/sim/random.h"

#include <algorithm>
#include <array>

#include "sched/sim/mix.h"

namespace zinc_rt::sched::sim {
namespace {

constexpr std::uint32_t kPage = kPageTokens;

void draw_options(Draw& d, Options& o) {
  o.n_slots = d.between(1, 8);
  o.max_context = kPage * d.between(2, 12);
  const std::uint32_t context_pages = o.max_context / kPage;
  o.n_pages = d.between(context_pages, std::max(context_pages + 1, context_pages * o.n_slots / (1 + d.below(3))));
  o.chunk_cap = d.between(std::max(8u, o.n_slots), 96);
  if (d.chance(30)) o.prefill_cap = d.between(1, 40);
  o.queue_cap = d.between(4, 40);
  o.prefix_cache = !d.chance(12);
  o.is_recurrent = d.chance(30);
  if (o.is_recurrent) o.n_checkpoints = d.below(2 * o.n_slots + 4);
  if (d.chance(15)) o.rope_limits = {d.between(8, o.max_context)};
  o.prefix_part = 0.1 * d.below(5);
  constexpr std::array<Micros, 3> kStarvation = {20'000, 200'000, 30'000'000};
  o.starvation = kStarvation[d.below(3)];
  o.slow_sink_steps = d.between(3, 60);
  constexpr std::array<Micros, 3> kTurns = {20'000, 60'000, 2'000'000};
  o.turn = kTurns[d.below(3)];
  for (Micros& us : o.turn_after) us = o.turn * (1 + d.below(8)) / 4;
}

Quota draw_quota(Draw& d, const Options& o) {
  Quota q;
  q.max_concurrent_slots = d.between(1, o.n_slots);
  q.max_kv_pages = d.chance(60) ? o.n_pages : d.between(1, o.n_pages);
  if (d.chance(25)) q.reserved_kv_pages = d.below(o.n_pages / 4 + 1);
  if (d.chance(15)) q.max_context_tokens = d.between(kPage, o.max_context);
  if (d.chance(25)) q.decode_tokens_per_s = d.between(20, 400);
  if (d.chance(25)) q.prefill_tokens_per_s = d.between(50, 4000);
  constexpr std::array<double, 4> kWeights = {0.5, 1, 1, 2};
  q.weight = kWeights[d.below(4)];
  if (d.chance(30)) q.isolation_group = d.below(2);
  return q;
}

EventLine draw_submit(Draw& d, const Scenario& s, std::uint32_t name) {
  EventLine e;
  e.request = name;
  e.tenant = s.tenants[d.below(static_cast<std::uint32_t>(s.tenants.size()))].name;
  SubmitLine& r = e.submit;
  r.qos = static_cast<Qos>(d.below(kQosCount));
  r.n_prompt = d.between(1, std::max(1u, s.options.max_context * (d.chance(20) ? 100 : 60) / 100));
  r.group = d.below(3);
  if (d.chance(70)) r.n_shared = d.chance(50) ? kPage * d.between(0, 4) : d.below(r.n_prompt + 1);
  r.seed = d.below(6);
  r.max_tokens = d.chance(80) ? d.between(1, 24) : d.between(1, 120);
  if (d.chance(30)) r.stop_after = d.between(1, 20);
  if (d.chance(8)) r.deadline_us = d.between(100, 200'000);
  if (name > 0 && d.chance(12)) r.after = d.below(name);
  return e;
}

// Returns an event that submits nothing, such as a cancel, about one of the first n_requests.
EventLine draw_other(Draw& d, const Scenario& s, std::uint32_t n_requests, bool with_faults) {
  EventLine e;
  e.request = d.below(std::max(1u, n_requests));
  e.tenant = s.tenants[d.below(static_cast<std::uint32_t>(s.tenants.size()))].name;
  e.quota = draw_quota(d, s.options);
  e.n_tokens = d.between(1, s.options.max_context);
  constexpr std::array<Act, 5> kPlain = {Act::kCancel, Act::kFlush, Act::kFlush, Act::kLease, Act::kEndLease};
  constexpr std::array<Act, 10> kFaulty = {Act::kCancel, Act::kFailSink, Act::kBlock, Act::kBlock,    Act::kUnblock,
                                           Act::kQuota,  Act::kFlush,    Act::kLease, Act::kEndLease, Act::kCancel};
  e.act = with_faults ? kFaulty[d.below(kFaulty.size())] : kPlain[d.below(kPlain.size())];
  if (with_faults && d.chance(1)) e.act = Act::kCancelAll;
  return e;
}

// Makes a scenario with at least about as many tenants as slots, and with requests of every class, weight and length up
// to many turns. There are enough pages for all, so a waiting request waits for a slot.
Scenario share_scenario(std::uint64_t seed) {
  Draw d(mix(seed, 0x5ba2e));
  Scenario s;
  Options& o = s.options;
  o.n_slots = d.between(1, 6);
  o.max_context = kPage * 32;
  o.chunk_cap = d.between(16, 256);
  o.queue_cap = 200;
  o.prefix_part = 0;
  o.n_pages = (o.n_slots + 2) * o.max_context / kPage;
  o.is_recurrent = d.chance(20);
  if (o.is_recurrent) o.n_checkpoints = d.below(2 * o.n_slots + 4);
  s.cost = {.base_us = 1.0 * d.between(200, 2000), .token_us = 1.0 * d.below(40), .jitter_percent = d.below(40)};
  s.cost.seed = seed;
  o.turn = static_cast<Micros>(s.cost.base_us) * d.between(5, 60);
  for (Micros& us : o.turn_after) us = o.turn * (1 + d.below(12)) / 4;
  o.starvation = o.turn * d.between(4, 40);
  const std::uint32_t n_tenants = d.between(2, 9), percent_long = d.below(101);
  constexpr std::array<double, 5> kWeights = {0.25, 0.5, 1, 2, 5};
  constexpr std::array<std::uint32_t, 3> kClasses = {1, 2, kQosCount};  // how many classes take part
  const std::uint32_t n_classes = kClasses[d.below(3)];
  for (std::uint32_t name = 0; name < n_tenants; ++name) {
    Quota q;
    q.max_concurrent_slots = d.chance(70) ? o.n_slots : d.between(1, o.n_slots);
    q.weight = d.chance(50) ? 1 : kWeights[d.below(5)];
    q.decode_tokens_per_s = q.prefill_tokens_per_s = 1e9;
    s.tenants.push_back({name, q});
  }
  const std::uint32_t gap = static_cast<std::uint32_t>(o.turn) * d.between(1, 12) / 4;
  const std::uint32_t n_requests = d.between(n_tenants, 60);
  for (std::uint32_t name = 0; name < n_requests; ++name) {
    EventLine e;
    e.request = name;
    e.tenant = d.below(n_tenants);
    e.at = name == 0 || d.chance(40) ? (name == 0 ? 0 : s.events.back().at) : s.events.back().at + d.below(gap);
    e.submit.qos = static_cast<Qos>(n_classes == 1 ? 1 : d.between(kQosCount - n_classes, kQosCount - 1));
    e.submit.n_prompt = d.between(1, d.chance(20) ? 200 : 30);
    e.submit.seed = name;
    e.submit.max_tokens = d.chance(percent_long) ? d.between(50, 300) : d.between(1, 30);
    s.events.push_back(e);
  }
  return s;
}

}  // namespace

Scenario random_scenario(std::uint64_t seed, const RandomOptions& options) {
  if (options.is_about_shares) return share_scenario(seed);
  Draw d(mix(seed, 0x5ced));
  Scenario s;
  draw_options(d, s.options);
  s.cost.base_us = d.between(50, 3000);
  s.cost.token_us = d.below(100);
  s.cost.context_us = d.chance(30) ? 0.1 * d.below(50) : 0;
  s.cost.jitter_percent = d.below(60);
  s.cost.seed = seed;
  // Drafts are drawn from a generator of their own. So a seed makes the same scenario with drafts and without.
  Draw drafts(mix(seed, 0xd4af));
  if (drafts.chance(50)) s.drafts = {drafts.between(1, kMostDrafts), drafts.below(101), drafts.chance(30), seed};
  s.options.runs_ahead = drafts.chance(60);
  const std::uint32_t n_tenants = d.between(1, 5);
  for (std::uint32_t name = 0; name < n_tenants; ++name) s.tenants.push_back({name, draw_quota(d, s.options)});
  // All reservations together do not cover all pages, as the engine demands. Later changes of reservations need not
  // fulfill this.
  for (auto& t : s.tenants) t.quota.reserved_kv_pages = std::min(t.quota.reserved_kv_pages, s.options.n_pages / 8);

  const std::uint32_t n_requests = d.between(3, 40), percent_other = options.with_faults ? 40 : 8;
  const std::uint32_t gap = d.below(d.chance(50) ? 2000 : 30'000) + 1;
  std::int64_t at = 0;
  for (std::uint32_t name = 0; name < n_requests;) {
    EventLine e = d.chance(percent_other) ? draw_other(d, s, name + 2, options.with_faults) : draw_submit(d, s, name++);
    if (!d.chance(30)) at += d.below(gap);
    e.at = at;
    s.events.push_back(e);
  }
  if (!options.with_faults) return s;
  if (d.chance(40)) s.options.fail_page_take = d.between(1, 200);
  for (std::uint32_t n = d.below(4); n > 0; --n) s.faults.push_back(d.between(1, 200));
  return s;
}

}  // namespace zinc_rt::sched::sim

// Clients that do everything that clients do, all at once, for as long as they are told to.
// Thread rule: a Load's counters may be read from any thread while run_client runs in many.
#pragma once

#include <unistd.h>

#include <fstream>

#include "engine_fixture.h"

namespace zinc_rt {

struct Load {
  std::atomic<std::uint64_t> length{0}, stop{0}, cancelled{0}, deadline{0}, too_slow{0}, sink_failed{0};
  std::atomic<std::uint64_t> dropped{0}, refused{0}, exhausted{0}, tokens{0}, wrong{0};
  std::uint64_t n_done() const {
    return length + stop + cancelled + deadline + too_slow + sink_failed + dropped + exhausted;
  }
  void count(const std::string& reason) {
    ++(reason == "length"            ? length
       : reason == "stop"            ? stop
       : reason == "cancelled"       ? cancelled
       : reason == "deadline"        ? deadline
       : reason == "client_too_slow" ? too_slow
       : reason == "sink_failed"     ? sink_failed
                                     : wrong);
  }
};

// Quota of tenant i: all classes, some in one group, some with reserved pages.
inline TenantQuota load_quota(std::size_t i) {
  TenantQuota quota;
  constexpr const char* kClasses[] = {"interactive", "standard", "batch", "standard"};
  quota.qos_class = kClasses[i % 4];
  quota.max_concurrent_slots = 2;
  quota.reserved_kv_pages = i % 4 == 1 ? 1 : 0;
  quota.isolation_group = i % 3 == 2 ? "group" : "";
  quota.decode_tokens_per_s = 1e6;
  quota.prefill_tokens_per_s = 1e6;
  return quota;
}

inline Request load_request(std::mt19937& rng) {
  const auto below = [&](std::size_t n) { return rng() % n; };
  auto ids = prompt(1 + below(40), static_cast<unsigned>(below(5)));  // of five beginnings
  const auto more = prompt(below(20), static_cast<unsigned>(rng()));
  ids.insert(ids.end(), more.begin(), more.end());
  auto request = token_request(ids, static_cast<std::uint32_t>(1 + below(40)));
  request.return_logits_hash = below(4) == 0;
  request.logprobs = below(6) == 0 ? 3 : 0;
  request.temperature = below(2) == 0 ? 0.8f : 0;
  request.repetition_penalty = below(4) == 0 ? 1.1f : 1;
  request.n = below(12) == 0 ? 3 : 1;
  if (below(10) == 0) request.deadline_ms = double(1 + below(30));
  if (below(5) == 0) request.stream_capacity = static_cast<std::uint32_t>(1 + below(3));
  if (below(6) == 0) request.stop = {"e", "th"};
  if (below(8) == 0) request.ignore_eos = false;
  return request;
}

// Reads to the end, cancels, goes away, or reads slowly.
inline void read_stream(Stream stream, std::mt19937& rng, Load& load) {
  const auto mood = rng() % 10;
  for (std::uint64_t n = 0;; ++n) {
    if (mood == 0 && n == rng() % 8) stream.cancel();
    if (mood == 1 && n == 3) return void(++load.dropped);
    if (mood == 2 && rng() % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(rng() % 12));
    const auto event = stream.next();
    if (!event) return void(++(event.error().code == StatusCode::kExhausted ? load.exhausted : load.wrong));
    if (!*event) break;
    load.tokens += (*event)->is_token ? 1 : 0;
  }
  load.count(stream.completion().finish_reason);
}

inline void run_client(const TestEngine& engine, unsigned seed, Tenant tenant, std::size_t tenant_index,
                       const std::atomic<bool>& stop, Load& load) {
  std::mt19937 rng(seed);
  const auto session = *tenant.session();
  while (!stop) {
    const auto what = rng() % 64;
    if (what == 0) static_cast<void>(tenant.flush_prefix_cache());
    if (what == 1) static_cast<void>(engine.core->stats());
    if (what == 2) load.wrong += tenant.set_quota(load_quota(tenant_index)) ? 0 : 1;
    if (what == 3) static_cast<void>(tenant.ledger());
    if (what == 4) {  // a lease: there may be no room for it
      const auto logits = engine.core->logits(*engine.core->find_model({}), prompt(20), LogitsRows::kLast, 0);
      load.wrong += logits || logits.error().code == StatusCode::kExhausted ? 0 : 1;
    }
    if (what == 5) {
      auto handle = session.submit(load_request(rng), make_callback_sink([](const StreamEvent&) {}, 4));
      if (handle && rng() % 2 == 0) handle->cancel();
      if (handle) load.wrong += handle->wait() ? 0 : 1, load.count(handle->completion().finish_reason);
    }
    auto stream = session.stream(load_request(rng));
    if (stream)
      read_stream(std::move(*stream), rng, load);
    else
      ++(stream.error().code == StatusCode::kExhausted ? load.refused : load.wrong);
  }
}

// Clients from the making to stop(), client i of tenant i % n_tenants. `engine` outlives it.
class Clients {
 public:
  Clients(const TestEngine& engine, unsigned n_clients, std::size_t n_tenants) : engine_(engine) {
    for (std::size_t i = 0; i < n_tenants; ++i)
      tenants_.push_back(engine.tenant("tenant " + std::to_string(i), load_quota(i)));
    for (unsigned i = 0; i < n_clients; ++i)
      threads_.emplace_back(
          [this, i, index = i % n_tenants] { run_client(engine_, i, tenants_[index], index, stop_, load_); });
  }
  ~Clients() { join(); }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  // Ends the load and expects of the engine what holds after any.
  void stop(std::uint64_t drain_ms) {
    join();
    EXPECT_TRUE(engine_.core->drain(drain_ms)) << to_json(engine_.core->stats());
    EXPECT_EQ(load_.wrong, 0u);
    EXPECT_GT(load_.length, 0u);
    expect_all_free(engine_);
  }
  const Load& load() const { return load_; }
  std::vector<Tenant>& tenants() { return tenants_; }

 private:
  void join() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }
  const TestEngine& engine_;
  Load load_;
  std::atomic<bool> stop_ = false;
  std::vector<Tenant> tenants_;
  std::vector<std::thread> threads_;
};

inline double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  statm >> total >> resident;
  return double(resident) * double(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace zinc_rt

// The load of `zinc-rt bench serve`: it decides which client sends which request when, and collects the results.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <queue>
#include <random>
#include <unordered_map>

#include "base/error.h"
#include "client/openai_client.h"
#include "tools/bench_serve.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

using Json = nlohmann::ordered_json;
using SteadyClock = std::chrono::steady_clock;

// Words of which prompts are made. In most vocabularies each word, with the space before it, is one token.
constexpr const char* kWords[] = {"time",    "people", "water",  "house",  "light",    "world", "night",  "music",
                                  "paper",   "river",  "stone",  "green",  "small",    "great", "under",  "after",
                                  "first",   "three",  "never",  "always", "think",    "place", "point",  "right",
                                  "where",   "every",  "found",  "still",  "learn",    "plant", "cover",  "state",
                                  "story",   "young",  "write",  "white",  "children", "begin", "almost", "carry",
                                  "country", "father", "mother", "school", "answer",   "table", "north",  "south"};

constexpr double kPauseAfterFailure_s = 0.1;  // how long a client in the closed loop waits after a failure
constexpr double kEarlyDrop_s = 0.5;          // half of the clients that hang up do so within this time

volatile std::sig_atomic_t serve_interrupted = 0;

std::string words(std::mt19937_64& random, std::uint32_t n) {
  std::uniform_int_distribution<std::size_t> any(0, std::size(kWords) - 1);
  std::string out;
  for (std::uint32_t i = 0; i < n; ++i) out += std::string(i == 0 ? "" : " ") + kWords[any(random)];
  return out;
}

std::mt19937_64 random_of(std::uint64_t seed, std::uint64_t tenant, std::uint64_t index) {
  std::seed_seq numbers{seed, seed >> 32, tenant, index, index >> 32};
  return std::mt19937_64(numbers);
}

std::uint32_t pick(std::mt19937_64& random, const TokenRange& range) {
  return std::uniform_int_distribution(range.low, range.high)(random);
}

bool happens(std::mt19937_64& random, double part) {
  return std::uniform_real_distribution<>(0, 1)(random) < part;
}

// A request that is running. The client's thread fills the sample until the request has ended.
struct Flight {
  ServeSample sample;
  std::uint32_t drop_at_piece = UINT32_MAX;
  std::shared_ptr<client::HttpHandle> handle;
};

struct PromptLengths {
  double fixed = 0;            // tokens of a prompt without any words, such as the tokens of a template
  double tokens_per_word = 0;  // 0: not known

  std::uint32_t words_for(double tokens) const {
    return static_cast<std::uint32_t>(std::lround(tokens_per_word > 0 ? tokens / tokens_per_word : tokens));
  }
};

class ServerLoad {
 public:
  static Result<std::unique_ptr<ServerLoad>> open(ServeBenchOptions options) {
    ZRT_TRY(auto server, client::api_server(options.url, ""));
    ZRT_TRY(auto http, client::HttpClient::open(server.url));
    if (options.model.empty()) {
      auto asker = server;
      asker.key = options.tenants.front().key;
      ZRT_TRY(options.model, client::first_model(*http, asker));
    }
    auto load = std::unique_ptr<ServerLoad>(new ServerLoad(std::move(options), std::move(server)));
    load->http_ = std::move(http);
    ZRT_CHECK_OK(load->learn_lengths());
    return load;
  }

  ServeBenchResult run() {
    start_ = SteadyClock::now();
    for (std::uint32_t t = 0; t < options_.tenants.size(); ++t) {
      const auto& tenant = options_.tenants[t];
      if (tenant.rate > 0)
        plan_arrival(t, tenant.start_s);
      else
        for (std::uint32_t i = 0; i < tenant.clients; ++i) plan_send(t, tenant.start_s);
    }
    serve_interrupted = 0;
    const auto before = std::signal(SIGINT, [](int) { serve_interrupted = 1; });
    const StatusLine line(options_.progress);
    while (n_planned_ > 0 || !flights_.empty()) {
      const auto ended = wait();
      for (const auto& id : ended) land(id);
      if (serve_interrupted != 0) cut_short();
      while (!actions_.empty() && actions_.top().at_s <= now_s()) {
        const auto action = actions_.top();
        actions_.pop();
        act(action);
      }
      show(line);
    }
    std::signal(SIGINT, before);
    result_.options = options_;
    result_.tokens_per_word = lengths_.tokens_per_word;
    for (const auto& sample : result_.samples) result_.wall_s = std::max(result_.wall_s, sample.end_s);
    return std::move(result_);
  }

 private:
  struct Action {
    double at_s;
    std::uint64_t flight;  // the request to drop; 0: send a request
    std::uint32_t tenant;
    bool operator<(const Action& other) const { return at_s > other.at_s; }
  };

  ServerLoad(ServeBenchOptions options, client::ApiServer server)
      : options_(std::move(options)), server_(std::move(server)), tenants_(options_.tenants.size()) {
    for (std::uint32_t t = 0; t < tenants_.size(); ++t) tenants_[t].arrivals = random_of(options_.seed, t, UINT64_MAX);
  }

  double now_s() const { return std::chrono::duration<double>(SteadyClock::now() - start_).count(); }

  // Measures with two requests of different lengths how many tokens a word has on this server.
  Status learn_lengths() {
    constexpr std::uint32_t kShort = 8, kLong = 40;
    auto random = random_of(options_.seed, UINT64_MAX, 0);
    double tokens[2] = {0, 0};
    for (const bool is_long : {false, true}) {
      const auto end = ask_once(words(random, is_long ? kLong : kShort));
      if (!end.error.empty()) return fail(StatusCode::kUnavailable, "{}", end.error);
      if (end.usage) tokens[is_long] = end.usage->prompt_tokens;
    }
    if (tokens[0] <= 0 || tokens[1] <= tokens[0]) return {};
    lengths_.tokens_per_word = (tokens[1] - tokens[0]) / (kLong - kShort);
    lengths_.fixed = std::max(0.0, tokens[0] - kShort * lengths_.tokens_per_word);
    return {};
  }

  client::ApiEnd ask_once(const std::string& text) {
    auto server = server_;
    server.key = options_.tenants.front().key;
    std::promise<client::ApiEnd> promise;
    client::ApiEvents events;
    events.on_end = [&](const client::ApiEnd& end) { promise.set_value(end); };
    client::stream(*http_, server, body("", text, 1, 1), options_.timeout_s, std::move(events));
    return promise.get_future().get();
  }

  Json body(const std::string& prefix, const std::string& text, std::uint32_t max_tokens, std::uint64_t seed) const {
    Json out{{"model", options_.model}};
    if (options_.api == "chat") {
      auto& messages = out["messages"] = Json::array();
      if (!prefix.empty()) messages.push_back({{"role", "system"}, {"content", prefix}});
      messages.push_back({{"role", "user"}, {"content", text}});
    } else {
      out["prompt"] = prefix.empty() ? text : prefix + " " + text;
    }
    out["max_tokens"] = max_tokens;
    out["seed"] = seed & 0x7fffffff;
    if (options_.ignore_eos) out["ignore_eos"] = true;
    out.update(options_.extra_body);
    return out;
  }

  // Schedules a request of tenant t for the time at_s, if the tenant has a request left to send.
  void plan_send(std::uint32_t t, double at_s) {
    const auto& tenant = options_.tenants[t];
    if (tenant.n_requests > 0 && tenants_[t].n_planned >= tenant.n_requests) return;
    if ((options_.duration_s > 0 && at_s >= options_.duration_s) || result_.is_cut_short) return;
    ++tenants_[t].n_planned;
    ++n_planned_;
    actions_.push({at_s, 0, t});
  }
  void plan_arrival(std::uint32_t t, double after_s) {
    plan_send(t, after_s + std::exponential_distribution<>(options_.tenants[t].rate)(tenants_[t].arrivals));
  }

  void act(const Action& action) {
    if (action.flight != 0) {
      if (const auto it = flights_.find(action.flight); it != flights_.end()) it->second->handle->cancel();
      return;
    }
    --n_planned_;
    send(action.tenant, action.at_s);
    if (options_.tenants[action.tenant].rate > 0) plan_arrival(action.tenant, action.at_s);
  }

  void send(std::uint32_t t, double at_s) {
    const auto& tenant = options_.tenants[t];
    const auto index = tenants_[t].n_sent++;
    auto random = random_of(options_.seed, t, index);
    const auto n_prompt = pick(random, tenant.prompt), n_output = pick(random, tenant.output);
    std::string prefix;
    if (options_.shared_prefix > 0) {
      const bool is_shared = happens(random, options_.shared_part);
      auto common = random_of(options_.seed, UINT64_MAX, 1);
      prefix = words(is_shared ? common : random, lengths_.words_for(options_.shared_prefix));
    }
    const auto text = words(random, std::max(1u, lengths_.words_for(std::max(0.0, n_prompt - lengths_.fixed))));
    const auto id = ++last_flight_;
    auto flight = std::make_shared<Flight>();
    flight->sample.tenant = t;
    flight->sample.asked_s = at_s;
    if (happens(random, options_.drop_part)) {
      if (happens(random, 0.5))
        actions_.push({at_s + std::uniform_real_distribution<>(0, kEarlyDrop_s)(random), id, t});
      else
        flight->drop_at_piece = pick(random, {1, n_output});
    }
    client::ApiEvents events;
    events.on_piece = [this, flight](const client::ApiPiece&) {
      flight->sample.pieces_s.push_back(now_s());
      return flight->sample.pieces_s.size() < flight->drop_at_piece;
    };
    events.on_end = [this, flight, id](const client::ApiEnd& end) {
      judge(flight->sample, end);
      const std::lock_guard lock(mutex_);
      ended_.push_back(id);
      has_ended_.notify_one();
    };
    flights_[id] = flight;
    auto server = server_;
    server.key = tenant.key;
    flight->handle =
        client::stream(*http_, server, body(prefix, text, n_output, index + 1), options_.timeout_s, std::move(events));
  }

  void judge(ServeSample& sample, const client::ApiEnd& end) const {
    using client::HttpEnd;
    sample.end_s = now_s();
    sample.output_tokens = static_cast<std::uint32_t>(sample.pieces_s.size());
    if (end.usage) {
      sample.prompt_tokens = end.usage->prompt_tokens;
      sample.cached_tokens = end.usage->cached_tokens;
      sample.output_tokens = end.usage->completion_tokens;
    }
    sample.words = end.error;
    sample.how = end.error.empty() ? ServeSample::kOk : ServeSample::kFailed;
    switch (end.kind) {
      case HttpEnd::kWhole: sample.status = std::to_string(end.status); break;
      case HttpEnd::kCancelled:
        sample.status = end.error.empty() ? "hung up" : "error in the answer";
        if (end.error.empty()) sample.how = ServeSample::kDropped;
        break;
      case HttpEnd::kNoConnect: sample.status = "no connection"; break;
      case HttpEnd::kTimeout: sample.status = "timeout"; break;
      case HttpEnd::kIncomplete: sample.status = "cut off"; break;
    }
    if (sample.status == "200" && sample.how == ServeSample::kFailed) sample.status = "error in the answer";
  }

  std::vector<std::uint64_t> wait() {
    std::unique_lock lock(mutex_);
    const double until_s = std::min(now_s() + 0.1, actions_.empty() ? 1e300 : actions_.top().at_s);
    const auto until =
        start_ + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(until_s));
    has_ended_.wait_until(lock, until, [&] { return !ended_.empty(); });
    return std::exchange(ended_, {});
  }

  void land(std::uint64_t id) {
    const auto it = flights_.find(id);
    const auto t = it->second->sample.tenant;
    const bool is_failed = it->second->sample.how == ServeSample::kFailed;
    n_failed_ += is_failed;
    n_tokens_ += it->second->sample.output_tokens;
    result_.samples.push_back(std::move(it->second->sample));
    flights_.erase(it);
    if (options_.tenants[t].rate <= 0) plan_send(t, now_s() + (is_failed ? kPauseAfterFailure_s : 0));
  }

  void cut_short() {
    if (std::exchange(result_.is_cut_short, true)) return;
    actions_ = {};
    n_planned_ = 0;
    for (const auto& [id, flight] : flights_) flight->handle->cancel();
  }

  // Shows progress, such as: [######........] 12 s, 40 under way, 120 ended, 2 failed, 310 tokens/s
  void show(const StatusLine& line) {
    const double now = now_s();
    if (now - shown_s_ < 0.5) return;
    shown_s_ = now;
    double asked = 0;
    for (const auto& tenant : options_.tenants) asked += tenant.n_requests;
    double part = options_.duration_s > 0 ? now / options_.duration_s : 0;
    if (asked > 0) part = std::max(part, static_cast<double>(result_.samples.size()) / asked);
    constexpr std::size_t kWidth = 20;
    const auto filled = static_cast<std::size_t>(std::min(part, 1.0) * kWidth);
    line.show(fmt::format("[{}{}] {:.0f} s, {} under way, {} ended, {} failed, {:.0f} tokens/s",
                          std::string(filled, '#'), std::string(kWidth - filled, '.'), now, flights_.size(),
                          result_.samples.size(), n_failed_, static_cast<double>(n_tokens_) / now));
  }

  struct TenantState {
    std::mt19937_64 arrivals;
    std::uint32_t n_planned = 0, n_sent = 0;
  };

  ServeBenchOptions options_;
  const client::ApiServer server_;
  PromptLengths lengths_;
  std::vector<TenantState> tenants_;
  std::priority_queue<Action> actions_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Flight>> flights_;
  std::uint64_t last_flight_ = 0, n_planned_ = 0, n_failed_ = 0, n_tokens_ = 0;
  double shown_s_ = 0;
  SteadyClock::time_point start_;
  ServeBenchResult result_;
  std::mutex mutex_;
  std::condition_variable has_ended_;
  std::vector<std::uint64_t> ended_;
  std::unique_ptr<client::HttpClient> http_;  // declared last, because its thread uses the members above
};

}  // namespace

Result<ServeBenchResult> measure_server(ServeBenchOptions options) {
  ZRT_TRY(const auto load, ServerLoad::open(std::move(options)));
  return load->run();
}

}  // namespace zinc_rt::tools

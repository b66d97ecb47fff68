// The load of `zinc-rt bench`: it runs requests of random token ids through the engine. The time of a token is when the
// step that generated it ended.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>

#include "base/error.h"
#include "base/options.h"
#include "base/thread_pool.h"
#include "tools/bench.h"

namespace zinc_rt::tools {
namespace {

// Moments lists when the steps ended that generated a stream's tokens, in microseconds.
using Moments = std::vector<std::uint64_t>;

// A repetition of the context sweep has at most this many tokens, so that the context hardly grows.
constexpr std::uint32_t kWindow = 32;
// How many tokens at the start of a context sweep are not timed. The first step at a new depth builds its launches
// (T-CUDA: 3 to 8 ms, once for histories of up to 1,024, 4,096, 16,384 and 65,536 tokens).
constexpr std::uint32_t kWarmTokens = 4;

double seconds_between(std::uint64_t from, std::uint64_t to) {
  return static_cast<double>(std::max<std::uint64_t>(to - from, 1)) * 1e-6;
}

// Records when each token was generated. Nobody reads its events, because a reader would take processor time from the
// engine.
class MomentSink final : public Sink {
 public:
  explicit MomentSink(std::size_t n_tokens) { moments_.reserve(n_tokens); }
  SinkResult push(const StreamEvent& event) override {
    if (event.is_token) moments_.push_back(event.time_us);
    return SinkResult::kTaken;
  }
  void end(std::uint32_t) override {}
  // Returns the times. REQUIRES: the request has ended.
  const Moments& moments() const { return moments_; }

 private:
  Moments moments_;
};

struct LoadRun {
  std::vector<Moments> streams;
  std::vector<std::vector<std::int32_t>> token_ids;  // index: stream
  // For the first stream: the seconds from the call to the end of the step that generated its first token.
  double prefill_s = 0;
  std::vector<std::string> clamps;
};

// Returns the tokens per second of all streams together while all of them decode. This is the time from the first token
// of the last stream to the last token of the first stream.
Result<double> decode_rate(const LoadRun& run) {
  auto from = run.streams[0].front(), to = run.streams[0].back();
  for (const Moments& stream : run.streams) {
    from = std::max(from, stream.front());
    to = std::min(to, stream.back());
  }
  std::int64_t n = 0;
  for (const Moments& stream : run.streams)
    n += std::ranges::count_if(stream, [&](auto moment) { return moment > from && moment <= to; });
  if (n == 0)
    return fail(StatusCode::kInvalidArgument, "[bench] {} streams were never decoding at once; give a larger --gen",
                run.streams.size());
  return static_cast<double>(n) / seconds_between(from, to);
}

class Load {
 public:
  static Result<Load> open(BenchOptions& o) {
    const auto& e = o.model.engine;
    ZRT_TRY(auto engine, open_engine(o.model));
    TenantQuota quota;
    quota.qos_class = "batch";
    quota.max_concurrent_slots = e.max_slots;
    quota.max_kv_pages = quota.max_context_tokens = 1u << 30;
    quota.decode_tokens_per_s = quota.prefill_tokens_per_s = 1e9;
    ZRT_TRY(auto tenant, engine.tenant("bench", quota));
    ZRT_TRY(auto session, tenant.session());
    return Load(std::move(engine), std::move(session), o.seed);
  }

  // Runs n_streams requests at the same time until each has generated `gen` tokens. Guesses are off, because models
  // with random weights repeat themselves.
  Result<LoadRun> run(std::uint32_t n_streams, std::uint32_t prompt, std::uint32_t gen) {
    requests_.assign(n_streams, {});
    for (Request& request : requests_) {
      auto& ids = request.token_ids.emplace(prompt);
      for (auto& id : ids) id = any_(random_);
      request.max_tokens = gen;
      request.ignore_eos = true;
      request.speculate = "off";
    }
    return run_requests(gen);
  }

  // Runs the requests of the last run once more, with guesses. The guesses are the tokens of the last run, but each is
  // replaced by a random token with probability 1 - right.
  Result<LoadRun> run_again(const LoadRun& before, double right) {
    std::bernoulli_distribution is_right(right);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      requests_[i].speculate.clear();
      requests_[i].prediction_token_ids = before.token_ids[i];
      for (auto& id : requests_[i].prediction_token_ids)
        if (!is_right(random_)) id = any_(random_);
    }
    ZRT_TRY(auto again, run_requests(requests_[0].max_tokens));
    if (again.token_ids != before.token_ids) return fail(StatusCode::kInternal, "[bench] guesses changed a token");
    return again;
  }

  std::uint64_t n_steps() const { return engine_.stats().total.steps; }
  const Engine& engine() const { return engine_; }

 private:
  Load(Engine engine, Session session, std::uint64_t seed)
      : engine_(std::move(engine)), session_(std::move(session)), random_(seed) {
    any_ = std::uniform_int_distribution<std::int32_t>(0, static_cast<std::int32_t>(engine_.vocab_size()) - 1);
  }

  Result<LoadRun> run_requests(std::uint32_t gen) {
    const auto n_streams = static_cast<std::uint32_t>(requests_.size());
    LoadRun run;
    std::vector<std::shared_ptr<MomentSink>> sinks;
    std::vector<RequestHandle> handles;
    for (std::uint32_t i = 0; i < n_streams; ++i) sinks.push_back(std::make_shared<MomentSink>(gen));
    for (std::uint32_t i = 0; i < n_streams; ++i) {
      ZRT_TRY(auto handle, session_.submit(requests_[i], sinks[i]));
      handles.push_back(std::move(handle));
    }
    for (std::uint32_t i = 0; i < n_streams; ++i) {
      ZRT_CHECK_OK(handles[i].wait());
      const auto completion = handles[i].completion();
      if (sinks[i]->moments().size() != gen)
        return fail(StatusCode::kInternal, "[bench] a request of {} tokens made {} and ended as \"{}\"", gen,
                    sinks[i]->moments().size(), completion.finish_reason);
      run.streams.push_back(sinks[i]->moments());
      run.token_ids.push_back(completion.token_ids);
      if (i == 0) run.prefill_s = completion.timings.prefill_ms * 1e-3;
      for (const auto& clamp : completion.timings.clamps)
        if (std::ranges::find(run.clamps, clamp) == run.clamps.end()) run.clamps.push_back(clamp);
    }
    return run;
  }

  Engine engine_;
  Session session_;
  std::mt19937_64 random_;
  std::uniform_int_distribution<std::int32_t> any_;
  std::vector<Request> requests_;  // the requests of the last run
};

bool wants(const BenchOptions& o, BenchPhase phase) {
  return o.only.empty() || o.only == to_string(phase);
}

std::vector<BenchRow> planned_rows(const BenchOptions& o, std::uint32_t max_context) {
  std::vector<BenchRow> rows;
  if (wants(o, BenchPhase::kPrefill)) rows.push_back({BenchPhase::kPrefill, 1, o.prompt, 0, {}, 0, {}});
  if (wants(o, BenchPhase::kDecode)) rows.push_back({BenchPhase::kDecode, 1, o.gen, kShortPrompt, {}, 0, {}});
  for (const auto n : o.batch) rows.push_back({BenchPhase::kBatch, n, o.gen, o.depth, {}, 0, {}});
  // Each context of --context becomes a row. A context that is too long for the model is shortened so that the timed
  // tokens still fit.
  const std::uint32_t window = std::min(o.gen, kWindow), all = kWarmTokens + o.reps * window + 1;
  for (const auto wanted : o.context) {
    const std::uint32_t context = std::min(wanted, max_context > all ? max_context - all : 1);
    if (rows.empty() || rows.back().phase != BenchPhase::kContext || rows.back().context != context)
      rows.push_back({BenchPhase::kContext, 1, window, context, {}, 0, {}});
  }
  return rows;
}

// Sizes the engine for this run: enough slots and pages for the options, and no prefix cache.
void size_engine(BenchOptions& o) {
  auto& e = o.model.engine;
  if (!wants(o, BenchPhase::kBatch)) o.batch.clear();
  if (!wants(o, BenchPhase::kContext)) o.context.clear();
  e.prefix_cache = false;
  const auto pages = [](std::uint32_t tokens) { return tokens / 16 + 2; };
  std::uint32_t most = pages(o.prompt + 1);
  for (const auto n : o.batch) most = std::max(most, n * pages(o.depth + o.gen));
  for (const auto n : o.context) most = std::max(most, pages(n + kWarmTokens + o.reps * std::min(o.gen, kWindow) + 1));
  if (e.kv_pages == 0) e.kv_pages = most;
  for (const auto n : o.batch) e.max_slots = std::max(e.max_slots, n);
}

Status repeat_row(Load& load, BenchRow& row, std::optional<double> right, BenchResult& result) {
  LoadRun run;
  if (row.phase == BenchPhase::kPrefill) {
    const std::uint64_t before = load.n_steps();
    ZRT_TRY(run, load.run(1, row.n_tokens, 1));
    row.n_steps = load.n_steps() - before;
    row.tokens_per_s.values.push_back(row.n_tokens / std::max(run.prefill_s, 1e-6));
  } else {
    // On a busy machine the first short stream may end before the last stream begins. Such a run cannot be measured and
    // is repeated.
    constexpr int kTries = 20;
    Result<double> rate = 0.0;
    for (int i = 0; i < kTries; ++i) {
      // The first token is picked at the end of the prompt, so only the tokens after it are timed.
      ZRT_TRY(run, load.run(row.n_streams, row.context, row.n_tokens + 1));
      rate = decode_rate(run);
      if (rate) break;
    }
    ZRT_CHECK_OK(rate);
    if (right) {
      row.without_guesses.values.push_back(*rate);
      ZRT_TRY(run, load.run_again(run, *right));
      rate = decode_rate(run);
      ZRT_CHECK_OK(rate);
    }
    row.tokens_per_s.values.push_back(*rate);
  }
  for (const auto& clamp : run.clamps)
    if (std::ranges::find(result.clamps, clamp) == result.clamps.end()) result.clamps.push_back(clamp);
  return {};
}

// Measures decoding at a long context. The context is filled once. The repetitions are consecutive parts of one
// generation, after kWarmTokens tokens that are not timed.
Status measure_context(Load& load, BenchRow& row, std::uint32_t reps) {
  ZRT_TRY(const auto run, load.run(1, row.context, kWarmTokens + reps * row.n_tokens + 1));
  for (std::uint32_t rep = 0; rep < reps; ++rep) {
    const auto moments = std::span(run.streams[0]).subspan(kWarmTokens);
    const double s = seconds_between(moments[rep * row.n_tokens], moments[(rep + 1) * row.n_tokens]);
    row.tokens_per_s.values.push_back(row.n_tokens / s);
  }
  return {};
}

}  // namespace

Result<BenchResult> measure_engine(BenchOptions& o) {
  size_engine(o);
  ZRT_TRY(auto load, Load::open(o));
  BenchResult result;
  result.card = nlohmann::ordered_json::parse(to_json(*load.engine().model_card()));
  result.plan = nlohmann::ordered_json::parse(to_json(*load.engine().memory_plan()));
  result.kernels = o.model.engine.cpu_kernels;
  if (result.kernels.empty()) result.kernels = options::get("ZINC_RT_CPU_KERNELS");
  result.n_threads = o.model.engine.threads;
  if (result.n_threads == 0) {
    ZRT_TRY(const auto threads, options::get_int("ZINC_RT_CPU_WORKERS", 0, 1024));
    result.n_threads = threads > 0 ? static_cast<int>(threads) : usable_threads();
  }
  result.n_reps = o.reps;
  result.rows = planned_rows(o, result.plan["max_context"]);
  const StatusLine status(o.model.progress);
  status.show("warming up");
  ZRT_CHECK_OK(load.run(1, std::min(o.prompt, 64u), 8));
  // Each repetition measures all rows, so that other activity of the machine affects all rows alike.
  for (std::uint32_t rep = 0; rep < o.reps; ++rep)
    for (BenchRow& row : result.rows) {
      if (row.phase == BenchPhase::kContext) continue;
      status.show(
          fmt::format("repetition {} of {}: {}, {} streams", rep + 1, o.reps, to_string(row.phase), row.n_streams));
      ZRT_CHECK_OK(repeat_row(load, row, o.guess_right, result));
    }
  for (BenchRow& row : result.rows) {
    if (row.phase != BenchPhase::kContext) continue;
    status.show(fmt::format("context of {} tokens", row.context));
    ZRT_CHECK_OK(measure_context(load, row, o.reps));
  }
  return result;
}

}  // namespace zinc_rt::tools

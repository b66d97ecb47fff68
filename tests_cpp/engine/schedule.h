// Random loads on random engines, and the check that no request can tell that it was not alone: each logit row it was
// made from, and each token, has the bits of the same request in an engine of its own.
// Thread rule: one thread drives a Family and its schedules.
#pragma once

#include <bit>
#include <map>
#include <ostream>
#include <set>

#include "engine_fixture.h"

namespace zinc_rt {

// What the schedules of a run have seen; a property that was never put to the test holds for nothing.
struct Seen {
  std::uint64_t schedules = 0, requests = 0, tokens = 0;
  std::uint64_t finished = 0, stopped = 0, cancelled = 0, late = 0, too_slow = 0, failed = 0, out_of_pages = 0;
  std::uint64_t preemptions = 0, evictions = 0, warm_tokens = 0, page_copies = 0, restores = 0, faults = 0;
  std::uint64_t variant_changes = 0, biased = 0, banned = 0, scored = 0;
  std::uint64_t masked = 0, drafts = 0, accepted_drafts = 0, steps_ahead = 0;
  std::uint64_t draft_model_steps = 0, failed_draft_model_steps = 0;
  bool takes_guesses = false, runs_ahead = false;  // whether the model on this tier does
  void print(std::ostream& out, const std::string& family) const {
    out << family << ": " << schedules << " schedules, " << requests << " requests (" << finished
        << " to their length, " << stopped << " stopped, " << cancelled << " cancelled, " << late
        << " past their deadline, " << too_slow << " too slow, " << failed << " by " << faults << " faults, "
        << out_of_pages << " out of pages), " << tokens << " tokens; " << preemptions << " preemptions, " << evictions
        << " evictions, " << warm_tokens << " cached tokens, " << page_copies << " page copies, " << restores
        << " restores, " << variant_changes << " changes of the position encoding; " << biased << " with a bias, "
        << banned << " with banned tokens, " << masked << " with a grammar, " << scored << " prompts scored; " << drafts
        << " tokens guessed, " << accepted_drafts << " of them right; " << steps_ahead << " steps ahead; "
        << draft_model_steps << " steps of a draft model, " << failed_draft_model_steps << " failed" << std::endl;
  }
};

// By name of the model; made once.
struct FamilyCase {
  std::string model;
  std::uint32_t max_context;
  std::size_t shortest, longest;  // prompts
  std::string kv_dtype = "f16";
  std::uint32_t n_devices = 1;
  // Of the engines with many requests; what a request gives alone is T-CPU's.
  Opener opener = open_on_ring;
  std::uint32_t max_slots = 8;
  // The model that guesses; empty: none. A model with a block for multi-token prediction has that block for itself.
  std::string draft = {};
};

// A model and requests to it with what each gives alone.
class Family {
 public:
  Family(const FamilyCase& c, std::size_t n_cases)
      : model(c.model),
        kv_dtype(c.kv_dtype),
        max_context(c.max_context),
        n_devices(c.n_devices),
        opener(c.opener),
        max_slots(c.max_slots),
        draft(c.draft) {
    const std::size_t shortest_prompt = c.shortest, longest_prompt = c.longest;
    std::mt19937 rng(99);
    const auto below = [&](std::size_t n) { return rng() % n; };
    std::vector<std::vector<std::int32_t>> beginnings;
    for (const std::size_t n : {std::size_t{16}, std::size_t{37}, shortest_prompt + 20})
      beginnings.push_back(prompt(n, static_cast<unsigned>(rng())));
    while (cases_.size() < n_cases && !::testing::Test::HasFatalFailure()) {
      std::vector<std::int32_t> ids;
      if (cases_.size() > 3 && below(3) == 0) {  // a further turn of a conversation
        const Case& before = cases_[below(cases_.size())];
        ids = *before.request.token_ids;
        const auto& said = before.alone[0].token_ids;
        ids.insert(ids.end(), said.begin(), said.begin() + std::ptrdiff_t(1 + below(said.size())));
      } else if (below(4) > 0) {
        ids = beginnings[below(beginnings.size())];
        if (below(2) == 0) ids.resize(1 + below(ids.size()));
      }
      const std::size_t n =
          std::max(ids.size() + 1 + below(12), shortest_prompt + below(longest_prompt - shortest_prompt));
      const auto more = prompt(n > ids.size() ? n - ids.size() : 0, static_cast<unsigned>(rng()));
      ids.insert(ids.end(), more.begin(), more.end());
      if (ids.size() > longest_prompt) ids.resize(longest_prompt);
      Case c;
      const auto most = static_cast<std::uint32_t>(8 + below(33));
      c.request = token_request(ids, std::min<std::uint32_t>(most, max_context - std::uint32_t(ids.size())));
      c.request.n = below(8) == 0 ? 2 : 1;
      c.request.seed = rng();
      if (below(2) == 0) {
        c.request.temperature = 0.5f + 0.1f * float(below(10));
        c.request.top_k = below(2) == 0 ? 0 : 40;
        c.request.top_p = below(2) == 0 ? 1 : 0.9f;
        c.request.min_p = below(3) == 0 ? 0.02f : 0;
      }
      if (below(3) == 0) {
        c.request.repetition_penalty = 1.2f;
        c.request.presence_penalty = 0.3f;
        c.request.frequency_penalty = 0.2f;
      }
      if (below(4) == 0) c.request.typical_p = 0.8f;
      for (std::size_t i = below(3) == 0 ? 60 : 0; i > 0; --i)
        c.request.logit_bias[static_cast<std::int32_t>(below(300))] = float(below(400)) / 100 - 2;
      if (below(4) == 0) {  // banned all the time
        for (int i = 0; i < 60; ++i) c.request.stop_token_ids.push_back(static_cast<std::int32_t>(below(300)));
        c.request.min_tokens = c.request.max_tokens;
      }
      if (c.request.min_tokens == 0 && below(4) == 0) {  // a text that is longer than any answer, and partly forced
        c.request.output_format = {
            OutputFormat::Kind::kRegex, R"((\{"name": "[a-z ]{1,4}", "n": [0-9]{1,3}\}, ){40})", {}};
        c.request.ignore_eos = false;
      }
      run_alone(c);
      cases_.push_back(std::move(c));
    }
  }

  struct Case {
    Request request;
    std::vector<Completion> alone;  // by index of n
  };
  const Case& pick(std::mt19937& rng) const { return cases_[rng() % cases_.size()]; }
  // Picks among the cases whose tokens the device picks without the host.
  const Case& pick_simple(std::mt19937& rng) const {
    for (;;) {
      const Case& c = pick(rng);
      const Request& r = c.request;
      if (r.repetition_penalty == 1 && r.logit_bias.empty() && r.min_tokens == 0 &&
          r.output_format.kind != OutputFormat::Kind::kRegex)
        return c;
    }
  }
  std::uint32_t limit() const { return limit_; }

  const std::string model, kv_dtype;
  const std::uint32_t max_context;
  // Of the engines with many requests.
  const std::uint32_t n_devices;
  const Opener opener;
  const std::uint32_t max_slots;
  const std::string draft;

 private:
  // In a new engine of one slot, in the largest chunks, with nothing cached.
  void run_alone(Case& c) {
    for (std::uint32_t i = 0; i < c.request.n; ++i) {
      auto options = small_options();
      options.max_slots = 1;
      options.kv_type = find_kv_type(kv_dtype);
      options.max_context = max_context;
      EngineOptions engine_options;
      engine_options.prefix_cache = false;
      const auto engine = start_engine(model, options, engine_options);
      if (const auto& limits = engine.core->find_model({})->info().rope_limits; !limits.empty()) limit_ = limits[0];
      Request request = c.request;
      request.n = 1;
      request.seed = *request.seed + i * 0x9E3779B97F4A7C15u;
      request.prompt_logprobs = 2;
      auto result = engine.session().generate(request);
      ASSERT_TRUE(result) << result.error().message;
      ASSERT_EQ(result->token_ids.size(), request.max_tokens);
      ASSERT_EQ(result->logits_hashes.size(), request.max_tokens);
      c.alone.push_back(std::move(*result));
    }
  }
  std::vector<Case> cases_;
  std::uint32_t limit_ = UINT32_MAX;  // tokens of the first variant of the position encoding
};

// One schedule: made from its seed, played, checked.
class Schedule {
 public:
  Schedule(const Family& family, unsigned seed, Seen& seen) : family_(family), rng_(seed), seen_(seen) {}

  void play() {
    make_engine();
    make_tenants();
    for (std::size_t n = 8 + below(10); n > 0;) {
      const auto what = below(16);
      if (what < 8) submit(), --n;
      if (what == 8 && !runs_.empty()) {
        Run& run = runs_[below(runs_.size())];
        if (run.stream) run.stream->cancel(), run.was_cancelled = true;
      }
      if (what == 9) change_quota();
      if (what == 10) static_cast<void>(tenants_[below(tenants_.size())].flush_prefix_cache());
      if (what == 11 && !runs_.empty() && below(2) == 0) drop(runs_[below(runs_.size())]);
      if (what >= 12) read_some();
      if (below(3) == 0) std::this_thread::sleep_for(std::chrono::microseconds(below(4000)));
    }
    read_all();
    for (Run& run : runs_) check(run);
    check_engine();
  }

 private:
  struct Run {
    const Family::Case* wanted = nullptr;
    Request request;
    std::optional<Stream> stream;
    bool is_over = false, was_dropped = false, was_cancelled = false;
    std::optional<Error> error;
    std::map<std::uint32_t, std::vector<std::int32_t>> tokens;  // of the events, by index
    std::map<std::uint32_t, std::string> text;
  };
  std::size_t below(std::size_t n) { return rng_() % n; }

  void make_engine() {
    auto options = small_options();
    options.max_context = family_.max_context;
    options.kv_type = find_kv_type(family_.kv_dtype);
    options.max_slots = static_cast<std::uint32_t>(1 + below(family_.max_slots));
    options.threads = static_cast<int>(1 + below(3));
    options.run_ahead = below(3) > 0;
    is_simple_ = below(3) == 0;
    const std::uint32_t full = family_.max_context / 16;
    options.kv_pages = full + static_cast<std::uint32_t>(below(2) == 0 ? below(full) : below(full * options.max_slots));
    constexpr std::uint32_t kChunks[] = {1, 5, 16, 33, 128};
    options.chunk_cap = kChunks[below(5)];
    if (ExecutorOptions unused; draft_is_block()) use_draft_block(family_.draft, family_.model, unused, options);
    options.state_checkpoints = static_cast<std::uint32_t>(below(2) == 0 ? 2 * options.max_slots : below(4));
    EngineOptions engine_options;
    for (std::uint32_t device = 1; device < family_.n_devices; ++device) engine_options.devices.push_back(device);
    engine_options.prefix_cache = below(5) > 0;
    auto probe = std::make_shared<Probe>();
    if (below(4) == 0) {
      for (std::size_t n = 1 + below(3); n > 0; --n) faults_.insert(1 + below(60));
      const bool is_late = below(2) == 0;  // the step has run and its logits were seen
      // What was copied before the step of one device another's step may have forgotten, so all slots may be hit.
      const std::uint64_t most = family_.n_devices > 1 ? options.max_slots : 0;
      (is_late ? probe->after : probe->before) = [this, most, probe = probe.get()](const StepInput& input,
                                                                                   std::uint64_t n) -> Status {
        if (!faults_.contains(n)) return {};
        n_hit_ += std::max(most, std::set(input.slots.begin(), input.slots.end()).size() + probe->n_copied_for);
        ++n_faults_;
        return std::unexpected(Error{StatusCode::kInternal, "[test] a fault was asked for", 0});
      };
    }
    engine_ = start_engine(family_.model, options, engine_options, std::move(probe), family_.opener, Drive::kThreads,
                           make_draft(options));
  }
  bool draft_is_block() const { return is_draft_block(family_.draft, family_.model); }
  // With a cache of its own, mostly too small for all slots, and now and then a shorter context or a step that fails.
  std::optional<TestDraft> make_draft(ExecutorOptions options) {
    if (family_.draft.empty()) return {};
    if (below(4) == 0) options.max_context = family_.max_context / 2;
    const std::uint32_t full = options.max_context / 16;
    options.kv_pages = full + static_cast<std::uint32_t>(below(full * options.max_slots));
    options.kv_type = nullptr;
    options.run_ahead = below(2) == 0;
    if (ExecutorOptions unused; draft_is_block()) use_draft_block(family_.draft, family_.model, options, unused);
    TestDraft draft{family_.draft, options};
    // How many steps a draft model makes depends on prices, so a fault is early, or it would seldom be reached.
    if (below(3) == 0)
      draft.probe->before = [fault = 1 + below(6)](const StepInput&, std::uint64_t n) -> Status {
        if (n != fault) return {};
        return std::unexpected(Error{StatusCode::kInternal, "[test] a fault of the draft model was asked for", 0});
      };
    return draft;
  }

  TenantQuota quota(std::size_t index) {
    TenantQuota quota;
    constexpr const char* kClasses[] = {"interactive", "standard", "batch"};
    quota.qos_class = kClasses[index % 3];
    quota.isolation_group = index >= 3 ? "group" : "";
    quota.max_concurrent_slots = static_cast<std::uint32_t>(1 + below(6));
    quota.max_kv_pages = family_.max_context / 16 + static_cast<std::uint32_t>(below(20));
    quota.reserved_kv_pages = below(4) == 0 ? 1 : 0;
    quota.weight = 0.5 + 0.5 * double(below(4));
    quota.decode_tokens_per_s = below(6) == 0 ? 2000 : 1e6;
    quota.prefill_tokens_per_s = 1e6;
    return quota;
  }
  void make_tenants() {
    for (std::size_t i = 0, n = 3 + below(3); i < n; ++i)
      tenants_.push_back(engine_.tenant("tenant " + std::to_string(i), quota(i)));
  }
  void change_quota() {
    const std::size_t i = below(tenants_.size());
    const auto status = tenants_[i].set_quota(quota(i));
    EXPECT_TRUE(status || status.error().code == StatusCode::kExhausted) << status.error().message;
  }

  void submit() {
    Run run;
    run.wanted = is_simple_ ? &family_.pick_simple(rng_) : &family_.pick(rng_);
    run.request = run.wanted->request;
    Request& r = run.request;
    r.return_logits_hash = !is_simple_ || below(8) == 0;
    if (below(3) == 0) r.max_tokens = static_cast<std::uint32_t>(1 + below(r.max_tokens));
    if (below(5) == 0) r.prompt_logprobs = 2;
    if (r.prompt_logprobs && below(4) == 0) r.max_tokens = 0;
    r.min_tokens = std::min(r.min_tokens, r.max_tokens);
    if (below(6) == 0) r.cache_salt = below(2) == 0 ? "salt" : "pepper";
    const auto& alone = run.wanted->alone[0];
    if (below(6) == 0 && r.stop_token_ids.empty())
      r.stop_token_ids = {alone.token_ids[below(alone.token_ids.size())], 7};
    if (below(6) == 0 && alone.text.size() > 4) {
      // Of printable text, since broken UTF-8 may be put together differently.
      const auto stop = alone.text.substr(below(alone.text.size() - 2), 2);
      if (std::ranges::all_of(stop, [](char c) { return c >= 0x20 && c < 0x7F; })) r.stop = {stop};
    }
    if (!r.stop.empty() && r.stop_token_ids.empty() && below(4) == 0)
      r.min_tokens = static_cast<std::uint32_t>(below(r.max_tokens + 1));
    r.include_stop_str_in_output = below(4) == 0;
    if (below(10) == 0) r.deadline_ms = double(1 + below(40));
    if (below(4) == 0) r.stream_capacity = static_cast<std::uint32_t>(1 + below(3));
    if (below(3) == 0 && r.return_logits_hash) r.logprobs = 2;
    guess(r, alone.token_ids);
    auto stream = tenants_[below(tenants_.size())].session()->stream(r);
    if (!stream) {  // reservations may leave too little for it
      EXPECT_TRUE(stream.error().code == StatusCode::kInvalidArgument || stream.error().code == StatusCode::kExhausted)
          << stream.error().message;
      return;
    }
    run.stream.emplace(std::move(*stream));
    runs_.push_back(std::move(run));
  }
  // Guesses that are right, wrong, or right in part. They change how many tokens a step gives, and nothing else.
  void guess(Request& r, const std::vector<std::int32_t>& answer) {
    constexpr const char* kSpeculate[] = {"auto", "off", "1", "5", "32"};
    r.speculate = kSpeculate[below(5)];
    const auto what = below(4);
    if (what == 0) return;  // of the request's own text
    r.prediction_token_ids = answer;
    for (std::int32_t& id : r.prediction_token_ids)
      if (what == 1 || (what == 2 && below(5) == 0)) id = static_cast<std::int32_t>(below(300));
  }
  static void drop(Run& run) {  // a client that goes away
    run.stream.reset();
    run.was_dropped = run.is_over = true;
  }

  // Takes one event if there is one.
  bool take(Run& run) {
    if (run.is_over) return false;
    bool is_there = true;
    const auto event = run.stream->next_within(0, is_there);
    if (!is_there) return false;
    if (!event) run.error = event.error();
    if (!event || !*event) return run.is_over = true;
    if ((*event)->is_token) {
      run.tokens[(*event)->index].push_back((*event)->token_id);
      EXPECT_EQ((*event)->logprob.has_value(), run.request.logprobs > 0);
    }
    run.text[(*event)->index] += (*event)->text;
    return true;
  }
  void read_some() {
    if (runs_.empty()) return;
    Run& run = runs_[below(runs_.size())];
    for (std::size_t n = below(20); n > 0; --n) take(run);
  }
  void read_all() {
    // A minute without an event: on a simulated GPU all of them together may take longer.
    const auto a_minute = [] { return std::chrono::steady_clock::now() + std::chrono::seconds(60); };
    auto end = a_minute();
    for (bool all_over = false; !all_over;) {
      bool any = false;
      all_over = true;
      for (Run& run : runs_) {
        while (take(run)) any = true;
        all_over = all_over && run.is_over;
      }
      if (any) end = a_minute();
      if (any || all_over) continue;
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "a request is stuck: " << engine_.stats().dump();
        break;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  void check(const Run& run) {
    ++seen_.requests;
    if (run.was_dropped || !run.is_over) return;
    const auto completion = run.stream->completion();
    if (run.error) {
      if (run.error->code == StatusCode::kInternal) ++seen_.failed, ++n_failed_;
      if (run.error->code == StatusCode::kExhausted) ++seen_.out_of_pages;
      EXPECT_TRUE(run.error->code == StatusCode::kInternal || run.error->code == StatusCode::kExhausted ||
                  run.error->code == StatusCode::kInvalidArgument)
          << run.error->message;
    }
    const auto& choices = completion.choices;
    for (std::uint32_t i = 0; i < run.request.n; ++i)
      check(run, i, choices.empty() ? completion : choices[i], run.wanted->alone[i]);
  }
  template <class T>
  static bool begins(const std::vector<T>& all, const std::vector<T>& part) {
    return part.size() <= all.size() && std::equal(part.begin(), part.end(), all.begin());
  }
  void check(const Run& run, std::uint32_t index, const Completion& got, const Completion& alone) {
    const auto& ids = got.token_ids;
    seen_.tokens += ids.size();
    EXPECT_TRUE(begins(alone.token_ids, ids)) << describe(run, got);
    EXPECT_TRUE(begins(alone.logits_hashes, got.logits_hashes)) << describe(run, got);
    EXPECT_EQ(got.logits_hashes.size(), run.request.return_logits_hash ? ids.size() : 0u);
    EXPECT_EQ(got.logprobs.size(), run.request.logprobs > 0 ? ids.size() : 0u);
    check_scores(run, index, got, alone);
    seen_.biased += !run.request.logit_bias.empty() && !ids.empty();
    if (ids.size() + run.request.token_ids->size() > family_.limit() &&
        run.request.token_ids->size() <= family_.limit())
      ++seen_.variant_changes;
    const auto& reason = got.finish_reason;
    const auto& stops = run.request.stop_token_ids;
    seen_.masked += run.request.output_format.kind == OutputFormat::Kind::kRegex && !ids.empty();
    seen_.banned += run.request.min_tokens > 0 && !stops.empty() && !ids.empty();
    const auto is_stop = [&](std::int32_t id) { return std::ranges::find(stops, id) != stops.end(); };
    const auto n_stops = std::ranges::count_if(ids, is_stop);
    if (reason == "length") {
      ++seen_.finished;
      EXPECT_EQ(ids.size(), run.request.max_tokens);
      EXPECT_EQ(n_stops, 0);
    }
    if (reason == "stop" && run.request.stop.empty()) {
      EXPECT_EQ(n_stops, 1);
      EXPECT_TRUE(!ids.empty() && is_stop(ids.back()));
    }
    if (reason == "stop") {
      ++seen_.stopped;
      EXPECT_TRUE(!stops.empty() || !run.request.stop.empty());
    }
    for (const auto& stop : run.request.stop) {
      if (run.request.min_tokens > 0) continue;
      const auto at = got.text.find(stop);
      const bool is_there = run.request.include_stop_str_in_output && reason == "stop";
      if (is_there && at == std::string::npos && !stops.empty()) continue;  // a token ended it
      EXPECT_EQ(at, is_there ? got.text.size() - stop.size() : std::string::npos) << got.text;
    }
    if (reason == "cancelled") ++seen_.cancelled;
    if (reason == "deadline") ++seen_.late;
    if (reason == "client_too_slow") ++seen_.too_slow;
    const auto tokens = run.tokens.find(index);
    const auto events = tokens == run.tokens.end() ? std::vector<std::int32_t>{} : tokens->second;
    EXPECT_TRUE(begins(ids, events));
    // Cancelled after it had ended by itself: what was not yet taken is in the completion alone.
    if ((reason != "length" && reason != "stop") || run.was_cancelled) return;
    EXPECT_EQ(events, ids);
    const auto text = run.text.find(index);
    EXPECT_EQ(text == run.text.end() ? std::string() : text->second, got.text);
  }
  // They are there with the first token, or with the end of a request that wants none, and have the bits of the request
  // alone.
  void check_scores(const Run& run, std::uint32_t index, const Completion& got, const Completion& alone) {
    const bool is_scored = run.request.prompt_logprobs && index == 0 &&
                           (run.request.max_tokens > 0 ? !got.token_ids.empty() : got.finish_reason == "length");
    ASSERT_EQ(got.prompt_logprobs.size(), is_scored ? alone.prompt_logprobs.size() : 0u) << describe(run, got);
    if (!is_scored) return;
    ++seen_.scored;
    const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
    for (std::size_t i = 0; i < got.prompt_logprobs.size(); ++i) {
      const auto &a = got.prompt_logprobs[i], &b = alone.prompt_logprobs[i];
      EXPECT_EQ(a.token_id, (*run.request.token_ids)[i]);
      EXPECT_EQ(bits(a.logprob), bits(b.logprob)) << "prompt token " << i << ", " << describe(run, got);
      EXPECT_EQ(a.top, b.top) << "prompt token " << i;
    }
  }
  static std::string describe(const Run& run, const Completion& got) {
    std::string out = "prompt of " + std::to_string(run.request.token_ids->size()) + ", " +
                      std::to_string(got.token_ids.size()) + " tokens, ended by \"" + got.finish_reason + "\", " +
                      std::to_string(got.usage.cached_tokens) + " cached";
    return out;
  }

  void check_engine() {
    ASSERT_TRUE(eventually([&] { return engine_.stat("running") + engine_.stat("waiting") == 0; }));
    expect_all_free(engine_);
    for (const Tenant& tenant : tenants_) {
      EXPECT_EQ(tenant.ledger().slots_now, 0u);
      EXPECT_EQ(tenant.ledger().kv_pages_now, 0u);
      EXPECT_EQ(tenant.ledger().waiting_now, 0u);
      EXPECT_TRUE(tenant.flush_prefix_cache());
    }
    EXPECT_EQ(engine_.stat("pages_cached"), 0u);
    expect_all_free(engine_);
    const auto stats = engine_.stats();
    seen_.preemptions += stats["preemptions"].get<std::uint64_t>();
    seen_.evictions += stats["page_evictions"].get<std::uint64_t>();
    seen_.warm_tokens += stats["cached_tokens"].get<std::uint64_t>();
    seen_.drafts += stats["draft_tokens"].get<std::uint64_t>();
    seen_.accepted_drafts += stats["accepted_draft_tokens"].get<std::uint64_t>();
    seen_.steps_ahead += stats["steps_ahead"].get<std::uint64_t>();
    const ExecutorInfo& info = engine_.core->find_model({})->info();
    seen_.takes_guesses |= info.state_bytes_per_slot == 0 || info.state_guesses > 0;
    seen_.runs_ahead |= info.runs_ahead;
    seen_.draft_model_steps += stats["draft_model_steps"].get<std::uint64_t>();
    seen_.failed_draft_model_steps += stats["failed_draft_model_steps"].get<std::uint64_t>();
    seen_.page_copies += engine_.probe->n_page_copies;
    seen_.restores += engine_.probe->n_restores;
    engine_.core->close();
    seen_.faults += n_faults_;
    EXPECT_LE(n_failed_, n_hit_);
    ++seen_.schedules;
  }

  const Family& family_;
  std::mt19937 rng_;
  Seen& seen_;
  std::set<std::uint64_t> faults_;  // steps that fail
  std::atomic<std::uint64_t> n_hit_{0}, n_faults_{0};
  std::uint64_t n_failed_ = 0;
  bool is_simple_ = false;  // whether the schedule has only requests whose tokens the device picks without the host
  TestEngine engine_;
  std::vector<Tenant> tenants_;
  std::vector<Run> runs_;
};

inline const FamilyCase kFamilies[] = {
    {"llama_spm-f32", 128, 1, 80},         // dense
    {"qwen35-f32", 128, 1, 80},            // recurrent state beside pages
    {"qwen3moe-Q4_K_M", 128, 1, 80},       // experts
    {"phi3_longrope-f16", 320, 225, 270},  // the position encoding changes at 256 tokens
    {"llama_k-Q4_K_M", 128, 1, 80, "k8v4"},
    {"llama_k-Q4_K_M", 128, 1, 80, "k4v4"},
    {"llama_k-Q4_K_M", 128, 1, 80, "i16"},
    {"qwen35-f32", 128, 1, 80, "i16"},
    {"llama_spm-f32", 128, 1, 80, "f16", 2},
    {"llama_k-Q4_K_M", 128, 1, 80, "k8v4", 3},
    {"qwen35-f32", 128, 1, 80, "f16", 2},
    {"llama_spm-f32", 128, 1, 80, "f16", 1, open_on_ring, 8, "llama_spm-f32"},  // guesses for itself
    {"llama_k-Q4_K_M", 128, 1, 80, "k8v4", 1, open_on_ring, 8, "llama3_tied_rope-f16"},
    {"qwen3moe-Q4_K_M", 128, 1, 80, "i16", 2, open_on_ring, 8, "qwen3-Q4_0"},
    {"phi3_longrope-f16", 320, 225, 270, "f16", 1, open_on_ring, 8, "phi3_longrope-f16"},
    {"qwen35-f32", 128, 1, 80, "i16", 1, open_on_ring, 8, "qwen3-f16"},
    {"tiny_qwen35_mtp-f16", 128, 1, 80, "i16", 2, open_on_ring, 8, "tiny_qwen35_mtp-f16"},
    {"tiny_smollm3-f16", 128, 1, 80, "f16", 2, open_on_ring, 8, "eagle3-shared"},
    {"tiny_gemma4-f16", 128, 1, 80, "i16", 2, open_on_ring, 8, "assistant-tiny_gemma4"},
    {"tiny_lfm2moe-f16", 128, 1, 80},
    {"tiny_nemotron_h_moe-f16", 128, 1, 80, "i16", 2},
};
inline void PrintTo(const FamilyCase& c, std::ostream* out) {
  *out << c.model;
}

// n schedules of n_cases different requests. ZINC_RT_SAMENESS_SEED plays that schedule alone.
inline void play_schedules(const FamilyCase& c, std::size_t n_cases, unsigned first_seed, unsigned n) {
  const bool changes_variant = c.model.contains("longrope");  // at the length that the shared model has
  if (changes_variant) {
    ZRT_NEED_SHARED_FIXTURES();
  }
  const Family family(c, n_cases);
  if (::testing::Test::HasFatalFailure()) return;
  Seen seen;
  const char* only = std::getenv("ZINC_RT_SAMENESS_SEED");
  if (only != nullptr) first_seed = static_cast<unsigned>(std::strtoul(only, nullptr, 10)), n = 1;
  for (unsigned seed = first_seed; seed < first_seed + n && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("schedule of seed " + std::to_string(seed));
    Schedule(family, seed, seen).play();
  }
  seen.print(std::cout, c.model);
  if (only != nullptr) return;
  EXPECT_GT(seen.finished, 0u);
  EXPECT_GT(seen.stopped, 0u);
  EXPECT_GT(seen.cancelled, 0u);
  EXPECT_GT(seen.preemptions, 0u);
  EXPECT_GT(seen.evictions, 0u);
  EXPECT_GT(seen.warm_tokens, 0u);
  EXPECT_GT(seen.faults, 0u);
  EXPECT_GT(seen.biased, 0u);
  EXPECT_GT(seen.banned, 0u);
  EXPECT_GT(seen.masked, 0u);
  EXPECT_EQ(seen.drafts > seen.accepted_drafts, seen.takes_guesses);
  EXPECT_EQ(seen.accepted_drafts > 0, seen.takes_guesses);
  EXPECT_GT(seen.scored, 0u);
  EXPECT_EQ(seen.steps_ahead > 0, seen.runs_ahead);
  EXPECT_EQ(seen.draft_model_steps > 0, !c.draft.empty());
  EXPECT_EQ(seen.failed_draft_model_steps > 0, !c.draft.empty());
  const bool is_recurrent = c.model.contains("qwen35") || c.model.contains("lfm2") || c.model.contains("nemotron_h");
  EXPECT_EQ(seen.restores > 0, is_recurrent);
  EXPECT_EQ(seen.page_copies > 0, !is_recurrent);
  EXPECT_EQ(seen.variant_changes > 0, changes_variant);
}

}  // namespace zinc_rt
